"""Phrases without content: openings, announcements, courtesies.

Tables of how such sentences begin, in lower case. Mostly English, the language of most agents;
for other languages only the few phrases that begin or end nearly every message.
"""

import re
from functools import lru_cache

# Openings before the actual sentence, if punctuation follows: "No, ..." but not "No file ...".
EXCLAMATIONS = (
    "ok", "okay", "alright", "right", "good", "great", "perfect", "excellent", "done", "sure",
    "yes", "no", "hmm", "wait", "interesting", "fixed", "got it", "good catch", "good news",
    "all set", "all done", "absolutely", "certainly", "fertig", "erledigt", "gut", "parfait",
    "c'est fait", "listo", "hecho", "好的", "完成", "了解しました", "完了しました", "はい",
    "تم", "حسنا",
)  # fmt: skip
# Openings also without punctuation.
FILLERS = ("now", "so", "well", "actually", "also", "then")

# The agent announces what it will do.
ANNOUNCEMENTS = (
    r"let(?:'s| me| us)\b", r"i(?:'ll| will|'m going to|'m now| am going to| need to| should)\b",
    r"i (?:want to|see\b|understand|can see|notice|also need)",
    r"i (?:now )?have (?:a|all|the|enough|every|full)\b", r"i've (?:got|read|seen|reviewed)\b",
    r"i'd be happy", r"here(?:'s| is| are)\b", r"looking (?:at|good)", r"time to\b",
    r"as (?:expected|requested|you)\b",
    r"now (?:i|let|we|for|to|update|add|fix|create|check|run)\b",
    r"based on\b.{0,60}\bhere", r"(?:first|next|then|finally),? (?:i|let|we)\b",
    r"(?:ich werde|lass mich|als nächstes|hier ist|hier sind)\b",
    r"(?:je vais|voici|laisse-moi|laissez-moi|voy a|aquí)\b", r"让我|我来|我将|现在我|接下来我",
    r"まず|それでは|次に.{0,12}(?:ます|確認)", r"سأقوم|دعني|سوف",
)  # fmt: skip

# Reports of success that nobody asks about later.
SUCCESS_REPORTS = (
    r"everything (?:is|looks|passes)", r"both (?:files|edits|changes)", r"the (?:remaining|rest)\b",
    r"(?:the )?(?:build|tests?|lint\w*|type ?check\w*)\b.{0,40}\b(?:pass\w*|clean|succe\w+|green)",
    r"pre-commit hooks?\b.{0,50}\bpass", r"results?: \d+ (?:tests|pass)", r"\d+ (?:tests? )?pass",
    r"\d+ files? changed",
    r"all (?:\d[\d,]* )?(?:clean|tests|done|changes|files|four|three|two|good|set|green|checks"
    r"|pass|tasks|work)\b",
    r"(?:the )?commit\b.{0,40}\b(?:created|success\w*|succeeded|done|went through)",
    r"committed\b", r"pushed\b", r"tag created",
    r".{0,60}\b(?:are|is) (?:now )?(?:committed|pushed|on `?ma(?:in|ster))",
    r"no (?:issues|errors)\b", r"it's fine", r"alle tests", r"tous les tests",
    r"已提交|已推送|所有测试", r"コミットしました|すべてのテスト",
)  # fmt: skip

# Remarks about the agent's own tools.
TOOL_REMARKS = (
    r"(?:the |that |my |both )*(?:first |second |last |previous )*edits?\b.{0,60}"
    r"\b(?:tool|fail\w*|match\w*|went|succe\w+|appl\w+)",
    r"(?:the )?(?:file|content) (?:has |was )(?:been )?(?:modified|changed) (?:since|by a linter)",
    r"(?:the )?(?:actual |project |existing )*(?:\S+ )?tests? (?:all |now )?pass",
)

# Courtesies, and headings written as sentences.
COURTESIES = (
    r"is there anything", r"feel free", r"want me to", r"if you(?:'d| would) like", r"let me know",
    r"summary\b", r"(?:the |two |three |\d+ )*changes (?:made|are)\b",
    r"what (?:i|was) (?:did|done|changed)", r"the implementation is (?:complete|in place)",
    r"you're welcome", r"gern geschehen", r"de rien", r"不客气", r"どういたしまして",
    r"sag (?:mir )?bescheid", r"n'hésite", r"如有", r"ご質問|お知らせください", r"\W*$",
)  # fmt: skip


def _any(*phrases: str) -> str:
    return "|".join(phrases)


_OPENING = re.compile(
    rf"(?:(?:{_any(*EXCLAMATIONS)})(?:[,.!:;，。！、：]|\s+[—–-])+\s*"
    rf"|(?:{_any(*FILLERS)})(?:\s*,)?\s+)+",
    re.IGNORECASE,
)
_EMPTY = re.compile(_any(*ANNOUNCEMENTS, *SUCCESS_REPORTS, *TOOL_REMARKS, *COURTESIES))
_IDENTIFIER = re.compile(r"[a-z]\w*[./_(A-Z]\w")  # never capitalised


def without_opening(text: str) -> str:
    """The text without a "Good —" or "Wait," before it."""
    opening = _OPENING.match(text)
    if opening is None or opening.end() == len(text):
        return text
    rest = text[opening.end() :]
    return rest if _IDENTIFIER.match(rest) else rest[0].upper() + rest[1:]


@lru_cache(maxsize=1024)  # of a passage it is asked when it is scored, titled and selected
def is_empty_phrase(lowered: str) -> bool:
    """Whether a text is an announcement, a report of success or a courtesy; in lower case."""
    if _EMPTY.match(lowered):
        return True
    opening = _OPENING.match(lowered)
    return opening is not None and bool(_EMPTY.match(lowered, opening.end()))
