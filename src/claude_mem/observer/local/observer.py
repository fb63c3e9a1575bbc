"""The observer without a model: it selects from what the user, the agent and its tools wrote.

Deterministic. What was said in a turn is split into passages; learned weights tell which of them
are worth keeping, which text makes the best title, and whether the turn is worth an observation.
The selected passages are joined: neighbouring sentences into a narrative, the rest into facts.
Commands, faults and open steps are typed values.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from claude_mem.observer import LOCAL
from claude_mem.observer.local import cues
from claude_mem.observer.local.content_words import content_words, novelty
from claude_mem.observer.local.empty_phrases import is_empty_phrase, without_opening
from claude_mem.observer.local.evidence import (
    Candidate,
    TurnEvidence,
    UserRequest,
    short_request,
)
from claude_mem.observer.local.markdown import MessagePassage, passages_in, sentences
from claude_mem.observer.local.proposed_facts import (
    find_obstacles,
    propose_facts,
    propose_places,
)
from claude_mem.observer.local.provenance import with_outside_words
from claude_mem.observer.local.scoring import (
    CLEAR,
    CLEAR_OF_EDITS,
    DETAILS,
    RankedTitle,
    ScoredTurn,
    is_written_as_title,
    score_turn,
    select_passages,
    tells_stopped_commit,
)
from claude_mem.observer.local.titles import wording
from claude_mem.observer.local.titles.candidates import TITLES, after_file
from claude_mem.observer.local.titles.lasting import says_nothing_lasting
from claude_mem.observer.local.titles.wording import STATED_REASONS, asked_title, topics_of
from claude_mem.observer.local.tool_uses import Failure, FileWork
from claude_mem.observer.local.user_rules import proposed_rules
from claude_mem.observer.local.version import VERSION
from claude_mem.text import COLONS, QUESTION_MARKS, shorten
from claude_mem.title_rules import Topic, has_name, is_complete, with_topics, without_topics
from claude_mem.types import (
    COMMAND_PURPOSES,
    CommandRun,
    Distillate,
    EnvironmentFault,
    Observation,
    ObservationType,
    OpenStep,
    ProposedFact,
    Summary,
    Turn,
    Verbosity,
)

OBSERVED_FILES, OBSERVED_FILES_READ, MAX_REPLACEMENTS = 4, 1, 4  # the summary has more
MIN_TITLE_NOVELTY = 0.25  # a passage with fewer new words only repeats the title

_CONVENTIONAL_TYPES: tuple[tuple[str, ObservationType], ...] = (
    ("fix", "bugfix"), ("hotfix", "bugfix"), ("feat", "feature"), ("refactor", "refactor"),
    ("perf", "refactor"), ("style", "refactor"),
)  # fmt: skip
_TYPE_PATTERNS: tuple[tuple[ObservationType, re.Pattern[str]], ...] = (
    ("bugfix", re.compile(
        r"\b(?:fix(?:e[sd]|ing)?|bugs?|crash\w*|errors?|broken|fail(?:s|ed|ing|ure)?|regress\w*|wrong"
        r"|flood\w*|leak\w*|does(?:n't| not)|can(?:'t|not)|not work\w*|issue|weird|stuck)\b",
        re.I)),
    ("refactor", re.compile(
        r"\b(?:refactor\w*|renam\w+|clean\w* ?up|extract\w*|simplif\w+|restructur\w+|consolidat\w+"
        r"|mov(?:e[sd]?|ing)|reorgani[sz]\w+|dedup\w*|merge[sd]?)\b", re.I)),
    ("feature", re.compile(
        r"\b(?:add(?:s|ed|ing)?|implement\w*|creat\w+|introduc\w+|support\w*|new|build|enable\w*"
        r"|allow\w*)\b", re.I)),
)  # fmt: skip
_CONCEPTS: dict[ObservationType, tuple[str, ...]] = {
    "bugfix": ("problem-solution",),
    "feature": ("what-changed",),
    "refactor": ("what-changed",),
    "change": ("what-changed",),
    "discovery": ("how-it-works",),
    "decision": ("trade-off",),
}
LONGEST_LABEL = 60
MOST_SENTENCES = 4
LONGEST_ERROR, LONGEST_COMPLETED = 110, 160
MAX_FILES_READ, MAX_FAILURES, MAX_COMMITS = 2, 3, 3
MAX_BESIDE_EDITS = 2  # files that were read where others were edited
MAX_STEPS = 6
MIN_NOVELTY = 0.3  # share of words that the observation does not have
ANNOUNCED = "announced"
PREFERENCE = "preference"  # the concept of a rule of the user


# The observation


def distil(turn: Turn, verbosity: Verbosity = "normal") -> Distillate:
    detail = DETAILS[verbosity]
    scored = score_turn(turn, detail)
    title, topics = title_with_topics(turn, scored)
    passages = select_passages(scored, title, detail)
    observations = build_observations(scored, passages, title, topics)
    rules = proposed_rules(turn.prompt or "")
    observed = "\n".join(observation.text for observation in observations)
    summary = build_summary(scored, passages, title, observed)
    # What was asked stays the same while a turn goes on; what came of it does not.
    session_title = request_title(scored) or title
    has_subtitle = says_more_than(session_title, content_words(summary.completed or ""))
    distillate = Distillate(
        summary=summary,
        observations=(*observations, *_rule_observations(rules)),
        title=session_title or None,
        subtitle=summary.completed if has_subtitle else None,
        observer=LOCAL,
        version=VERSION,
        facts=(
            *rules,
            *propose_facts(turn),
            *propose_places(turn),
            *find_obstacles(turn),
        ),
    )
    return with_outside_words(turn, distillate)


class TitleChoice(NamedTuple):
    text: str
    needs_topic: bool = False  # it may not be understood without what the turn was about
    needs_reason: bool = False  # it says nothing without why


def title_with_topics(turn: Turn, scored: ScoredTurn) -> tuple[str, Sequence[Topic]]:
    """The first title that no previous turn of the session has; empty if there is none."""
    first_lines = (text.partition("\n")[0] for text in scored.recent_memories)
    previous = {without_topics(line).lower() for line in first_lines}
    choices = _by_clarity(scored) if scored.is_english else map(TitleChoice, _by_structure(scored))
    for choice in choices:
        if not choice.text or choice.text.lower() in previous:
            continue
        topics = topics_of(turn, scored.evidence, choice.text) if choice.needs_topic else ()
        if not choice.needs_reason or any(topic.kind in STATED_REASONS for topic in topics):
            return choice.text, topics
    return "", ()


def _by_clarity(scored: ScoredTurn) -> Iterator[TitleChoice]:
    """The clear ones, what the edits tell, plans, new files, the request; of edits the clearest at
    least.

    A clause that names nothing is taken only where no other one is clear."""
    evidence = scored.evidence
    ranked = scored.titles
    if wording.is_commit_request(evidence.request.text):
        # What stopped a commit rather than what it commits.
        yield from (_chosen(each) for each in ranked if tells_stopped_commit(each.title.text))
    files = evidence.files.values()
    least = CLEAR_OF_EDITS if files else CLEAR
    clear = [each for each in ranked if each.is_clearer_than(least)]
    sure = [each for each in clear if each.is_surely_clearer_than(least)]
    for each in (*sure, *clear):
        yield _chosen(each)._replace(text=after_file(each.title, files))
    yield TitleChoice(wording.from_edits(files), needs_topic=True)
    plan = wording.from_plan(evidence.request.plan_title)
    if not says_nothing_lasting(plan, has_edits=bool(files)):
        yield TitleChoice(plan)
    yield TitleChoice(wording.of_created_files(files), needs_topic=True)
    yield TitleChoice(asked_title(evidence.request), needs_topic=True)
    if files:
        yield from map(_chosen, sorted(ranked, key=lambda each: -each.clarity))
        yield TitleChoice(wording.of_changed_files(files), needs_topic=True, needs_reason=True)


def _chosen(ranked: RankedTitle) -> TitleChoice:
    """What was written as a title needs no topic if it names something."""
    text = ranked.title.text
    return TitleChoice(text, not (is_written_as_title(ranked.title) and has_name(text)))


def _by_structure(scored: ScoredTurn) -> Iterator[str]:
    """What was written as a title, then the request, then the first words of the answer."""
    request = scored.evidence.request
    written = [
        each.title.text
        for each in scored.titles
        if each.title.source in TITLES and each.title.cut == "all"
    ]
    said = [c.text for c in scored.candidates if c.origin == "final" and c.passage.kind == "prose"]
    for title in (
        wording.from_plan(request.plan_title),
        *written,
        wording.from_request(request.text),
        *map(wording.from_sentence, said),
    ):
        if title and is_complete(title, is_english=False):
            yield title
    files = scored.evidence.files.values()
    yield wording.from_edits(files)
    yield wording.of_created_files(files)


def request_title(scored: ScoredTurn) -> str:
    """Returns a title for the session, where the turn has none: what the user asked for."""
    request = scored.evidence.request
    title = wording.from_plan(request.plan_title) or wording.from_request(request.text)
    return title if title and is_complete(title, is_english=scored.is_english) else ""


def build_observations(
    scored: ScoredTurn, passages: list[Candidate], title: str, topics: Sequence[Topic] = ()
) -> tuple[Observation, ...]:
    evidence = scored.evidence
    if not title or not scored.is_worth_observing:
        return ()
    main = [c for c in passages if says_more_than(title, content_words(c.text))]
    type_ = classify_type(evidence.request, title, evidence.subjects, bool(evidence.files))
    narrative, facts = narrative_and_facts(main, scored.scores)
    if not narrative and not facts:
        facts = _replacements(evidence.files, scored.recent_memories)
    edits = [source for work in evidence.files.values() for source in work.sources]
    observation = Observation(
        type=type_,
        title=with_topics(title, topics),
        narrative=narrative,
        facts=facts,
        concepts=classify_concepts(type_, [candidate.text for candidate in passages]),
        # Where files were edited, the summary alone has those that were read.
        files_read=() if evidence.files else evidence.all_files_read(OBSERVED_FILES_READ),
        files_modified=tuple(list(evidence.files)[:OBSERVED_FILES]),
        sources=tuple(dict.fromkeys((*evidence.sources, *_sources(main), *edits))),
    )
    return (observation,)


def _rule_observations(rules: Iterable[ProposedFact]) -> Iterator[Observation]:
    """Makes one observation for each sure rule: what the user said is a decision."""
    for rule in rules:
        if rule.status == "holds":
            title = wording.from_rule(rule.value)
            narrative = rule.value if rule.value != title else None
            yield Observation("decision", title, narrative=narrative, concepts=(PREFERENCE,),
                              origin="person")  # fmt: skip


def _sources(candidates: list[Candidate]) -> Iterator[int]:
    for candidate in candidates:
        yield from candidate.sources


def says_more_than(title: str, words: frozenset[str]) -> bool:
    return novelty(words, content_words(title)) > MIN_TITLE_NOVELTY


def _replacements(files: dict[str, FileWork], recent_memories: Sequence[str]) -> tuple[str, ...]:
    """The edits themselves, for a turn whose messages do not describe them."""
    replacements = [
        f"{work.path}: `{before}` became `{after}`"
        for work in files.values()
        for before, after in work.replacements
    ]
    new = [text for text in replacements if not any(text in memory for memory in recent_memories)]
    return tuple(new[:MAX_REPLACEMENTS])


def classify_type(
    request: UserRequest, title: str, subjects: list[str], edited: bool
) -> ObservationType:
    if not edited and not request.plan and not _is_commit_title(title, subjects):
        return "discovery"
    for subject in subjects:
        for prefix, type_ in _CONVENTIONAL_TYPES:
            if re.match(rf"{prefix}\b", subject, re.IGNORECASE):
                return type_
    first = title.split(" ", 1)[0]
    for text in (first, title, request.text[:300]):
        for type_, pattern in _TYPE_PATTERNS:
            if pattern.search(text):
                return type_
    return "change"


def _is_commit_title(title: str, subjects: list[str]) -> bool:
    """A turn that commits has changed something, even if no edit of it was recorded."""
    return any(title.lower() in subject.lower() for subject in subjects)


def classify_concepts(type_: ObservationType, texts: Collection[str]) -> tuple[str, ...]:
    concepts = list(_CONCEPTS[type_])
    has_cause = any(cues.CAUSE.matches(text) for text in texts)
    if has_cause and type_ == "discovery":
        concepts.append("gotcha")  # a cause that the turn did not fix still holds
    elif has_cause and type_ != "bugfix":
        concepts.append("why-it-exists")
    if "trade-off" not in concepts and any(cues.CHOICE.matches(text) for text in texts):
        concepts.append("trade-off")
    return tuple(concepts)


# Passages, joined


def narrative_and_facts(
    candidates: Sequence[Candidate], scores: Sequence[float]
) -> tuple[str | None, tuple[str, ...]]:
    """`scores` of all candidates of the turn, by position.

    The narrative is what was said next to each other, in order: the best runs of sentences, up to
    four sentences. Sentences of other places are facts of their own.
    """
    runs = _runs([c for c in candidates if not _is_fact(c.passage)])
    runs.sort(key=lambda run: -max(scores[c.position] for c in run))
    chosen: list[Candidate] = []
    others: list[list[Candidate]] = []
    for run in runs:
        if len(chosen) + len(run) <= MOST_SENTENCES or not chosen:
            chosen += run
        else:
            others.append(run)
    chosen.sort(key=lambda candidate: candidate.position)
    items = [[c] for c in candidates if _is_fact(c.passage)]
    rest = sorted([*others, *items], key=lambda run: run[0].position)
    return join_passages(c.passage for c in chosen), tuple(_facts(rest))


def _runs(candidates: Iterable[Candidate]) -> list[list[Candidate]]:
    """Sentences that follow one another in their text, at most four."""
    runs: list[list[Candidate]] = []
    for candidate in candidates:
        last = runs[-1][-1] if runs else None
        follows = last is not None and (
            candidate.position == last.position + 1
            and candidate.number == last.number + 1
            and candidate.origin == last.origin
        )
        if follows and len(runs[-1]) < MOST_SENTENCES:
            runs[-1].append(candidate)
        else:
            runs.append([candidate])
    return runs


def join_passages(passages: Iterable[MessagePassage]) -> str | None:
    """Joins passages with a space between sentences, except in scripts without spaces."""
    return re.sub(r"(?<=[。！？]) ", "", " ".join(map(as_sentence, passages))) or None


def _facts(runs: Iterable[list[Candidate]]) -> Iterable[str]:
    """List items with the same label or lead-in become one fact."""
    for label, group in groupby(runs, lambda run: _fact_label(run[0].passage)):
        texts = [_fact_text(run) for run in group]
        if label:
            yield f"{label}: {'; '.join(texts)}"
        else:
            yield from texts


def _fact_text(run: list[Candidate]) -> str:
    if len(run) > 1:
        return join_passages(c.passage for c in run) or ""
    return run[0].text.rstrip(":：")


def as_sentence(passage: MessagePassage) -> str:
    text = without_opening(passage.text)
    if text.endswith(COLONS):  # what it leads to is not here
        return text[:-1] + ("。" if text.endswith("：") else ".")
    return text if text[-1:] in ".!?:;。！？؟…`" else text + "."


def _fact_label(passage: MessagePassage) -> str:
    """Returns a label for a fact; empty if the text itself says what it is about."""
    if not _is_fact(passage):
        return ""
    label = passage.label
    if passage.own_label or (label and passage.text.startswith(label)):
        return ""
    if label and ("`" in label or "." in label or "/" in label or label.istitle()):
        return label if len(label) <= LONGEST_LABEL else ""
    lead = passage.lead
    is_telling = not cues.GENERIC_HEADING.match(lead) and not is_empty_phrase(lead.lower())
    return lead if lead and is_telling and len(lead) <= LONGEST_LABEL else ""


def _is_fact(passage: MessagePassage) -> bool:
    return passage.kind in ("item", "row") or (
        passage.text.startswith("`") and ": " in passage.text
    )


# The summary


def build_summary(
    scored: ScoredTurn, passages: list[Candidate], title: str, observed: str
) -> Summary:
    """`observed`: the text of the turn's observations, which is not told again."""
    evidence = scored.evidence
    steps = scored.steps[:MAX_STEPS]
    learned = "" if observed else _learned(scored, passages)
    completed = _completed(scored, (title, learned))
    if novelty(content_words(learned), content_words(completed)) < MIN_NOVELTY:
        learned = ""
    if novelty(content_words(completed), content_words(observed)) < MIN_NOVELTY:
        completed = ""
    summary = Summary(
        request=_request(evidence, title) or None,
        investigated=evidence.research or None,
        learned=learned or None,
        completed=completed or None,
        next_steps=join_passages(candidate.passage for candidate in steps),
        notes=" ".join(_notes(scored, f"{completed}\n{observed}")) or None,
        files_read=evidence.all_files_read(MAX_BESIDE_EDITS if evidence.files else MAX_FILES_READ),
        files_edited=tuple(evidence.files),
        commands=_commands(evidence),
        faults=_faults(evidence),
        open_steps=_open_steps(steps),
        sources=evidence.sources,
    )
    return _with_announced_steps(summary, evidence)


def _request(evidence: TurnEvidence, title: str) -> str:
    if evidence.request.plan:
        return wording.from_plan(evidence.request.plan_title) or title
    return short_request(evidence)


def _learned(scored: ScoredTurn, passages: list[Candidate]) -> str:
    """The first cause that was told; the narrative of an observation, had it a title."""
    if scored.is_worth_observing:
        return narrative_and_facts(passages, scored.scores)[0] or ""
    causes = (
        wording.from_sentence(candidate.text)
        for candidate in passages
        if candidate.origin in ("final", "statement") and cues.CAUSE.matches(candidate.text)
    )
    return next((cause for cause in causes if cause), "")


def _completed(scored: ScoredTurn, exclude: tuple[str, ...]) -> str:
    """The subject of a commit, else a clause of the last message."""
    subjects = scored.evidence.subjects
    if subjects and (subject := wording.from_commit(subjects[-1])):
        return subject
    for candidate in (each.title for each in scored.titles):
        if candidate.source == "final" and candidate.cut in ("all", "first clause"):
            text = wording.from_sentence(candidate.text)
            if text and text not in exclude and is_complete(text, is_english=scored.is_english):
                return text
    return _short_message(scored.evidence.final)


def _short_message(final: str) -> str:
    """The first words of a message, unless it has nothing but empty phrases."""
    texts = (passage.text for passage in passages_in(final) if passage.kind == "prose")
    text = next((t for t in texts if not is_empty_phrase(t.lower()) and t[-1] not in ":："), "")
    return shorten(without_opening(text), LONGEST_COMPLETED)


def _notes(scored: ScoredTurn, told: str) -> Iterator[str]:
    """Failures that are no faults, commits, and the error that ended the turn. `told`: by the other
    texts of the turn."""
    log = scored.evidence.commands
    words = content_words(told)
    for failure in log.failures[:MAX_FAILURES]:
        note = _failure_note(failure)
        is_repeated = any(note in text for text in scored.recent_memories)
        if not failure.is_environment_fault and not is_repeated:
            yield note
    for subject, commit_hash in list(log.commits.items())[-MAX_COMMITS:]:
        yield _commit_note(subject, commit_hash, words)
    if scored.evidence.error:
        yield f"Ended by an error: {shorten(scored.evidence.error, LONGEST_ERROR)}"


def _commit_note(subject: str, commit_hash: str, told: frozenset[str]) -> str:
    if novelty(content_words(wording.from_commit(subject)), told) < MIN_NOVELTY:
        return f"Committed as {commit_hash}." if commit_hash else "Committed."
    return f"Committed: {subject} ({commit_hash})." if commit_hash else f"Committed: {subject}."


def _failure_note(failure: Failure) -> str:
    text = f"`{failure.command}` failed ({shorten(_without_end(failure.error), LONGEST_ERROR)})"
    if failure.alternative:
        text += f"; `{failure.alternative}` worked"
    if failure.fixed_by:
        return f"{text}; it passed {failure.fixed_by}."
    return f"{text}; not fixed in this turn."


def _without_end(error: str) -> str:
    return error.rstrip(".:")


def _commands(evidence: TurnEvidence) -> tuple[CommandRun, ...]:
    """The last test, check, start and release, each after one that failed or that ran elsewhere."""
    runs = list(evidence.commands.runs.values())
    return tuple(
        run
        for purpose in COMMAND_PURPOSES
        for run in _last_runs([run for run in runs if run.purpose == purpose])
    )


def _last_runs(runs: list[CommandRun]) -> list[CommandRun]:
    """`runs` of one purpose."""
    last = runs[-1:]
    others = [run for run in runs[:-1] if run.outcome == "failed" or run.scope != last[0].scope]
    return [*others[-1:], *last]


def _faults(evidence: TurnEvidence) -> tuple[EnvironmentFault, ...]:
    return tuple(
        EnvironmentFault(f.command, _without_end(f.error), f.alternative, f.sources)
        for f in evidence.commands.failures[:MAX_FAILURES]
        if f.is_environment_fault
    )


def _open_steps(steps: list[Candidate]) -> tuple[OpenStep, ...]:
    texts = ((_without_questions(as_sentence(step.passage)), step.sources) for step in steps)
    return tuple(OpenStep(text, sources) for text, sources in texts if text)


def _without_questions(text: str) -> str:
    """An offer of the agent ends with its session."""
    return " ".join(s for s in sentences(text) if not s.endswith(QUESTION_MARKS))


def _with_announced_steps(summary: Summary, evidence: TurnEvidence) -> Summary:
    """Adds first what the agent calls open itself; the others and `completed` do not repeat it."""
    texts = evidence.announced_steps
    if not texts:
        return summary
    announced = (OpenStep(text, evidence.final_sources, ANNOUNCED) for text in texts)
    others = [step for step in summary.open_steps if not _repeats(step.text, texts)]
    rest = [s for s in sentences(summary.next_steps or "") if not _repeats(s, texts)]
    completed = summary.completed
    return replace(
        summary,
        open_steps=(*announced, *others),
        next_steps=" ".join((*(_with_full_stop(text) for text in texts), *rest)),
        completed=None if completed and _repeats(completed, texts) else completed,
    )


def _with_full_stop(text: str) -> str:
    return text if text.endswith((".", "!", "。", "！")) else f"{text}."


def _repeats(text: str, steps: list[str]) -> bool:
    bare = _bare(text)
    return any(_bare(step) in bare or bare in _bare(step) for step in steps)


def _bare(text: str) -> str:
    return re.sub(r"\W+", " ", text.lower()).strip()
