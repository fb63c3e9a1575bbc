"""What a turn is about, by a name: a component, an issue, a file or a symbol."""

import re

from claude_mem.observer.local.evidence import TurnEvidence

_SCOPE = re.compile(r"[a-z]{1,20}\(([\w ./-]{2,40})\)!?:", re.IGNORECASE)
_ISSUE = re.compile(r"(?<![\w/])#\d{1,7}\b")
_CODE = re.compile(r"`([A-Za-z_][\w./:-]{2,39})(?:\(\))?`")


def subject_of(evidence: TurnEvidence) -> str:
    """To put before a title that does not say what it is about; empty if nothing has a name."""
    for subject in evidence.subjects:
        if scope := _SCOPE.match(subject):
            return scope[1]
    if issue := _ISSUE.search(evidence.request.text):
        return f"Issue {issue[0]}"
    if evidence.files:
        most = max(evidence.files.values(), key=lambda work: len(work.sources))
        return most.path.replace("\\", "/").rsplit("/", 1)[-1]
    names = _CODE.findall(evidence.final)
    return max(names, key=names.count) if names else ""
