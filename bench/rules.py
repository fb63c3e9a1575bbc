"""Rules that users stated, against labelled sentences: precision and recall for each project.

    python -m bench.rules --labels FILE [--show]

A line of the file is a JSON object with `project`, `sentence`, `typed` (false: the sentence stood
in pasted text) and `label` (`rule` or something else). The points of the features are written down,
not fitted, so no project has to be left out; each is reported on its own.
"""

import argparse
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from claude_mem.observer.local.user_rules import (
    CANDIDATE_POINTS,
    RULE_POINTS,
    rule_points,
    typed_sentences,
)


@dataclass(frozen=True, slots=True)
class Labelled:
    project: str
    sentence: str
    is_rule: bool
    points: int

    @classmethod
    def read(cls, line: str) -> "Labelled":
        item = json.loads(line)
        sentence = str(item["sentence"])
        # Whether a prompt was pasted is not visible in one sentence of it.
        typed = list(typed_sentences(sentence)) if item["typed"] else []
        points = max((rule_points(part) for part in typed), default=-99)
        is_rule = item["label"] == "rule" and bool(item["typed"])
        return cls(str(item["project"]), sentence, is_rule, points)


@dataclass(frozen=True, slots=True)
class Score:
    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0

    def __str__(self) -> str:
        return (
            f"precision {self.precision:.2f}, recall {self.recall:.2f}"
            f" ({self.right} right, {self.wrong} wrong, {self.missed} missed)"
        )


def score(labels: Iterable[Labelled], limit: int) -> Score:
    right = wrong = missed = 0
    for label in labels:
        accepted = label.points >= limit
        right += accepted and label.is_rule
        wrong += accepted and not label.is_rule
        missed += label.is_rule and not accepted
    return Score(right, wrong, missed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--labels", type=Path, required=True)
    parser.add_argument("--show", action="store_true", help="print what is accepted and missed")
    options = parser.parse_args()
    labels = [Labelled.read(line) for line in options.labels.read_text().splitlines() if line]
    if options.show:
        for label in sorted(labels, key=lambda label: -label.points):
            if label.points >= CANDIDATE_POINTS or label.is_rule:
                print(f"{label.points:4} {'rule' if label.is_rule else '-':5}{label.sentence}")
    for project in sorted({label.project for label in labels}):
        print(f"{project}: {score((x for x in labels if x.project == project), RULE_POINTS)}")
    print(f"with candidates: {score(labels, CANDIDATE_POINTS)}")
    print(f"rules: {score(labels, RULE_POINTS)}")


if __name__ == "__main__":
    main()
