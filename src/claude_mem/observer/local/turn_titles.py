"""The title of a turn: from the plan, the request, a commit, or what the agent reported."""

from collections.abc import Iterable, Iterator

from claude_mem.observer.local import titles
from claude_mem.observer.local.evidence import Origin, TurnEvidence
from claude_mem.observer.local.files import FileWork
from claude_mem.observer.local.markdown import Kind
from claude_mem.observer.local.scoring import Role
from claude_mem.observer.local.selection import Candidate, TurnSelection

PROSE: tuple[Kind, ...] = ("prose",)
LISTS: tuple[Kind, ...] = ("item", "row")
# The roles that make the best titles first.
_ROLES: tuple[Role, ...] = ("cause", "problem", "change", "decision", "outcome")


def turn_title(selection: TurnSelection) -> str:
    """The first title that no previous turn of the session has; empty if there is none."""
    previous = {text.partition("\n")[0].lower() for text in selection.recent_memories}
    choices = (title for title in _choices(selection) if title)
    return next((title for title in choices if title.lower() not in previous), "")


def _choices(selection: TurnSelection) -> Iterator[str]:
    """The best first."""
    evidence, passages, final = selection.evidence, selection.passages, selection.final
    yield titles.from_plan(evidence.request.plan_title)
    yield titles.from_request(evidence.request.text)
    yield commit_title(evidence) if evidence.files else first_clause(final)
    yield headline(passages, "final", _ROLES)
    yield first_clause(final)
    yield headline(passages, "final", _ROLES, LISTS)
    yield headline(passages, "statement", _ROLES)
    yield titles.from_question(evidence.request.text)
    yield commit_title(evidence)
    yield _files_title(evidence.files)


def headline(
    candidates: list[Candidate],
    origin: Origin,
    roles: Iterable[Role],
    kinds: tuple[Kind, ...] = PROSE,
    exclude: tuple[str, ...] = (),
) -> str:
    """A title from the first passage of the first role that has one; else empty."""
    for role in roles:
        for candidate in candidates:
            is_eligible = (candidate.origin, candidate.role) == (origin, role)
            if is_eligible and candidate.passage.kind in kinds:
                title = titles.from_sentence(candidate.text)
                if title and title not in exclude:
                    return title
    return ""


def first_clause(final: list[Candidate], exclude: tuple[str, ...] = ()) -> str:
    prose = (candidate for candidate in final if candidate.passage.kind == "prose")
    choices = (titles.from_sentence(candidate.text) for candidate in prose)
    return next((title for title in choices if title and title not in exclude), "")


def commit_title(evidence: TurnEvidence) -> str:
    subjects = evidence.commands.subjects
    return titles.from_commit(subjects[-1]) if subjects else ""


def _files_title(files: dict[str, FileWork]) -> str:
    work = list(files.values())
    return titles.from_files(list(files), all(file.created for file in work)) if work else ""
