"""The model that ships with the package: its word pieces, sums and files."""

import json
from pathlib import Path

import numpy as np
import pytest

from claude_mem.index.embedders.static_model import (
    HASHED,
    MAX_PIECES,
    SHIPPED,
    StaticModel,
    Wordpieces,
    content_hash,
)

PIECES = ["log", "in", "##in", "redirect", "loop", "github", "git", "hub", "o", "##auth", "234"]


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    rows = np.zeros((len(PIECES), 16), np.int8)
    rows[np.arange(len(PIECES)), np.arange(len(PIECES))] = 100
    np.save(tmp_path / "rows.npy", rows)
    np.save(tmp_path / "scales.npy", np.arange(1, len(PIECES) + 1, dtype=np.uint16))
    (tmp_path / "vocabulary.txt").write_text("\n".join(PIECES) + "\n", "utf-8")
    metadata = {"name": "tiny", "dimension": 16, "sha256": content_hash(tmp_path)}
    (tmp_path / "model.json").write_text(json.dumps(metadata), "utf-8")
    return tmp_path


def pieces(text: str) -> list[str]:
    return [PIECES[row] for row in Wordpieces(PIECES).rows(text)]


def test_a_word_is_its_longest_pieces() -> None:
    assert pieces("Login redirect, in a loop.") == ["log", "##in", "redirect", "in", "loop"]


def test_an_identifier_comes_apart_unless_it_is_known_whole() -> None:
    assert pieces("redirectLoop redirect_loop GitHub gitHubLoop") == [
        *("redirect", "loop", "redirect", "loop", "github", "git", "hub", "loop"),
    ]


def test_a_single_letter_stays_with_what_follows() -> None:
    assert pieces("OAuth") == ["o", "##auth"]


def test_a_word_with_a_missing_piece_says_nothing() -> None:
    assert pieces("logzzz zzz") == []


def test_hashes_and_blobs_say_nothing() -> None:
    assert pieces("log 234abcdef0 " + "in" * 30) == ["log"]


def test_accents_and_forms_of_letters_do_not_matter() -> None:
    assert pieces("lóg ｌｏｇ") == ["log", "log"]


def test_a_long_text_counts_by_its_beginning() -> None:
    assert len(pieces("log " * 600)) == MAX_PIECES


def test_more_words_than_are_remembered_are_read_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("claude_mem.index.embedders.static_model.CACHED_WORDS", 2)
    assert pieces("log in loop git log in") == ["log", "in", "loop", "git", "log", "in"]


def test_a_vector_is_the_normalised_sum_of_weighted_rows(tiny: Path) -> None:
    vector = StaticModel.load(tiny).encode(["log redirect redirect"])[0]
    assert vector.dtype == np.float32
    assert vector[[0, 3]].tolist() == np.array([1 / 65**0.5, 8 / 65**0.5], np.float32).tolist()
    assert np.count_nonzero(vector) == 2


def test_nothing_known_is_a_vector_of_zeros(tiny: Path) -> None:
    vectors = StaticModel.load(tiny).encode(["", "loop", "???"])
    assert np.linalg.norm(vectors, axis=1).tolist() == [0, 1, 0]
    assert StaticModel.load(tiny).encode([]).shape == (0, 16)


def test_a_text_has_the_same_vector_in_every_company(monkeypatch: pytest.MonkeyPatch) -> None:
    model = StaticModel.load()
    texts = [f"fix number {n}: the sign-in loop of pull request {n * 7}" * 3 for n in range(50)]
    alone = np.concatenate([model.encode([text]) for text in texts])
    monkeypatch.setattr("claude_mem.index.embedders.static_model.BATCH_PIECES", 100)
    assert (model.encode(texts) == alone).all()
    assert (model.encode(texts[::-1]) == alone[::-1]).all()


def test_the_model_that_ships_is_the_one_it_says() -> None:
    metadata = json.loads((SHIPPED / "model.json").read_text("utf-8"))
    model = StaticModel.load()
    assert metadata["sha256"] == content_hash(SHIPPED)
    assert model.id == f"{metadata['name']}-{metadata['sha256'][:12]}"
    assert model.dimension == 256
    assert len(model.rows) == len(model.scales)
    assert sum((SHIPPED / name).stat().st_size for name in HASHED) < 10_000_000


def test_no_sum_of_the_model_that_ships_overflows() -> None:
    model = StaticModel.load()
    longest = (np.linalg.norm(model.rows.astype(np.float64), axis=1) * model.scales).max()
    assert (longest * MAX_PIECES) ** 2 < 2**63
    assert int(model.scales.max()) * 127 * MAX_PIECES < 2**31


def test_the_model_that_ships_knows_what_belongs_together() -> None:
    near, text, far = StaticModel.load().encode(
        ["sign-in loop", "redirect after login", "database migration"]
    )
    assert near @ text > near @ far + 0.1
