"""Words and shapes of sentences that the models know: each is a feature, none decides alone.

The words are English, the language of most agents. What is written in another language is judged
by the shapes: names, numbers, length and place.
"""

import re

_WORD = re.compile(r"\w{3,}")

NAME = re.compile(
    r"`[^`\n]{1,120}`|--[a-z][\w-]{1,40}|#\d{1,7}\b"
    r"|\b\w{1,60}+[./]\w[\w./-]{0,100}+|\b\w{1,60}+\(\)"
    r"|\b[a-z]{1,40}+[A-Z]\w{1,60}+|\b[A-Z][a-z]{1,40}+[A-Z]\w{1,60}+|\b[A-Za-z]{1,40}_\w{1,60}"
    r"|\b[A-Z]{4,40}\b"
)
NUMBER = re.compile(r"\d")
ANNOUNCEMENT = re.compile(
    r"(?:now,? |ok,? |okay,? |alright,? |good[,.] |great[,!.] |perfect[,!.] )?"
    r"(?:i'll|let me|i will|i'm going to|let's|now let me|now i|i need to|i should"
    r"|first,? (?:let|i)|next,? (?:let|i)|checking|looking|running|reading|searching)\b",
    re.IGNORECASE,
)
CAUSE = re.compile(
    r"\b(?:because|root cause|since|due to|caused|reason|so that|therefore|which means|turns out"
    r"|actually|the (?:issue|problem|bug|fix) )\b",
    re.IGNORECASE,
)
CHANGE = re.compile(
    r"\b(?:added|removed|fixed|changed|replaced|renamed|moved|updated|now |instead of|no longer"
    r"|created|implemented|refactored|extracted|dropped|uses?|returns?)\b",
    re.IGNORECASE,
)
LIMIT = re.compile(
    r"\b(?:must|never|always|should|can't|cannot|won't|doesn't|not|only|unless|don't)\b",
    re.IGNORECASE,
)
STATUS = re.compile(
    r"\b(?:tests? pass|committed|pushed|done|clean|lint|build (?:succeeds|passes)"
    r"|working tree|ready|successfully|completed?)\b",
    re.IGNORECASE,
)
NEXT = re.compile(
    r"\b(?:next|want me to|should i|would you|let me know|follow-?up|todo|remaining|left|deferred"
    r"|later|open question|still (?:needs?|has|have|must))\b",
    re.IGNORECASE,
)
OFFER = re.compile(
    r"\b(?:want me to|should i|shall i|would you|do you want|let me know|your call)\b",
    re.IGNORECASE,
)
# What is left to do, whatever the model says.
LEFT_TO_DO = re.compile(
    r"^(?:next|todo|follow-?up|remaining|still open|left to do)(?: steps?)?\s?[:：]\s"
    r"|\b(?:must still|still (?:needs? to|must|has to|have to)|(?:is|are) still to be"
    r"|remains? to be|you(?:'ll| will)? need to|muss noch|müssen noch|il reste à|queda por"
    r"|осталось)\b"
    r"|次のステップ|下一步",
    re.IGNORECASE,
)
NEXT_HEADING = re.compile(
    r"\b(?:next steps?|remaining(?: (?:work|steps?|tasks?))?|follow[- ]?ups?|to ?do|still open"
    r"|left to do|nächste schritte|prochaines étapes|próximos pasos|следующие шаги)\b"
    r"|下一步|次のステップ|الخطوات التالية",
    re.IGNORECASE,
)
CHOICE = re.compile(
    r"\b(?:instead of|rather than|decided|chose|trade-?off|deliberately|intentionally|backwards?"
    r"|default|fallback|prefer\w*)\b",
    re.IGNORECASE,
)
FAILURE = re.compile(
    r"\b(?:fail(?:s|ed|ing|ure)?|crash\w*|error|bug|broken|wrong|missing|regression|race|flak\w+"
    r"|leak\w*)\b",
    re.IGNORECASE,
)
FIRST_PERSON = re.compile(r"\b(?:I|I'\w+|we|we're|we've|my)\b")
SECOND_PERSON = re.compile(r"\byou(?:r|'\w+)?\b", re.IGNORECASE)
PRONOUN = re.compile(
    r"(?:it|its|it's|this|that|that's|these|those|they|he|she|both|either|here|there)\b",
    re.IGNORECASE,
)
IMPERATIVE = re.compile(
    r"(?:add|fix|remove|update|implement|change|refactor|move|rename|use|make|support|replace|show"
    r"|allow|create|improve|extract|handle|drop|enable|disable|prevent|ensure|write|convert|hide"
    r"|skip|introduce)\w{0,3}\b",
    re.IGNORECASE,
)
TELLING_HEADING = re.compile(
    r"summary|change|what|result|fix|cause|finding|decision|why|how|conclusion|done|key",
    re.IGNORECASE,
)
GENERIC_HEADING = re.compile(
    r"(?:summary|changes|overview|context|implementation|verification|files?|what|results?|plan"
    r"|next|key|why|how|tests?|problem|background|approach|step|phase|todo|notes?)\b",
    re.IGNORECASE,
)
NOD = re.compile(
    r"(?:yes|no|ok|okay|go|continue|commit|push|do it|thanks?|great|perfect|proceed|sure|lgtm"
    r"|merge|try again|again|stop|wait|rebase|retry)\b",
    re.IGNORECASE,
)


def all_words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def words(text: str) -> set[str]:
    return set(all_words(text))
