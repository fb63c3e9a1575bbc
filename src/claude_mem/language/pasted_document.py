"""Where in a prompt a whole text was pasted: a document, a report, an e-mail.

Headings and headers decide. A short plain paragraph that stands apart at the end was typed.
"""

import re
from itertools import islice, pairwise

MIN_DOCUMENT = 600  # characters; a shorter text with headings may be typed
LONGEST_AFTERWARD = 300
LONGEST_SIGNATURE = 60

_LEAD = re.compile(r"(?:[^\n#]{1,400}:[^\S\n]*\n\s*){1,2}")
_MARKDOWN_HEADING = re.compile(r"^#{1,4} \S", re.MULTILINE)
_BOLD_HEADING = re.compile(r"^\*\*[^*\n]{2,60}\*\*:?$", re.MULTILINE)
# Summary, Details, Impact: a line of its own over a longer one, without a stop.
_BARE_HEADING = re.compile(
    r"^(?=[^\W\d_a-z])[^\W\d_]{2,20}(?: [^\W\d_]{2,20}){0,2}\n\s{0,4}(?=\S[^\n]{40}|```)",
    re.MULTILINE,
)
_SEVERITY = re.compile(r"^[^\n]{10,150}\n\n\w{3,12} Severity\n\n(?=\S)", re.MULTILINE)
_MAIL = re.compile(
    r"^(?=(?:[^\n]{0,300}\n){0,2}(?:[^\n]{0,300}<[\w.+-]{1,60}@[\w-]{1,60}\.|(?:From|Subject): ))"
    r"(?:(?![\w-]{1,30}-by:|commit |Author:)[A-Z][\w-]{1,20}: [^\n]{1,300}\n){3}",
    re.MULTILINE,
)
_PARAGRAPH_END = re.compile(r"\n[^\S\n]*\n\s*")


def pasted_document(text: str, begin: int) -> tuple[int, int] | None:
    """The first and the last position of the text that was pasted, at or behind `begin`."""
    if mail := _MAIL.search(text, begin):
        return mail.start(), _signature_end(text, mail.end())
    if span := _headed(text, begin):
        return span[0], last_paragraph(text, span[1], len(text))
    return None


def last_paragraph(text: str, begin: int, end: int) -> int:
    """Where a short paragraph without markup begins that stands apart at the end; else the end."""
    stop = begin + len(text[begin:end].rstrip())
    gap = text.rfind("\n\n", begin, stop)
    if gap < 0:
        return end
    start = gap + 2
    first = text[start]
    is_plain = stop - start <= LONGEST_AFTERWARD and (first.isalpha() or first == "@")
    return start if is_plain else end


def _headed(text: str, begin: int) -> tuple[int, int] | None:
    """Where a text with headings begins, and from where on words may follow it."""
    lead = _LEAD.match(text, begin)
    start = lead.end() if lead else begin
    is_long = (lead or text.startswith("#", start)) and len(text) - start > MIN_DOCUMENT
    if is_long and (headings := _first(_MARKDOWN_HEADING, text, start, 2)):
        return start, headings[-1].end()
    if lead and (headings := _first(_BOLD_HEADING, text, start, 2)):
        return start, headings[-1].end()
    if comment := _SEVERITY.search(text, begin):
        return comment.span()
    headings = _first(_BARE_HEADING, text, begin, 3)
    if headings and text[begin : headings[0].start()].strip():  # alone, it may be typed
        return headings[0].start(), headings[-1].end()
    return None


def _first(
    pattern: re.Pattern[str], text: str, begin: int, count: int
) -> list[re.Match[str]] | None:
    """Returns so many matches, or None where there are fewer."""
    matches = list(islice(pattern.finditer(text, begin), count))
    return matches if len(matches) == count else None


def _signature_end(text: str, begin: int) -> int:
    """Where a mail ends: after the short lines that its writer ends with, if words follow."""
    ends = [match.end() for match in _PARAGRAPH_END.finditer(text, begin)]
    for start, end in islice(pairwise(ends), 1, None):  # behind the greeting
        if _is_signature(text[start:end]):
            return end
    return len(text)


def _is_signature(paragraph: str) -> bool:
    lines = paragraph.strip().splitlines()
    return len(paragraph) <= LONGEST_SIGNATURE and all(
        len(line.split()) <= 4 and not line.rstrip().endswith((".", "?", "!", ":"))
        for line in lines
    )
