"""The title of a turn: the best candidate that can be understood alone."""

from collections.abc import Iterator
from itertools import chain

from claude_mem.observer.local import titles
from claude_mem.observer.local.reading import TurnReading
from claude_mem.title_gate import is_complete


def turn_title(reading: TurnReading) -> str:
    """The first title that no previous turn of the session has; empty if there is none."""
    previous = {text.partition("\n")[0].lower() for text in reading.recent_memories}
    ranked = (candidate.text for candidate in reading.titles)
    choices = ranked if reading.is_english else _by_structure(reading)
    files = reading.evidence.files
    of_files = titles.from_files(list(files), all(f.created for f in files.values()))
    fallback = [of_files] if files else []
    every = chain(choices, fallback)
    return next((title for title in every if title.lower() not in previous), "")


def _by_structure(reading: TurnReading) -> Iterator[str]:
    """What was written as a title, then the request, then the first words of the answer."""
    request = reading.evidence.request
    written = [
        candidate.text
        for candidate in reading.titles
        if candidate.source in ("commit", "pull request", "request heading", "plan heading")
        and candidate.cut == "all"
    ]
    said = [c.text for c in reading.candidates if c.origin == "final" and c.passage.kind == "prose"]
    for title in (
        titles.from_plan(request.plan_title),
        *written,
        titles.from_request(request.text),
        *map(titles.from_sentence, said),
    ):
        if title and is_complete(title, is_english=False):
            yield title


def request_title(reading: TurnReading) -> str:
    """For the session, where the turn has no title: what was asked."""
    request = reading.evidence.request
    title = titles.from_plan(request.plan_title) or titles.from_request(request.text)
    return title if title and is_complete(title, is_english=reading.is_english) else ""
