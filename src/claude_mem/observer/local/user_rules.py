"""Rules that the user stated: sentences they typed that tell the agent how to work from now on.

Only the user's own typing counts. Pasted plans, skills, logs, fences, quotes and tags are not, and
nothing of a long prompt is: most sentences with "always" or "never" in prompts stand in pasted
text. A table of features with points decides; a sentence that only reaches the lower limit is a
candidate that the user may confirm. So is one that may be pasted: after a line that announces other
text or is no sentence, after words with a colon, or with paragraphs before and after it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from claude_mem.language.prompt import parse_prompt
from claude_mem.observer.local.markdown import sentences
from claude_mem.store.fact_comparison.supersession import is_withdrawal
from claude_mem.types import FactStatus, ProposedFact

LONGEST_TYPED_PROMPT = 1_500
LONGEST_RULE, SHORTEST_RULE = 400, 12
RULE_POINTS, CANDIDATE_POINTS, STANDING_POINTS = 4, 3, 2

LONGEST_INTRODUCTION, LONGEST_LABEL = 8, 2  # words
_BULLET = re.compile(r"\s*(?:[-*•]|\d{1,2}[.)])\s")
_PARAGRAPHS = re.compile(r"\n[ \t]*\n")
_TAG = re.compile(r"<[a-zA-Z][\w-]{0,40}[^<>]{0,200}>")
# Headings and labels of documents state no rules.
_LABEL = re.compile(r"\s*(?:#{1,6}\s|\*\*|[-*•]\s+\*\*|\d{1,2}\.\s+\*\*)")
_QUOTED = re.compile(r"[\"“”«»‹›]|(?<!\w)'[^'\n]{3,}'(?!\w)")

_ACTION = r"(?!be\b|been\b|mind\b|[a-z]{3,}ed\b)[a-z]{2,20}"
# Each feature: its points and a pattern, over the sentence in lower case.
_FEATURES: tuple[tuple[str, int, re.Pattern[str]], ...] = tuple(
    (name, points, re.compile(pattern))
    for name, points, pattern in (
        ("a time without end", 3,
         r"\b(?:from now on|from here on|going forward|in (?:the )?future|henceforth|as a rule"
         r"|at all times|without exception|no matter what)\b"),
        ("always or never, as an order", 3,
         rf"(?:^|[,;:–—-] ?|\b(?:please|and|but|so|also|you|we|i want you to|must|should|shall)"
         rf" )(?:always|never|never ever) {_ACTION}\b"),
        ("always or never, of things in general", 2,
         r"\b(?:are|is|must|should|may|can|shall) (?:always|never)\b"
         r"|\bnot allowed\b|\bno (?:[a-z]+ )?[a-z]+ (?:is|are) (?:ever )?(?:needed|allowed)\b"),
        ("every occasion", 2,
         r"\b(?:whenever|every time|each time|wherever|everywhere|in every|in all|for (?:all|every|"
         r"any) (?:new )?[a-z]+|at all|only when|unless i|unless you|before (?:every|each|any)"
         r"|after (?:every|each|any))\b"),
        ("a prohibition", 2,
         r"(?:^|[,;:] ?|\b(?:please|and|but|so|also|yes|you) )(?:do not|don'?t|dont|avoid|stop)"
         r" (?:ever )?[a-z]{2,}|\b(?:must|should|may) ?n[o']t\b|\bmust never\b"),
        ("an obligation", 1,
         r"\b(?:must|should|shall|need to|needs to|have to|has to|prefer|make sure|ensure)\b"),
        ("addressed to the agent", 1,
         r"^(?:please|yes|ok(?:ay)?|and|also|you|we|i (?:want|prefer|need|don'?t want|expect))\b"
         r"|\byou(?:r|'re)? (?:must|should|need|always|never|can)\b"),
        ("how work is done here", 1,
         r"\b(?:comments?|commits?|commit messages?|tests?|branch(?:es)?|pull requests?|prs?|types?"
         r"|code|functions?|variables?|names?|naming|style|format|lines?|markdown|docs?|lint\w*"
         r"|dependenc\w+|packages?|emojis?|dash(?:es)?|language|english|answers?|repl(?:y|ies)"
         r"|(?:claude|agents?)\.md|instructions?|conventions?|guidelines?|push|force|mocks?)\b"),
        ("said of all of them", 1,
         r"^(?:[a-z]+ ){0,2}[a-z]+s (?:are|must|should) (?:always|never)\b"),
        ("a reason", 1, r"\b(?:because|since|as (?:that|this|it)|otherwise)\b"),
        ("a question", -6,
         r"\?\s*$|^(?:can|could|would|should|shall|why|what|how|is|are|do(?! not)|does)\b"),
        ("only now", -3,
         r"\b(?:(?<!from )now|yet|for now|just yet|this time|first|today|then|here|above|below"
         r"|instead(?! of)|again|continue|go ahead|let'?s|next step)\b"),
        ("an order for this work", -2,
         r"^(?:ok(?:ay)?,? |yes,? |please )?(?:add|fold|create|remove|update|fix|move|rename|commit"
         r"|merge|rebase|delete|change|replace|implement|review|check|look|drop|revert|split|put"
         r"|pick|investigate|build|rewrite|refactor) "),
        ("this thing only", -2,
         r"\b(?:this|that|these|those|the (?:new|current|last|first|same)) (?:pr|branch|commit|"
         r"file|bug|issue|page|button|section|segment|task|step|function|plan|change|error|test)s?\b"),
        ("a wish for the product", -2,
         r"\b(?:visible|display(?:ed)?|shown?|hidden|button|tab|page|header|modal|layout|colou?rs?"
         r"|segment|ui|users?|screen|menu|url|field|flag)\b"),
        ("not sure", -3,
         r"\b(?:maybe|might|could|would|i think|i feel|probably|possibly|theoretically|perhaps"
         r"|not sure|i guess|seems?|looks like|wonder)\b"),
        ("a report", -3,
         r"\b(?:i (?:see|saw|just|still|tried|noticed|got|have|had|already)"
         r"|it (?:is(?! not allowed)|was|does|only)"
         r"|was|were|did|does(?:n'?t)?|failed|works|(?<!when )(?<!if )there(?:'s| is| are))\b"),
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rule:
    text: str  # as the user typed it
    status: FactStatus


@lru_cache(maxsize=4)  # of one prompt there are facts and observations
def find_rules(prompt: str) -> tuple[Rule, ...]:
    rules: dict[str, Rule] = {}
    for sentence, is_certain in _typed(prompt):
        if (status := judge(sentence)) is not None:
            rules.setdefault(sentence, Rule(sentence, status if is_certain else "candidate"))
    return tuple(rules.values())


def judge(sentence: str) -> FactStatus | None:
    """Whether a sentence that the user typed is a rule: surely, perhaps, or not."""
    if not SHORTEST_RULE <= len(sentence) <= LONGEST_RULE:
        return None
    points = rule_points(sentence)
    if points >= RULE_POINTS:
        return "holds"
    return "candidate" if points >= CANDIDATE_POINTS else None


def rule_points(sentence: str) -> int:
    """Rates a sentence; 0 without a feature that says more than an order for the moment."""
    text = " ".join(sentence.lower().replace("’", "'").split())
    matches = [points for _, points, pattern in _FEATURES if pattern.search(text)]
    return sum(matches) if max(matches, default=0) >= STANDING_POINTS else 0


def typed_sentences(prompt: str) -> Iterator[str]:
    """Gives the typed sentences verbatim; none of a prompt that is too long, a plan, or a message
    of the client."""
    return (sentence for sentence, _ in _typed(prompt))


def certain_sentences(prompt: str) -> Iterator[str]:
    """Gives the typed sentences without those that may be pasted."""
    return (sentence for sentence, is_certain in _typed(prompt) if is_certain)


@lru_cache(maxsize=4)  # rules, what takes them back, and places are looked for in the same
def _typed(prompt: str) -> tuple[tuple[str, bool], ...]:
    """Sentences, and whether the user certainly typed them."""
    return tuple(_split_typed(prompt))


def _split_typed(prompt: str) -> Iterator[tuple[str, bool]]:
    parsed = parse_prompt(prompt)
    text = parsed.typed
    is_long = len(parsed.own.strip()) > LONGEST_TYPED_PROMPT
    if parsed.sender != "user" or is_long or text.startswith("/"):
        return
    paragraphs = _PARAGRAPHS.split(text)
    is_announced = False
    for number, paragraph in enumerate(paragraphs):
        is_at_end = number in (0, len(paragraphs) - 1)
        for line in paragraph.splitlines():
            for sentence in _sentences_of(line):
                if sentence in prompt:
                    yield sentence, is_at_end and not is_announced and not _is_reported(sentence)
            is_announced = is_announced or _is_introduction(line)
        is_announced = is_announced or paragraph.rstrip().endswith(":")


def _sentences_of(line: str) -> Iterator[str]:
    if _LABEL.match(line):
        return
    line = _TAG.split(line, maxsplit=1)[0]  # a tag's content is quoted
    for sentence in sentences(line.strip().lstrip("-*• ").strip()):
        if not _QUOTED.search(sentence):
            yield sentence


def _is_introduction(line: str) -> bool:
    """A few words that are no sentence, as "here is the output": what follows may be pasted."""
    is_fragment = line.rstrip()[-1:].isalnum() and not _BULLET.match(line) and ". " not in line
    is_short = 1 < len(line.split()) <= LONGEST_INTRODUCTION
    return is_fragment and is_short and judge(line.strip()) is None


def _is_reported(sentence: str) -> bool:
    """Whether words with a colon come before, such as "the mail says:"; a label has fewer."""
    before, colon, _ = sentence.partition(": ")
    return bool(colon) and len(before.split()) > LONGEST_LABEL


def proposed_rules(prompt: str) -> tuple[ProposedFact, ...]:
    """Proposes rules, and what takes a rule back: with the status past, stored only if there is
    such a rule."""
    rules = {rule.text: rule.status for rule in find_rules(prompt)}
    for sentence, is_certain in _typed(prompt):
        if is_certain and rules.get(sentence) != "holds" and _is_withdrawal(sentence):
            rules[sentence] = "past"
    return tuple(
        ProposedFact("rule", "", text, origin="person", status=status)
        for text, status in rules.items()
    )


def _is_withdrawal(sentence: str) -> bool:
    return (
        SHORTEST_RULE <= len(sentence) <= LONGEST_RULE
        and not sentence.endswith("?")
        and is_withdrawal(sentence)
    )
