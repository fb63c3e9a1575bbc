"""Which lines of a text a program printed: logs, traces, diffs, tables, terminals, dumps.

Some lines can only be printed. Others may be typed as well: they count beside printed ones.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

_Kind = Literal["blank", "certain", "likely", "repeated", ""]

LONGEST_LINE = 600  # a longer line was not typed, unless it reads like prose
LONGEST_WORD = 200
READ_CHARS = 300  # of a line, enough to recognise its kind

_TIME = r"\d{4}[-/]\d\d[-/]\d\d[T ]\d|\d\d:\d\d:\d\d"
_LEVEL = r"INFO|DEBUG|WARN(?:ING)?|ERROR|TRACE|FATAL"
_COMMAND = r"[❯$] (?:[a-z./~_]|[A-Z_]+=)"
_CERTAIN = re.compile(
    "|".join((
        rf"\[?(?:{_TIME})",
        r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}\d{1,2} \d\d:",
        r"[IWEF]\d{4} \d\d:", r"(?:time|ts|level)=\S", rf"\[(?:{_LEVEL})\]", rf"(?:{_LEVEL}): ?\[",
        r"at [\w.$<>/@\[\]-]{1,120} ?\([^)\n]*[:)]", r"at \S{1,200}:\d+:\d+\)?$",
        r"Caused by: ", r"Exception in thread ", r"Traceback \(most recent",
        r"File \"[^\"\n]+\", line",
        r"goroutine \d+ \[", r"panic: ", r"thread '[^']{0,60}' panicked", r"error\[\w+\]:",
        r"\S{1,200}\.\w{1,5}:\d+:", r"(?:[\w.$]{2,80})?(?:Error|Exception): ",
        r"npm (?:ERR!|WARN)", r"[\w.-]{1,40}@[\w.-]{1,60}:\S{0,120}[$#] ?",
        r"commit [0-9a-f]{7,40}\b", r"(?:fatal|remote): ", _COMMAND,
        r"diff --git ", r"@@ -\d", r"\+\+\+ [ab/]", r"--- (?:a/|/dev)", r"index [0-9a-f]{7,}\.\.",
        r"=== RUN ", r"--- (?:FAIL|PASS|SKIP)", r"ok +\t?\S+\t", r"FAIL\t", r"> ", r">$",
        r"\|.*\|\s*$", r"[│┌└├╭╰┃■◇◆⎿⏺✓✗✔✖⠋]", r"\d+ ?[|│→]", r"\{\"", r"\[\{", r"<!DOCTYPE",
        r"\[[a-z]\w*[:/.][\w:./-]{1,40}\](?: |$)",
    ))
)  # fmt: skip
_LIKELY = re.compile(
    "|".join((
        r"at [\w.$<>/@-]{1,120}(?: ?\(|:\d|$)", r"--> \S", r"[\w.]{1,80}(?:Error|Exception)\b",
        r"[\w.$]{2,120}\.[A-Z]\w{1,60}: ", r"% \S", r"(?:Author|Date|Merge): ",
        r"\+\+\+ ", r"--- ", r"@@ ", r"[+-](?![ -])\S",
        r"\S{1,100} @ \S{1,100}:\d", r"\d*chunk-\S", r"PASS\b", r"FAIL\b", r"exit status \d",
        r"\w[\w.]{0,40}\(0x[0-9a-f]", r"\.\.\. \d+ more", r"ERR_\w+", r"\(node:\d+\)",
        r"[\w./-]+: (?:command not found|No such file)",
    ))
)  # fmt: skip
# Two such lines are printed, one may be typed.
_REPEATED = re.compile(
    rf"\[?(?:{_LEVEL})\b|(?:error|warning): |\[[A-Za-z][\w ]{{1,30}}\](?: |$)"
    r"|[{}\]);,]+$|\"[\w-]+\":"
)
_INSIDE = re.compile(
    r"\s\[?\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\]?\s|(?:\[[A-Z]\w{1,30}\][^\[]{0,200}){2,}"
)
# Where a line begins in another one, which ends with what the user typed.
_BEHIND_TYPED = re.compile(r"(?<=[:.?!] )(?:\[[A-Z][\w .-]{1,30}\] |--- FAIL: )")
_TYPED_BETWEEN = (":", "?")
_LINES_OF_LOG = 3  # from this number on, what stands between and after them is of it, too
_DIFF = re.compile(r"diff --git |@@ -\d")
_IN_DIFF = re.compile(r"[+\-@\\ ]|(?:index|new file|deleted|rename|similarity|diff) ")
_OPEN, _CLOSE = re.compile(r"[{\[]$|\{\"|\[\{"), re.compile(r"[}\]]+[,;]?$")


def printed_lines(lines: Sequence[str]) -> Iterator[int | None]:
    """For each line where in it the printed text begins; None where all of it may be typed."""
    kinds = [_kind(line) for line in lines]
    _mark_json(lines, kinds)
    _mark_neighbours(lines, kinds)
    _mark_paragraphs(lines, kinds)
    in_diff = False
    for number, line in enumerate(lines):
        in_diff = bool(_DIFF.match(line) or (in_diff and _IN_DIFF.match(line)))
        if kinds[number] == "certain" or in_diff:
            yield 0
        elif kinds[number + 1 : number + 2] == ["certain"] and (at := _BEHIND_TYPED.search(line)):
            yield at.start()
        elif len(line) > 120 and (inside := _INSIDE.search(line[:LONGEST_LINE])):
            yield inside.start()
        else:
            yield None


def reads_like_prose(text: str) -> bool:
    """Mostly letters and spaces."""
    letters = sum(character.isalpha() for character in text)
    symbols = sum(not (character.isalpha() or character.isspace()) for character in text)
    return symbols < letters / 6 and (" " in text[:80] or not text.isascii())


def _is_text(line: str) -> bool:
    """Whether it may be sentences, with names and links in them."""
    letters = sum(map(str.isalpha, line))
    spaces = sum(map(str.isspace, line))
    return 3 * (len(line) - letters - spaces) < letters and (
        12 * spaces > len(line) or not line.isascii()
    )


def _is_plain(line: str) -> bool:
    """Words only, as programs rarely print them."""
    words = line.split()
    return len(words) >= 3 and not any(c.isdigit() or c in "/=<>{}()[]:;_" for c in line)


def _kind(line: str) -> _Kind:
    stripped = line.strip()
    if not stripped:
        return "blank"
    head = stripped[:READ_CHARS]
    if _CERTAIN.match(head) or _is_dump(stripped):
        return "certain"
    if _REPEATED.match(head):
        return "repeated"
    return "likely" if _LIKELY.match(head) else ""


def _is_dump(line: str) -> bool:
    if len(line) > LONGEST_LINE:
        return not _is_text(line[:LONGEST_LINE])
    longest = max(map(len, line.split()))
    return longest > LONGEST_WORD and 2 * longest > len(line) and line.isascii()


def _mark_json(lines: Sequence[str], kinds: list[_Kind]) -> None:
    """From a line that opens an object or a list to the line that closes it as far left."""
    closing: dict[int, int] = {}  # by indentation, the next line
    next_other = len(lines)  # the next line that cannot be of JSON
    end = 0  # of the outermost block so far
    blocks: dict[int, int] = {}
    for number in range(len(lines) - 1, -1, -1):
        bare = lines[number].strip()
        indent = len(lines[number]) - len(lines[number].lstrip())
        if bare[:1] in ("{", "[") and _OPEN.match(bare):
            last = closing.get(indent, 0)
            if number < last < next_other:
                blocks[number] = last
        elif _CLOSE.match(bare):
            closing[indent] = number
        elif bare and '"' not in bare and not kinds[number]:
            next_other = number
    for number in range(len(lines)):
        end = max(end, blocks.get(number, -1) + 1)
        if number < end:
            kinds[number] = "certain"


def _mark_neighbours(lines: Sequence[str], kinds: list[_Kind]) -> None:
    """What may be printed is, beside a printed line; and so is what is indented after one."""
    before: _Kind = ""
    for number, kind in enumerate(kinds):
        if kind == "blank":
            continue
        is_next = number > 0 and kinds[number - 1] != "blank"
        is_indented = lines[number][:1] in (" ", "\t")
        if before == "certain" and (is_indented or (is_next and kind in ("likely", "repeated"))):
            kinds[number] = "certain"
        elif is_next and before == kind == "repeated":
            kinds[number - 1] = kinds[number] = "certain"
        before = kinds[number]
    for number in range(len(kinds) - 2, -1, -1):
        if kinds[number] in ("likely", "repeated") and kinds[number + 1] == "certain":
            kinds[number] = "certain"


def _mark_paragraphs(lines: Sequence[str], kinds: list[_Kind]) -> None:
    """In a paragraph with a command or with several printed lines, what follows was printed, too;
    but not the words after it."""
    begin = 0
    for number in range(len(kinds) + 1):
        if number == len(kinds) or kinds[number] == "blank":
            _mark_paragraph(lines, kinds, begin, number)
            begin = number + 1


def _mark_paragraph(lines: Sequence[str], kinds: list[_Kind], begin: int, end: int) -> None:
    printed = [number for number in range(begin, end) if kinds[number] == "certain"]
    has_command = any(re.match(_COMMAND, lines[number].lstrip()) for number in printed)
    if len(printed) < _LINES_OF_LOG and not has_command:
        return
    while end > printed[-1] + 1 and _is_plain(lines[end - 1]):
        end -= 1
    for number in range(printed[0], end):
        if not lines[number].rstrip().endswith(_TYPED_BETWEEN):
            kinds[number] = "certain"
