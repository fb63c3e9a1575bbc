"""What the lines of a context state: which text of a draft states a result, a change, a cause or a
problem, when two texts say the same, and how they are cut to a line."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from claude_mem.index.text.words import stem
from claude_mem.store.memory_rows import JsonRow
from claude_mem.text import QUESTION_MARKS, one_line, shorten
from claude_mem.title_rules import (
    count_words,
    has_name,
    specific_words,
    stands_alone,
    without_topics,
)
from claude_mem.types import Fact
from claude_mem.word_runs import LENGTH

LONGEST_NAME = 60
_NOT_IN_NAMES = re.compile(r"[^\w ./#@+:-]")
_WORD_OF_NAME = re.compile(r"[^\W\d_]{2,}")
LONGEST_LINE = 240
LOCAL = "local"  # the observer without a model
SAME_SUBJECT = 0.6  # share of common words from which two texts are about the same
SAME_STATEMENT = 0.8  # from which they say the same
_IS_TALK = re.compile(
    r"\b(?:I|I'm|I've|I'll|me|my|you|your|you're|you'll|let's|no response requested)\b",
    re.IGNORECASE,
)
_LIST_MARK = re.compile(r"^(?:>|[-*•]|\d{1,3}[.)])\s+")
# The first sentence has nothing before it that it could refer to.
_REFERS_BACK = re.compile(
    r"(?:that|this|these|those|it|they|and|but|so|also|both)\b", re.IGNORECASE
)
_CODE_NAME = re.compile(
    r"`([^`\n]{3,60})`|\b([a-z]{1,30}[A-Z]\w{2,40}|[A-Z][a-z]{1,30}[A-Z]\w{1,40})\b"
)
_IS_PROBLEM = re.compile(
    r"\b(?:currently|fails?(?!-)|doesn't|does not|lacks?|(?:is|are) never|(?:is|are) missing"
    r"|exact copy|anti-pattern|current approach|ignores|silently|crash(?:es)?"
    r"|(?:bug|issue|problem|cause) (?:is|was))\b",
    re.IGNORECASE,
)
CODE_LINES = re.compile(r"[{};]; |; [})]|^`[^`]*$|(?:^|\s)//\s")
_WORD = re.compile(r"\w+")
_PART_OF_NAME = re.compile(r"[A-Z]?[a-z]+|[A-Z]{2,}")
_REPEATS = re.compile(r"(?:fixup|squash|amend)!|merge (?:branch|pull|remote)|wip\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？]")


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    subject: str = ""  # what it must not repeat; "": it may be repeated
    ids: tuple[str, ...] = ()  # of the observations that it shows
    is_quote: bool = False  # of the user, and says so
    stated: str | None = None  # what it says besides names of files; None: all of it
    is_outside: bool = False  # of somebody else's export
    is_adopted: bool = False  # the user wrote, pinned or confirmed it


@lru_cache(maxsize=2048)  # each context is made anew of mostly the same titles
def is_clear(title: str) -> bool:
    """Whether a line can show it: it is understood alone, and it is no question."""
    statement = without_topics(title).rstrip()
    return stands_alone(statement) and not statement.endswith(QUESTION_MARKS)


def flat(text: str, limit: int = LONGEST_LINE) -> str:
    return shorten(one_line(text), limit)


def name_as_data(name: str) -> str:
    """Shows the name of a branch or directory, which whoever made the repository chose, as data: of
    few letters, and in quotes if it has as many words as a sentence."""
    name = shorten(_NOT_IN_NAMES.sub("?", name), LONGEST_NAME)
    return f'"{name}"' if len(_WORD_OF_NAME.findall(name)) >= LENGTH else name


def long_words(text: str) -> frozenset[str]:
    """Returns the words by which two texts are compared: short words are in every text."""
    return frozenset(word for word in _WORD.findall(text.lower()) if len(word) > 3)


def stems_in(text: str) -> frozenset[str]:
    """Returns the stems of words, also of those in names (`lampWidget`, `lamp_widget`)."""
    words = _PART_OF_NAME.findall(text)
    return frozenset(stem(word.lower()) for word in words if len(word) > 3)


def is_about(words: frozenset[str], subject: frozenset[str], share: float = SAME_SUBJECT) -> bool:
    """Whether most words are in the subject; never for a text without words."""
    return bool(words) and len(words & subject) >= share * len(words)


def first_sentences(text: str, limit: int, title: frozenset[str] = frozenset()) -> str:
    """Whole sentences from the start that fit, without those that say the title again, those of
    the conversation and lines of code."""
    result = ""
    is_first = True
    for sentence in map(unmarked, split_sentences(one_line(text))):
        words = long_words(sentence)
        # One word in common is the subject, not the statement.
        is_title = len(words) > 1 and is_about(words, title, SAME_STATEMENT)
        if is_title or is_talk(sentence) or sentence.endswith(QUESTION_MARKS):
            continue
        is_table = sentence.count(";") > 1
        if is_table or CODE_LINES.search(sentence) or (is_first and _REFERS_BACK.match(sentence)):
            continue
        is_first = False
        longer = f"{result} {sentence}".strip()
        if len(longer) > limit:
            break
        result = longer
    return result


def is_talk(text: str) -> bool:
    """Whether one side addresses the other, which means nothing to a third."""
    return _IS_TALK.search(text) is not None


def split_sentences(line: str) -> Iterator[str]:
    start = 0
    for match in _SENTENCE_END.finditer(line):
        yield line[start : match.end()].strip()
        start = match.end()
    if line[start:].strip():
        yield line[start:].strip()


def is_problem(text: str) -> bool:
    """Whether its first sentence says what is wrong, which holds until it is fixed."""
    return _IS_PROBLEM.search(next(split_sentences(text), "")) is not None


def is_repetition(subject: str) -> bool:
    """Whether a commit repeats another's work: a fix-up or a merge."""
    return _REPEATS.match(subject) is not None


def code_names(text: str) -> frozenset[str]:
    """Identifiers and what is marked as code."""
    return frozenset(quoted or name for quoted, name in _CODE_NAME.findall(text))


def unmarked(title: str) -> str:
    """Removes the mark of a list or a quotation at the start."""
    return _LIST_MARK.sub("", title)


def with_end(text: str) -> str:
    return text if not text or text[-1] in ".!?:;…。！？؟" else f"{text}."


def texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def day_of(record: JsonRow) -> str:
    return str(record["created_at"])[:10]


def id_of(observation: JsonRow) -> str:
    return f"#{observation['id']}"


def joined(items: Iterable[str], limit: int) -> str:
    """A list of at most `limit` items, with the number of the others."""
    rows = list(items)
    more = f" and {len(rows) - limit} more" if len(rows) > limit else ""
    return ", ".join(rows[:limit]) + more


def without_facts(observations: Sequence[JsonRow], facts: Sequence[Fact]) -> list[JsonRow]:
    """Leaves out observations that state one of the facts, as what the user said is both."""
    values = tuple(fact.value for fact in facts)
    return [
        observation
        for observation in observations
        if not (title := without_topics(str(observation["title"] or "")).rstrip(".…"))
        or not any(value.startswith(title) for value in values)
    ]


# What a title or a sentence of a draft states: a result or a change, in contrast to plans, causes
# and remarks that were made on the way

FEWEST_WORDS = 3  # of a heading that says what it is about
_COMMIT_PREFIX = re.compile(r"[a-z]{2,15}(?:\([^()\s]{1,40}\))?!?: ")
_WORK = re.compile(
    r"(?:add|adjust|align|allow|appl|avoid|block|build|bump|cach|chang|clarif|clean|collaps|combin|consolidat|convert|correct|creat"
    r"|default|defer|display|delet|deprecat|detect|disabl|document|drop|enabl|ensur|exclud|expand|expos"
    r"|extend|extract|filter|fix|format|gat|generat|guard|handl|hid|implement|improv|includ|increas|inlin"
    r"|install|instruct|integrat|introduc|limit|link|log|lower|mak|mark|merg|migrat|mov|optimi[sz]|pars|pass|persist|pin|polish"
    r"|prefer|prepar|preserv|prevent|propagat|publish|rais|reduc|refactor|reject|releas|remov|renam"
    r"|reorder|replac|report|requir|reset|resolv|restor|restrict|return|revert|rework|rewrit|rout"
    r"|scal|separat|ship|show|simplif|skip|sort|split|stop|stor|strip|stub|support|surfac|switch|sync|test"
    r"|track|trim|unif|updat|upgrad|us|validat|wir|wrap|writ)"
    r"(?:e|ed|d|ing|y|ied|ning|ped|ting|ted)?\b",
    re.IGNORECASE,
)
# A line of a list whose subject stood above it, a reply, a line of a terminal.
_WITHOUT_SUBJECT = re.compile(
    r"(?:verifi|read|log|stor|return|check|handl|show|list|add|us|updat|remov|mak|creat|ensur|allow"
    r"|catch|set|get|test|run|fetch|push|pull|find|call|send|load|pars|writ)e?s\b(?! (?:for|of)\b)"
    r"|[a-z]{3,14}s `|noted\b|no\b|need\b|[^\w`\"'(#.@/-]"
    r"|(?:including|meaning|and|or|but|which|that|because|so that|where|whose)\b"
    r"|`(?:cp|mv|cd|export|source|chmod|mkdir|curl|sudo|brew|npm|git|docker) ",
    re.IGNORECASE,
)
# Commits that say little of what a session was for, or less than others.
_MINOR = re.compile(
    r"(?:style|lint)(?:\([^()]{1,40}\))?!?:|(?:bump|merge|format|record|reword)\b"
    r"|.*\b(?:nolint|lint\w*|gofmt|whitespace|blank line|typos?|fieldalignment|formatting|changelog"
    r"|(?:review|pr) (?:comments?|feedback)|t\.Parallel)\b",
    re.IGNORECASE,
)
_COSMETIC = re.compile(
    r"\b(?:buttons?|badges?|logos?|icons?|layout|alignment|align|borders?|padding|margins?|spacing"
    r"|fonts?|tooltips?|labels?|placeholders?|wording|readme|typos?|hover|dark mode|css|ui|modals?"
    r"|banners?|home ?pages?|visibility|panels?|landing pages?)\b",
    re.IGNORECASE,
)
_SECONDARY = re.compile(r"(?:chore|ci|build|tests?|docs?)(?:\([^()]{1,40}\))?!?:", re.IGNORECASE)
# A bug as a title: without its fix it reads as if it were still there.
_IS_BUG = re.compile(
    r".*\b(?:instead of|ignores|fails|crashes|breaks|does not|doesn't|duplicates|never"
    r"|is (?:missing|broken|wrong))\b"
    r"|(?:redundant|missing|broken|wrong|incorrect|unused|duplicate|stale|failing)\b",
    re.IGNORECASE,
)
_STARTS_AS_FIX = re.compile(r"\w*fix|bug|resolve|solve", re.IGNORECASE)
# What a session set out to find, not what came of it.
_INQUIRY = re.compile(
    r"(?:explore|investigate|understand|analy[sz]e|look|check|research|discuss|explain|debug"
    r"|find out|see|think|verify|double-check|compare)\b",
    re.IGNORECASE,
)
# Its subject stood before: "Added the parent's lamp".
_OF_SOMEBODY = re.compile(r"[a-z]{3,14}ed the [a-z]{2,20}['’]s\b", re.IGNORECASE)
_LABELLED = re.compile(r"[^:`]{1,40}: ")
_FILE_LABEL = re.compile(r"[\w./-]{1,80}\.\w{1,8}: ")
_BECAME = re.compile(r"`[^`]{1,80}` became `")
FEWEST_SPECIFIC = 2
_SENTENCE_ENDS = ".!?。！？؟"
_WITHOUT_OBJECT = re.compile(
    r"(?:moved|changed|switched|converted|renamed|turned|updated|added|replaced|lists|removed)"
    r" (?:to|into|from|in|on|by|with|so|and|for|at|all)\b",
    re.IGNORECASE,
)
_FILE_ALONE = re.compile(r"(?:Changed|Updated|Edited) \S+(?:(?:, | and )\S+)*$")
# An error that somebody pasted.
_IS_ERROR = re.compile(
    r"(?:remote|fatal|error|warning|panic|traceback|exception)\b ?[:(]|\w{1,40}\[bot\]"
    r"|.*\b(?:permission denied|denied to|no such file|not found$|failed to|cannot find)\b",
    re.IGNORECASE,
)
# A sentence about a state; a heading or a request has none of these.
_IS_STATEMENT = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|did|do|can|could|will|would|should|now|being|been|isn't"
    r"|aren't|wasn't|doesn't|didn't|can't|cannot|won't|confirmed|needs?)\b"
    r"|\b[a-z]{3,}s (?:an?|the|`)|^(?:the|this|no|when|waiting)\b|^(?-i:[^A-Z])|,|→",
    re.IGNORECASE,
)
FEWEST_CHANGE_WORDS = 4
LONGEST_LABEL = 60
FIRST_SENTENCES = 3
_PAST = (
    r"(?:added|adjusted|aligned|applied|bumped|built|capped|centrali[sz]ed|changed|clarified|cleaned"
    r"|collapsed|consolidated|converted|corrected|created|cut|de-?duplicated|deleted|disabled"
    r"|documented|dropped|enabled|excluded|expanded|exposed|extended|extracted|fixed|folded|guarded"
    r"|hid|hidden|implemented|improved|inlined|introduced|kept|limited|made|merged|migrated|moved"
    r"|narrowed|pinned|raised|rebuilt|reduced|refactored|registered|relaxed|removed|renamed"
    r"|reordered|replaced|reset|resolved|restored|restricted|reused|reverted|rewrote|rewritten"
    r"|routed|shortened|simplified|skipped|split|stripped|switched|swapped|tightened|trimmed"
    r"|turned|unified|updated|upgraded|wired|wrapped|wrote)"
)
_IS_CHANGE = re.compile(
    rf"(?:also |now |was |were |has been |have been )?{_PAST}\b"
    r"|.*?\b(?:now (?:[a-z]+s|use|have|run|are)|no longer|instead of)\b"
    rf"|[^.]{{3,60}} (?:was|were|has been|have been|is|are) (?:now )?{_PAST}\b"
    r"|(?:the|this) (?:fix|change|update) (?:add|remove|move|replace|make|use|change|split)s\b",
    re.IGNORECASE,
)
# What is right before a commit and worth nothing after it.
_PASSES = re.compile(
    r"\b(?:tree (?:is )?clean|working tree|all green|build green|tests? pass\w*"
    r"|lint\w* (?:is )?clean|pushed|force-push\w*|with lease|fixups?|squashed|rebased|committed"
    r"|checks? pass\w*)\b",
    re.IGNORECASE,
)
_IS_CAUSE = re.compile(r"\b(?:because|since|due to|caused|root cause)\b|, so \w", re.IGNORECASE)
_IS_PURPOSE = re.compile(
    r"(?:the )?(?:goal|aim|purpose|idea|fix|solution|approach|intent)"
    r"(?: here)?(?: is| was|:| —| –) ",
    re.IGNORECASE,
)
_IS_PAST = re.compile(r"\b(?:was|were|had|did)\b", re.IGNORECASE)
_HASH = re.compile(r"`?[0-9a-f]{7,40}`?\b")
_LABEL = re.compile(rf"((?:[^:;.!?]|\.(?=\S)){{1,{LONGEST_LABEL}}}?)(?::| [—–-]) (?=\S)")
_HAS_NAME = re.compile(r"[`./_]|\(\)|[a-z][A-Z]")


def says_what_was_done(title: str) -> bool:
    """A commit's subject, an action, or a heading."""
    if _WITHOUT_OBJECT.match(title) or _IS_ERROR.match(title):
        return False
    return starts_as_work(title) or _is_heading(title) or is_edit_of_file(title)


def is_edit_of_file(title: str) -> bool:
    """ "lamp.py: added `blink`", "lamp.py: `on` became `off`"."""
    file = _FILE_LABEL.match(title)
    statement = title[file.end() :] if file else ""
    return bool(_WORK.match(statement) or _BECAME.match(statement))


def rank_of_result(text: str, *, is_draft: bool) -> int | None:
    """What says what was done, best first; None for a remark of a draft."""
    label = _LABELLED.match(text)
    statement = text[label.end() :] if label else text
    is_remark = _WITHOUT_SUBJECT.match(text) or _WITHOUT_SUBJECT.match(statement)
    if is_remark or (is_draft and is_vague(text)):
        return None
    if starts_as_work(text):
        return 1
    if _is_heading(text):
        return 2
    return None if is_draft or _FILE_ALONE.match(text) else 3


def as_done(title: str) -> str:
    """A title for work that was done: a bug is told as fixed."""
    is_bug = _IS_BUG.match(title) and not starts_as_work(title) and not _STARTS_AS_FIX.match(title)
    return f"Fix: {title}" if is_bug else title


def main_first(commits: Sequence[str], goal: str) -> list[str]:
    """Orders the commits of a session, latest first: what is about its goal, then features, then
    what came first; what follows is mostly about that."""
    words = long_words(goal)

    def order(commit: str) -> tuple[bool, bool, bool, bool]:
        is_goal = is_about(words, long_words(commit))
        return is_minor(commit), not is_goal, is_secondary(commit), not commit.startswith("feat")

    oldest_first = commits[::-1]
    return sorted(oldest_first, key=order)


def is_minor(title: str) -> bool:
    return _MINOR.match(title) is not None


def is_cosmetic(title: str) -> bool:
    """Whether a title is about how something looks or reads: told only where little else is."""
    return _COSMETIC.search(title) is not None


def without_replaced(commits: Sequence[str]) -> list[str]:
    """Leaves out, of the commits of a session, latest first, those that a later one of their type
    is about."""
    current: list[tuple[str, frozenset[str]]] = []
    for commit in commits:
        prefix, words = commit_type(commit), _subject_stems(commit)
        is_replaced = any(
            commit_type(later) == prefix and _is_same_subject(words, other)
            for later, other in current
        )
        if not is_replaced:
            current.append((commit, words))
    return [commit for commit, _ in current]


def commit_type(title: str) -> str:
    """Returns "feat(lamp)" of "feat(lamp): blink"; empty if it has none."""
    prefix = _COMMIT_PREFIX.match(title)
    return prefix[0].rstrip("!: ") if prefix else ""


def _subject_stems(commit: str) -> frozenset[str]:
    subject = commit[len(prefix[0]) :] if (prefix := _COMMIT_PREFIX.match(commit)) else commit
    return frozenset(stem(word) for word in long_words(subject))


def _is_same_subject(words: frozenset[str], other: frozenset[str]) -> bool:
    fewest = min(len(words), len(other))
    return fewest >= FEWEST_WORDS and len(words & other) >= SAME_SUBJECT * fewest


def is_secondary(title: str) -> bool:
    """Whether a commit is minor, or about tests, documents or the build: told only if alone."""
    return is_minor(title) or _SECONDARY.match(title) is not None


def is_fragment(text: str) -> bool:
    """Whether its subject or object stood somewhere else."""
    return bool(_WITHOUT_SUBJECT.match(text) or _WITHOUT_OBJECT.match(text))


def is_vague(title: str) -> bool:
    """An inquiry, or too few words that say what it is about."""
    if _INQUIRY.match(title) or _IS_ERROR.match(title) or _OF_SOMEBODY.match(title):
        return True
    return (
        not has_name(title) and len(specific_words(_WORK.sub("", title, count=1))) < FEWEST_SPECIFIC
    )


def starts_as_work(title: str) -> bool:
    if _FILE_ALONE.match(title):
        return False
    return bool(_COMMIT_PREFIX.match(title) or _WORK.match(title))


def _is_heading(title: str) -> bool:
    if count_words(title) < FEWEST_WORDS or _FILE_ALONE.match(title):
        return False
    if not title.isascii() and any(c.isalpha() and not c.isascii() for c in title):
        # The words of a statement are known in English only.
        return title[-1] not in _SENTENCE_ENDS
    return not _IS_STATEMENT.search(title)


def changes_in(text: str, limit: int, title: frozenset[str] = frozenset()) -> str:
    """What was changed, in order, as much as fits; nothing that says the title again."""
    result = ""
    for clause in _clauses(text):
        words = long_words(clause)
        if len(words) > 1 and is_about(words, title, SAME_STATEMENT):
            continue
        if is_about(words, long_words(result)):
            continue
        longer = f"{result} {clause}".strip()
        if len(longer) > limit:
            break
        result = longer
    return result


def problem_in(text: str, limit: int, title: frozenset[str]) -> str:
    """The sentence at the beginning that says what was wrong with the subject of the title."""
    sentences = list(map(unmarked, split_sentences(one_line(text))))
    for sentence in sentences[:FIRST_SENTENCES]:
        words = long_words(sentence)
        is_same = is_about(words, title, SAME_STATEMENT)
        if is_problem(sentence) and words & title and not is_same and _is_whole(sentence, limit):
            return _without_lead_in(sentence)
    return ""


def purpose_in(text: str, limit: int) -> str:
    """The sentence that says what something was for, or how a problem was to be solved."""
    for sentence in map(unmarked, split_sentences(one_line(text))):
        if _IS_PURPOSE.match(sentence) and _is_whole(sentence, limit):
            return sentence
    return ""


def _without_lead_in(sentence: str) -> str:
    """Removes "Two things are needed:", which names nothing."""
    label = _LABEL.match(sentence)
    return sentence[label.end() :] if label and not _HAS_NAME.search(label[1]) else sentence


def elaboration_in(text: str, limit: int, title: frozenset[str]) -> str:
    """A sentence that says what the title says, and more."""
    for sentence in map(unmarked, split_sentences(one_line(text))):
        words = long_words(sentence)
        is_more = is_about(title, words) and len(words) > len(title)
        if is_more and not is_problem(sentence) and _is_whole(sentence, limit):
            return sentence
    return ""


def cause_in(text: str, limit: int) -> str:
    """The sentence at the beginning that says why something failed, in the past."""
    sentences = list(map(unmarked, split_sentences(one_line(text))))
    for sentence in sentences[:FIRST_SENTENCES]:
        if _IS_CAUSE.search(sentence) and _IS_PAST.search(sentence) and _is_whole(sentence, limit):
            return sentence
    return ""


def _is_whole(sentence: str, limit: int) -> bool:
    if len(sentence) > limit or is_talk(sentence) or sentence.endswith(QUESTION_MARKS):
        return False
    return not (CODE_LINES.search(sentence) or _HASH.match(sentence) or is_fragment(sentence))


def _clauses(text: str) -> Iterator[str]:
    for sentence in split_sentences(one_line(text)):
        for part in unmarked(sentence).split("; "):
            if clause := _change(part.strip()):
                yield clause if clause[-1] in ".!:" else f"{clause}."


def _change(clause: str) -> str:
    """The clause, without a label that names nothing; empty if it tells no change."""
    if is_talk(clause) or clause.endswith(QUESTION_MARKS) or CODE_LINES.search(clause):
        return ""
    if len(clause.split()) < FEWEST_CHANGE_WORDS or _PASSES.search(clause) or clause.count("`") % 2:
        return ""
    label = _LABEL.match(clause)
    rest = clause[label.end() :] if label else clause
    if label and _IS_CHANGE.match(rest):
        if is_fragment(rest):
            return ""
        return clause if _HAS_NAME.search(label[1]) else rest[0].upper() + rest[1:]
    return clause if _IS_CHANGE.match(clause) and not is_fragment(clause) else ""
