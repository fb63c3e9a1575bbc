"""What the latest sessions of a project came to: turns with results, commits and branches, and
where the work was done."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from claude_mem.recall.handover.statements import (
    LOCAL,
    id_of,
    is_about,
    is_clear,
    is_repetition,
    long_words,
    stems_in,
    texts,
    unmarked,
    with_end,
    without_facts,
)
from claude_mem.store import StoreReader
from claude_mem.store.facts import Artifact
from claude_mem.store.memory_rows import JsonRow
from claude_mem.store.turns import MAIN_BRANCHES
from claude_mem.title_rules import without_topics

SESSIONS, SESSIONS_FOR_BRANCH = 20, 40
SUMMARIES = 6  # turns for each session, on average
REVERT = re.compile(r'Revert "(.{1,200})"$')
_ASKS_TO_COMMIT = re.compile(r"(?:(?:ok|okay|please|now|then|yes)[,.]? )*commit\b", re.IGNORECASE)
_HELPER_BRANCH = re.compile(r"(?:te?mp|wip|backup|scratch)(?:[-_/]|$)", re.IGNORECASE)
_TEMPORARY = re.compile(r"(?:^|[/\\\\_.-])te?mp[_.-]")

MAX_MAIN_FILES, LONGEST_PLACE = 3, 110
# What changes along with other files: it does not say what a session was about.
_INCIDENTAL = re.compile(
    r"(?:^|/)(?:tests?|__tests__|specs?|fixtures|testdata|node_modules|dist|build)/"
    r"|[._-](?:tests?|specs?)\.\w{1,5}$|(?:^|/)(?:test_|conftest)[^/]{0,80}\.py$"
    r"|(?:^|/)(?:change_?log|readme|license|history|todo|plan|\.gitignore)[^/]{0,10}$"
    r"|\.(?:lock|sum|snap|txt|log)$|(?:^|/)package(?:-lock)?\.json$",
    re.IGNORECASE,
)
_WORK_TREE = re.compile(r"^(?:\.[\w-]{1,30}/)?\.?worktrees/[^/]{1,80}/")
_SCRATCH = re.compile(r"(?:^|[/_.-])te?mp[_./-]|(?:^|/)scratch", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Result:
    """Something that a turn achieved or learned, in words that can be understood alone."""

    text: str
    details: str = ""
    commit: str = ""
    is_commit: bool = False  # also of one whose hash is unknown
    observation: JsonRow | None = None
    files: tuple[str, ...] = ()  # that its turn edited
    turn: int = 0

    @property
    def ids(self) -> tuple[str, ...]:
        return (id_of(self.observation),) if self.observation else ()

    @property
    def is_draft(self) -> bool:
        """Whether no model has read its turn."""
        return self.observation is None or self.observation["observer"] == LOCAL

    @property
    def is_bugfix(self) -> bool:
        return self.observation is not None and self.observation["type"] == "bugfix"

    @property
    def label(self) -> str:
        """The text with what leads to more: the commit, or the id of the observation."""
        return " ".join((self.text, f"({self.commit[:8]})" if self.commit else "", *self.ids))


@dataclass(frozen=True)
class TurnDigest:
    summary: JsonRow
    observations: tuple[JsonRow, ...]
    artifacts: tuple[Artifact, ...]

    @cached_property
    def results(self) -> list[Result]:
        """The commits of the turn; and its observations, unless a commit is about the same."""
        observations = [o for o in self.observations if is_clear(_title(o))]
        files, turn = tuple(self.files), int(str(self.summary["prompt_number"] or 0))
        results: list[Result] = []
        for subject, name in dict.fromkeys((a.note, _hash_of(a)) for a in self._commits):
            same = [o for o in observations if _is_about(o, subject)]
            # One commit and one observation are the same work, whatever their words.
            same = same or (observations if len(self._commits) == len(observations) == 1 else [])
            observation = same[0] if same else None
            details = self._details(observation)
            results.append(Result(subject, details, name, True, observation, files, turn))
            observations = [o for o in observations if o not in same]
        results += [
            Result(_title(o), self._details(o), observation=o, files=files, turn=turn)
            for o in observations
        ]
        return results or self._completed()

    @property
    def _commits(self) -> list[Artifact]:
        return [artifact for artifact in self.artifacts if _is_commit(artifact)]

    def _details(self, observation: JsonRow | None) -> str:
        if observation is None:
            return ""
        narrative = observation["narrative"]
        if not narrative and len(self.observations) == 1:
            narrative = self.summary["completed"]
        parts = [str(narrative or ""), *texts(observation["facts"])]
        return " ".join(with_end(part) for part in parts if part)

    def _completed(self) -> list[Result]:
        """What the summary says, of a turn without observations."""
        request, text = (str(self.summary[name] or "") for name in ("request", "completed"))
        if is_clear(text):
            return [Result(text, is_commit=bool(_ASKS_TO_COMMIT.match(request)))]
        return [Result(request, text)] if text and is_clear(request) else []

    def is_reverted(self, subjects: frozenset[str]) -> bool:
        """Whether commits of these subjects were all that came of it."""
        commits = [artifact.note for artifact in self.artifacts if artifact.subject == "commit"]
        return bool(commits) and subjects.issuperset(commits)

    @cached_property
    def files(self) -> list[str]:
        paths = texts(self.summary["files_edited"])
        return [path for path in paths if is_in_project(path) and not _TEMPORARY.search(path)]


@dataclass(frozen=True)
class SessionDigest:
    id: str
    day: str
    title: str
    turns: tuple[TurnDigest, ...]  # oldest first
    is_client_title: bool = False  # the user's, or one that the client made of all turns

    @property
    def goal(self) -> str:
        """The title, if it can be understood; what the user named a session is shown as it is."""
        return self.title if self.is_client_title or is_clear(self.title) else ""

    @cached_property
    def results(self) -> list[Result]:
        """The latest first; work and its commit are one. Nothing that was reverted."""
        results = [result for turn in reversed(self.turns) for result in reversed(turn.results)]
        return _with_their_work([result for result in results if result.text not in self.reverted])

    @cached_property
    def reverted(self) -> frozenset[str]:
        """Subjects of its commits that it took back."""
        notes = (a.note for turn in self.turns for a in turn.artifacts if a.subject == "commit")
        return frozenset(match[1] for note in notes if (match := REVERT.match(note)))

    @property
    def is_changed(self) -> bool:
        """Whether it changed the project."""
        return bool(self.files) or any(result.is_commit for result in self.results)

    @property
    def came_to_something(self) -> bool:
        steps = self.turns[-1].summary["open_steps"] or self.turns[-1].summary["next_steps"]
        return bool(self.files or steps or self.results)

    @cached_property
    def branches(self) -> list[str]:
        """The branches in the order of their last use, without main and helper branches."""
        names = [a.value for turn in self.turns for a in turn.artifacts if a.subject == "branch"]
        latest = dict.fromkeys(reversed(names))
        return [n for n in latest if n not in MAIN_BRANCHES and not _HELPER_BRANCH.match(n)]

    @cached_property
    def pull_requests(self) -> list[Artifact]:
        requests = {
            a.value: a for turn in self.turns for a in turn.artifacts if a.subject == "pull request"
        }
        return list(requests.values())

    @cached_property
    def files(self) -> list[str]:
        """The edited files, those that changed in most turns first."""
        counts: dict[str, int] = {}
        for turn in self.turns:
            if turn.is_reverted(self.reverted):
                continue
            for path in turn.files:
                counts[path] = counts.get(path, 0) + 1
        return sorted(counts, key=lambda path: -counts[path])

    @cached_property
    def uncommitted(self) -> list[str]:
        """Files that were edited in turns after the last commit, or in all if there is none."""
        files: dict[str, None] = {}
        for turn in self.turns:
            if any(artifact.subject == "commit" for artifact in turn.artifacts):
                files.clear()
            else:
                files.update(dict.fromkeys(turn.files))
        return list(files)

    @property
    def has_commits(self) -> bool:
        return any(a.subject == "commit" for turn in self.turns for a in turn.artifacts)

    @property
    def last_commit(self) -> Artifact | None:
        """The last commit, if its hash is known, and it does not repeat another."""
        commits = [a for turn in self.turns for a in turn.artifacts if a.subject == "commit"]
        is_shown = bool(commits) and _hash_of(commits[-1]) and not is_repetition(commits[-1].note)
        return commits[-1] if is_shown else None

    @property
    def push_state(self) -> str:
        """What is known of the commits of a session that pushed."""
        last = {a.subject: n for n, turn in enumerate(self.turns) for a in turn.artifacts}
        if "push" not in last:
            return ""
        is_all = last["push"] >= last.get("commit", 0)
        return "pushed" if is_all else "pushed, except for the last commit"


@dataclass(frozen=True, slots=True)
class Habits:
    """What some session of the project did: only there is it news that another one did not."""

    commits: bool = False
    pushes: bool = False


def habits_of(sessions: Sequence[SessionDigest]) -> Habits:
    return Habits(
        commits=any(session.has_commits for session in sessions),
        pushes=any(session.push_state for session in sessions),
    )


def _with_their_work(results: Sequence[Result]) -> list[Result]:
    """A commit of a turn of its own tells of the work before it, back to the commit before."""
    joined: list[Result] = []
    position = 0
    while position < len(results):
        result = results[position]
        position += 1
        if result.is_commit and result.observation is None:
            end = position
            while end < len(results) and not results[end].is_commit:
                end += 1
            before = results[position:end]
            work = [other for other in before if _is_same_work(other, result)]
            work = work or (list(before) if len(before) == 1 and before[0].files else [])
            joined.append(_with_details(result, work[-1]) if work else result)
            joined += [other for other in before if other not in work]
            position = end
        else:
            joined.append(result)
    return joined


def _with_details(commit: Result, work: Result) -> Result:
    return replace(commit, details=work.details, observation=work.observation, files=work.files)


def _is_same_work(work: Result, commit: Result) -> bool:
    words, subject = long_words(work.text), long_words(commit.text)
    return is_about(words, subject) or is_about(subject, words)


def _title(observation: JsonRow) -> str:
    """Returns the title without the topic: its session has one."""
    return unmarked(without_topics(str(observation["title"] or "")))


def _is_about(observation: JsonRow, subject: str) -> bool:
    return is_about(long_words(_title(observation)), long_words(subject))


def _is_commit(artifact: Artifact) -> bool:
    """Whether a commit says what it did."""
    is_commit = artifact.subject == "commit" and is_clear(artifact.note)
    return is_commit and not is_repetition(artifact.note)


def _hash_of(commit: Artifact) -> str:
    """Returns the hash; empty where the output did not tell: then its subject stands for it."""
    return "" if commit.value == commit.note else commit.value


def digest_sessions(
    store: StoreReader, project_id: int, without_session: str | None, branch: str = ""
) -> list[SessionDigest]:
    """The latest first; sessions without a summary have no digest. For a branch also older ones:
    one of them may be about it."""
    count = SESSIONS if branch in ("", *MAIN_BRANCHES) else SESSIONS_FOR_BRANCH
    sessions = store.recent_sessions(project_id, count, without_session)
    ids = [str(session["content_session_id"]) for session in sessions]
    summaries = store.recent_summaries(project_id, count * SUMMARIES, without_session)
    # A rule is given while it holds, and never as a result.
    rules = store.facts(project_id, ("rule",))
    observations = without_facts(store.observations_of_sessions(ids), rules)
    ended = [rule for rule in rules if rule.status in ("past", "wrong")]
    sessions = [session if without_facts([session], ended) else {**session, "title": ""}
                for session in sessions]  # fmt: skip
    artifacts = store.artifacts_of_sessions(ids)
    turns: dict[str, list[TurnDigest]] = {}
    for turn in _turns(summaries, observations, artifacts):
        turns.setdefault(str(turn.summary["content_session_id"]), []).append(turn)
    digests = (_digest(session, turns) for session in sessions)
    return [digest for digest in digests if digest.turns]


def _turns(
    summaries: Sequence[JsonRow], observations: Sequence[JsonRow], artifacts: Sequence[Artifact]
) -> Iterator[TurnDigest]:
    """Reads the turns, oldest first."""
    observed: dict[tuple[object, object], list[JsonRow]] = {}
    for row in observations:
        observed.setdefault((row["content_session_id"], row["prompt_number"]), []).append(row)
    produced: dict[tuple[object, object], list[Artifact]] = {}
    for artifact in artifacts:
        produced.setdefault((artifact.session, artifact.prompt_number), []).append(artifact)
    for summary in reversed(summaries):
        turn = (summary["content_session_id"], summary["prompt_number"])
        yield TurnDigest(summary, tuple(observed.get(turn, ())), tuple(produced.get(turn, ())))


def _digest(session: JsonRow, turns_by_session: Mapping[str, list[TurnDigest]]) -> SessionDigest:
    name = str(session["content_session_id"])
    turns = tuple(turns_by_session.get(name, ()))
    day = str(turns[-1].summary["created_at"])[:10] if turns else ""
    title = str(session["title"] or "")
    return SessionDigest(name, day, title, turns, session["title_source"] is not None)


def is_in_project(path: str) -> bool:
    """Whether a path is in the project: relative ones are, others belong elsewhere."""
    return not (path.startswith(("/", "~", "..", "\\")) or path[1:2] == ":")


def is_incidental(path: str) -> bool:
    return _INCIDENTAL.search(plain_path(path)) is not None


def place_of(files: Sequence[str], title: str) -> str:
    """The main files of a session: first those that its title names, one of each folder."""
    paths = [plain_path(path) for path in files if not _SCRATCH.search(plain_path(path))]
    main = [path for path in paths if not _INCIDENTAL.search(path)] or paths
    words = stems_in(title)
    ranked = sorted(main, key=lambda path: -len(stems_in(name_of(path)) & words))
    named = [path for path in ranked if stems_in(name_of(path)) & words]
    by_folder: dict[str, str] = {}
    for path in named or ranked:
        by_folder.setdefault(_folder(path), path)
    shown = list(dict.fromkeys((*by_folder.values(), *ranked)))[:MAX_MAIN_FILES]
    while len(shown) > 1 and len(", ".join(shown)) > LONGEST_PLACE:
        shown.pop()
    more = f" and {len(main) - len(shown)} more" if len(main) > len(shown) else ""
    return ", ".join(shown) + more


def with_paths(text: str, files: Sequence[str]) -> str:
    """Writes the whole path of each edited file where the text first names it."""
    paths = [plain_path(path) for path in files]
    for path in paths:
        name = name_of(path)
        if name == path or path in text or sum(name_of(other) == name for other in paths) > 1:
            continue
        text = re.sub(rf"(?<![\w/\\.-]){re.escape(name)}(?![\w/-])", lambda _: path, text, count=1)  # noqa: B023
    return text


def plain_path(path: str) -> str:
    """Writes a path with slashes, and without the work tree made inside the project."""
    return _WORK_TREE.sub("", path.replace("\\", "/"))


def _folder(path: str) -> str:
    """Returns the folder of a file; "" for a file at the root of the project."""
    return path.rpartition("/")[0]


def name_of(path: str) -> str:
    return plain_path(path).rpartition("/")[2]
