"""A finder looks only at texts that have a clue for it: no clue may be missed, whatever is
remembered of earlier texts."""

import subprocess
import sys

import pytest

from claude_mem.redaction import Redactor
from claude_mem.redaction.prefilter import Vocabulary, longest_piece, whole
from claude_mem.redaction.vendor_table import VENDORS, Vendor
from tests.secret_corpus import Maker, corpus, sample_of


def test_words_and_parts_are_clues_at_the_first_sight_and_later() -> None:
    vocabulary = Vocabulary()
    vocabulary.add_parts(["auth", "x-sig"])
    vocabulary.add_words(["new"])
    text = "a New-Author, anew: X-Signal"
    for _ in range(2):
        assert vocabulary.clues(text) == {"auth", "x-sig", whole("new")}
    assert vocabulary.clues("anew, x sig, au-th") == set()


def test_a_clue_that_is_added_later_holds_for_words_that_were_seen_before() -> None:
    vocabulary = Vocabulary()
    assert vocabulary.clues("the author") == set()
    vocabulary.add_parts(["auth"])
    assert vocabulary.clues("the author") == {"auth"}
    vocabulary.add_judge(lambda runs: [(run, "a short run") for run in runs if len(run) < 4])
    assert vocabulary.clues("the author") == {"auth", "a short run"}


def test_more_words_than_are_remembered() -> None:
    vocabulary = Vocabulary()
    vocabulary.add_parts(["auth"])
    for number in range(50):
        words = " ".join(f"w{number}x{i} auth{number}x{i}" for i in range(500))
        assert vocabulary.clues(f"author {words} {'w' * 100}author") == {"auth"}
    assert vocabulary.clues("author") == {"auth"}


def test_the_kelvin_sign_is_a_letter_of_words_in_lower_case() -> None:
    vocabulary = Vocabulary()
    vocabulary.add_parts(["key"])
    vocabulary.add_words(["pragma"])
    assert vocabulary.clues("a \u212aey") == {"key"}
    assert vocabulary.clues("\u212apragma") == set()


@pytest.mark.parametrize(
    ("text", "piece"), [("jdbc:oracle", "oracle"), (" -p", "-p"), ("<<<", ""), ("s.", "s")]
)
def test_the_longest_piece_of_a_text(text: str, piece: str) -> None:
    assert longest_piece(text) == piece


def test_the_first_text_of_a_process_is_searched_by_all_finders() -> None:
    vendor = next(vendor for vendor in VENDORS if vendor.kind == "github-token")
    token = vendor.prefixes[0] + sample_of(vendor.body, Maker(3))
    program = (
        "import sys\nfrom claude_mem.redaction import Redactor\n"
        "print(Redactor().redact(sys.stdin.read()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=f"with {token}",
        text=True,
        capture_output=True,
        check=True,
    )
    assert done.stdout == "with [redacted:github-token]\n"


@pytest.mark.parametrize(
    "vendor", VENDORS, ids=lambda vendor: f"{vendor.kind} {vendor.prefixes[0]}"
)
def test_a_token_is_found_wherever_its_run_begins_and_ends(vendor: Vendor) -> None:
    maker, redactor = Maker(7), Redactor()
    for prefix in vendor.prefixes:
        token = prefix + sample_of(vendor.body, maker)
        for text in (token, f'"{token}"', f"\n{token}\n"):
            assert token not in redactor.redact(f"const_1 {text}"), text


def test_secrets_are_found_again_among_words_that_are_known_by_then() -> None:
    planted = corpus(5)
    first = [Redactor().redact(secret.text) for secret in planted]
    redactor = Redactor()
    assert [redactor.redact(secret.text) for secret in planted] == first


def test_a_word_beside_itself_and_parts_of_many_runs_are_clues_of_each_run() -> None:
    vocabulary = Vocabulary()
    vocabulary.add_parts(["auth"])
    vocabulary.add_words(["new"])
    runs = ["new", "x-new", "new-new", "NEW", "anew", "xauthx", "AUTH", "auth-auth", "au"]
    assert vocabulary.clues(" ".join(runs)) == {"auth", whole("new")}
    told = {run for run in runs if vocabulary.clues(run)}
    assert told == {"new", "x-new", "new-new", "NEW", "xauthx", "AUTH", "auth-auth"}
