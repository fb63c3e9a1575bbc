"""Which part of each line a program printed: logs, traces, diffs, tables, terminals, dumps.

Two states, typed and printed, over the lines: each line speaks for one of them, by patterns that
programs write or by its shape, and a change of state costs something, less after a blank line.
The states with the least cost win, so that lines are read with their neighbours.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

LONGEST_LINE = 600  # a longer line was not typed, unless it reads like prose
LONGEST_WORD = 200
READ_CHARS = 300  # of a line, enough to recognise its kind

_TIME = r"\d{4}[-/]\d\d[-/]\d\d[T ]\d|\d\d:\d\d:\d\d"
_LEVEL = r"INFO|DEBUG|WARN(?:ING)?|ERROR|TRACE|FATAL"
_CLOCK = r"\d{1,2}:\d\d(?::\d\d)?(?: ?[AP]M)?"
_PROMPT = (
    r"(?:[❯➜λ] +|\$ )(?:[a-z./~_]|[A-Z_]+=)|\([\w.-]{1,40}\) [$%#❯➜] ?\S"
    r"|(?:\([\w.-]{1,40}\) )?[\w.-]{1,40}@[\w.-]{1,60}[: ][^\s$#%]{0,120} ?[$#%](?: |$)"
    r"|(?:PS )?[A-Z]:\\[^>\n]{0,120}> ?\S"
)
_COMMAND = re.compile(_PROMPT)
_CERTAIN = re.compile(
    "|".join((
        _PROMPT, rf"\[?(?:{_TIME})", rf"\[{_CLOCK}\] ?\S", rf"{_CLOCK},? (?:- )?[\w ]{{1,30}}: ",
        r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}\d{1,2} \d\d:",
        r"[IWEF]\d{4} \d\d:", r"(?:time|ts|level)=\S", rf"\[(?:{_LEVEL})\]", rf"(?:{_LEVEL}): ?\[",
        r"at [\w.$<>/@\[\]-]{1,120} ?\([^)\n]*[:)]", r"at \S{1,200}:\d+:\d+\)?$",
        r"Caused by: ", r"Exception in thread ", r"Traceback \(most recent",
        r"File \"[^\"\n]+\", line",
        r"goroutine \d+ \[", r"panic: ", r"thread '[^']{0,60}' panicked", r"error\[\w+\]:",
        r"\S{1,200}\.\w{1,5}(?::\d+|\(\d+,\d+\)):", r"[a-z-][rwx-]{9}[@+.]? +\d",
        r"(?:GET|POST|PUT|PATCH|DELETE|HEAD) \S{1,200} \d{3}\b",
        r"(?:[\w.$]{2,80})?(?:Error|Exception): ",
        r"npm (?:ERR!|WARN)", r"[\w./+-]{1,40}: (?:\*\*\*|(?:fatal )?error\b)",
        r"(?:fatal|remote|hint): ", r"! \[", r"CONFLICT \(",
        r"commit [0-9a-f]{7,40}\b", r"\[[\w./-]{1,80} (?:\([\w-]+\) )?[0-9a-f]{7,40}\] ",
        r"\d+ files? changed", r"(?:create|delete) mode \d{6} ", r"(?:To|From) \S+[:/]\S+$",
        r"diff --git ", r"@@ -\d", r"\+\+\+ [ab/]", r"--- (?:a/|/dev)", r"index [0-9a-f]{7,}\.\.",
        r"[A-Z]{4,8} \S{1,200}::\S", r"=== RUN ", r"--- (?:FAIL|PASS|SKIP)",
        r"(?:ok|\?) +\t?\S+\t", r"FAIL\t", r"> ", r">$",
        r"\|.*\|\s*$", r"[│┌└├╭╰┃■◇◆⎿⏺✓✗✔✖⠋⨯]", r"\d+ ?[|│→]", r"\{\"", r"\[\{", r"<!DOCTYPE",
        r"\[[a-z]\w*[:/.][\w:./-]{1,40}\](?: |$)",
    ))
)  # fmt: skip
# Two such lines are printed, one may be typed.
_LIKELY = re.compile(
    "|".join((
        rf"\[?(?:{_LEVEL})\b", r"(?:error|warning|failed|fatal)\b", r"\[[A-Za-z][\w ]{1,30}\] ",
        r"[{}\]);,]+$", r"\"[\w-]+\":", r"Warning: ",
        r"at [\w.$<>/@-]{1,120}(?: ?\(|:\d|$)", r"--> \S", r"[\w.]{1,80}(?:Error|Exception)\b",
        r"[\w.$]{2,120}\.[A-Z]\w{1,60}: ", r"% \S", r"(?:Author|Date|Merge): ",
        r"\+\+\+ ", r"--- ", r"@@ ", r"[+-](?![ -])\S",
        r"\S{1,100} @ \S{1,100}:\d", r"\d*chunk-\S", r"PASS\b", r"FAIL\b", r"exit status \d",
        r"\w[\w.]{0,40}\(0x[0-9a-f]", r"\.\.\. \d+ more", r"ERR_\w+", r"\(node:\d+\)",
        r"[\w./-]+: (?:command not found|No such file)", r"[\w@/-]{1,40} v\d+\.\d+\.\d+\b",
        r"[\w@.~-]{0,80}/[\w@./+-]{1,200}$",
        r"[\w-]{1,80}\.\w{1,5}$", r"nothing to commit", r"(?:\d{1,2}\.|[-*•]) \[P\d\] ",
        r"\[\d+/\d+\] ", r"[A-Z][^?,'’]{3,80}(?:\.\.\.|…)(?: ?\w{2,12}[.!]?)?$",
    ))
)  # fmt: skip
_CHAT_HEAD = re.compile(rf"[^\W\d][\w .-]{{1,40}}\s(?:\[{_CLOCK}\]|\s{{1,3}}\[?{_CLOCK}\]?)$")
_PATH = re.compile(r"[\w@.~-]{0,80}/[\w@./+-]{1,200}")
_DIFF = re.compile(r"diff --git |@@ -\d")
_IN_DIFF = re.compile(r"[+\-@\\ ]|(?:index|new file|deleted|rename|similarity|diff) ")
_OPEN, _CLOSE = re.compile(r"[{\[]$|\{\"|\[\{"), re.compile(r"[}\]]+[,;]?$")
_LIST_MARK = re.compile(r"\s*(?:[-*+]|\d{1,2}[.)]|#{1,6}) +(?:\[[ x]\] )?")
_SLASH_COMMAND = re.compile(r"/[a-z][\w:-]*(?: |$)")
_CODE = re.compile(r"`[^`]{1,200}`")
_SEPARATOR, _GAP, _DIGIT = re.compile(r"[,;\t](?! )"), re.compile(r"\S {2,}"), re.compile(r"\d")
_WIDE_GAP = re.compile(r"\S {3,}")
_NUMBERS = re.compile(r"[\d.,%-]+(?:\s+[\d.,%-]+){1,40}$")
_NUMBER, _MIN_SHAPE = re.compile(r"(?<! ) *+\d+"), 10
_INSIDE = re.compile(
    r"\s\[?\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\]?\s|(?:\[[A-Z]\w{1,30}\][^\[]{0,200}){2,}"
)

_WORD = re.compile(
    r"[\"'“‘(*_]{0,2}(?:[^\W\d_]['’]?){1,40}(?:-[^\W\d_]{1,40}){0,2}[\"'”’)*_]{0,2}[.,;:!?…]{0,3}"
)
_PAUSES = frozenset(":-–—.,!?&+")
_CAMEL = re.compile(r"[^\W\d_A-Z][A-Z]")
_COMMA = re.compile(r"[^\W\d_], [^\W\d_]")
_LONG_RUN, _MANY_WORDS = 8, 20

# What a line speaks for: above 0 for printed. A change of state costs as much as two lines of
# which the patterns are not certain.
_PRINTED, _OFTEN_PRINTED, _SENTENCE, _QUESTION = 9.0, 2.6, -0.6, -6.0
_LIMIT, _LIMIT_OF_SHAPE = 3.0, 1.2
_ENTER, _ENTER_ANNOUNCED, _LEAVE, _LEAVE_AFTER_GAP = 3.4, 1.6, 0.5, 0.3


@dataclass(frozen=True, slots=True)
class _Shape:
    words: int
    plain: int  # words of letters only
    run: int  # of plain words, the longest
    score: float

    @property
    def is_sentence(self) -> bool:
        return self.plain >= 3 and 5 * self.plain >= 4 * self.words


def printed_lines(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Gives for each line the span that was printed; empty where all of it may be typed."""
    scores = _scores(lines)
    printed = _states(lines, scores)
    continues = False  # the output that began within the line before
    for number, line in enumerate(lines):
        is_next = number + 1 < len(lines) and printed[number + 1]
        begin, end = len(line), len(line)
        if not printed[number]:
            begin = _printed_start(line, is_next and bool(lines[number + 1].strip()))
            continues = begin < end and number + 1 < len(lines) and scores[number + 1] > 0
            if continues:
                printed[number + 1] = True
        else:
            is_first = not continues and (number == 0 or not printed[number - 1])
            continues = False
            if is_first and not _is_printed(line):
                begin = _printed_start(line, True)
            begin %= end
            end = end if is_next else _typed_end(line)
        yield begin, end


def _is_printed(line: str) -> bool:
    head = line.lstrip()[:READ_CHARS]
    return bool(_CERTAIN.match(head) or _LIKELY.match(head))


# States


def _states(lines: Sequence[str], scores: Sequence[float]) -> list[bool]:
    typed, printed = 0.0, _ENTER
    came: list[tuple[bool, bool]] = []  # whether each state came from the printed one
    after_gap, before = False, ""
    for line, score in zip(lines, scores, strict=True):
        stripped = line.strip()
        if not stripped:
            came.append((False, True))
            after_gap = True
            continue
        leave = _LEAVE_AFTER_GAP if after_gap else _LEAVE
        enter = _ENTER_ANNOUNCED if after_gap and before == ":" else _ENTER
        to_typed, to_printed = printed + leave < typed, typed + enter >= printed
        came.append((to_typed, to_printed))
        typed, printed = (
            (printed + leave if to_typed else typed) + max(score, 0),
            (printed if to_printed else typed + enter) + max(-score, 0),
        )
        after_gap, before = False, stripped[-1]
    state = printed + _LEAVE_AFTER_GAP < typed
    states: list[bool] = []
    for from_printed in reversed(came):
        states.append(state)
        state = from_printed[state]
    return states[::-1]


def _scores(lines: Sequence[str]) -> list[float]:
    scores = [_score(line) for line in lines]
    _mark_json(lines, scores)
    _mark_tables(lines, scores)
    _mark_wrapped(lines, scores)
    _mark_sessions(lines, scores)
    in_diff = False
    for number, line in enumerate(lines):
        in_diff = bool(_DIFF.match(line) or (in_diff and _IN_DIFF.match(line)))
        if in_diff:
            scores[number] = _PRINTED
        if _CHAT_HEAD.match(line):
            scores[number : number + 2] = [_OFTEN_PRINTED] * len(scores[number : number + 2])
        elif scores[number] == _QUESTION and _is_of_list(lines, number):
            scores[number] = 0
        elif scores[number] < _OFTEN_PRINTED and _is_apart(lines, number) and _is_plain(line):
            is_last = number + 1 == len(lines)
            if is_last or (scores[number] < 0 and not line[:1].isupper()):
                scores[number] = _QUESTION
        elif (
            scores[number] < _OFTEN_PRINTED
            and number + 1 == len(lines)
            and line[:1].islower()
            and _is_plain(line)
        ):
            scores[number] = min(scores[number], -1)
    return scores


def _is_apart(lines: Sequence[str], number: int) -> bool:
    around = *lines[max(number - 1, 0) : number], *lines[number + 1 : number + 2]
    return not any(line.strip() for line in around)


def _is_of_list(lines: Sequence[str], number: int) -> bool:
    """Whether a tool wrote a sentence over the paths that it lists, below other lines."""
    around = *lines[max(number - 1, 0) : number], *lines[number + 1 : number + 2]
    return len(around) > 1 and bool(around[0].strip() and _PATH.fullmatch(around[1].strip()))


def _is_plain(line: str) -> bool:
    """Whether a line has only words and numbers: programs rarely print such between blank lines."""
    words = (word.strip(".,;:!?") for word in line.split())
    return not line.startswith("  ") and all(
        word.isdecimal() or _WORD.fullmatch(word) for word in words if word
    )


def _score(line: str) -> float:
    stripped = line.strip()
    if not stripped:
        return 0
    head = stripped[:READ_CHARS]
    if _CERTAIN.match(head) or _is_dump(stripped):
        return _PRINTED
    if _SLASH_COMMAND.match(head):
        return -1
    shape = _shape(line[:READ_CHARS])
    if _LIKELY.match(head) or _NUMBERS.match(stripped):
        return max(_OFTEN_PRINTED, shape.score)
    if shape.is_sentence and not line.startswith("  ") and len(_GAP.findall(head)) < 2:
        is_strong = stripped.endswith("?") or (stripped.endswith(":") and shape.plain > 3)
        return _QUESTION if is_strong else max(-_LIMIT, min(shape.score, _SENTENCE))
    least = 0.2 if _indent(line) > 3 and not _LIST_MARK.match(line) else -_LIMIT
    return max(least, min(_LIMIT_OF_SHAPE, shape.score))


def _shape(line: str) -> _Shape:
    """The weights were fitted to lines of prompts and of tools' outputs of other projects."""
    mark = _LIST_MARK.match(line)
    text = _CODE.sub("code", line[mark.end() :] if mark else line).strip()
    if not text:
        return _Shape(0, 0, 0, 0)
    letters = sum(map(str.isalpha, text))
    foreign = sum(character.isalpha() and ord(character) > 0x2E7F for character in text)
    words = [word for word in text.split() if word not in _PAUSES] or [text]
    plain = [bool(_WORD.fullmatch(word)) and not _CAMEL.search(word) for word in words]
    run = _longest_run(plain)
    if 2 * foreign > letters:  # written without spaces
        plain, run = [True] * foreign, foreign
    symbols = len(text) - letters - sum(map(str.isspace, text))
    is_indented = not mark and line[:1].isspace()
    score = (
        2.4
        - 1.9 * sum(plain) / len(plain)
        - 1.6 * min(run, _LONG_RUN) / _LONG_RUN
        - 0.9 * min(len(words), _MANY_WORDS) / _MANY_WORDS
        + 1.4 * symbols / len(text)
        - 1.1 * (plain[0] and not text[0].isupper())
        - 1.6 * text.endswith("?")
        - 0.9 * any(character.isalpha() and not character.isascii() for character in text)
        + 1.9 * ("  " in text or "\t" in text)
        + 2.2 * is_indented
        - 1.6 * bool(_COMMA.search(text))
    )
    if mark or (all(plain[:_MIN_TAIL]) and len(plain) >= _MIN_TAIL):
        score = min(score, 0 if mark else -1)
    if score > 0:  # a few words say little
        score *= min(len(words), _MIN_TAIL) / _MIN_TAIL
    return _Shape(len(plain), sum(plain), run, score)


def _longest_run(plain: Sequence[bool]) -> int:
    longest = length = 0
    for is_plain in plain:
        length = length + 1 if is_plain else 0
        longest = max(longest, length)
    return longest


def _is_text(line: str) -> bool:
    """Whether it may be sentences, with names and links in them."""
    letters = sum(map(str.isalpha, line))
    spaces = sum(map(str.isspace, line))
    return 3 * (len(line) - letters - spaces) < letters and (
        12 * spaces > len(line) or not line.isascii()
    )


def _is_dump(line: str) -> bool:
    if len(line) > LONGEST_LINE:
        return not _is_text(line[:LONGEST_LINE])
    longest = max(map(len, line.split()))
    return longest > LONGEST_WORD and 2 * longest > len(line) and line.isascii()


def _mark_json(lines: Sequence[str], scores: list[float]) -> None:
    """Marks lines from one that opens an object or a list to the one that closes it as far left."""
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
        elif bare and '"' not in bare and scores[number] < _OFTEN_PRINTED:
            next_other = number
    for number in range(len(lines)):
        end = max(end, blocks.get(number, -1) + 1)
        if number < end:
            scores[number] = _PRINTED


def _mark_tables(lines: Sequence[str], scores: list[float]) -> None:
    """Marks tables: three lines in a row with as many separators; so are lines that differ in
    numbers only."""
    heads = [line[:LONGEST_LINE].strip() for line in lines]
    commas = [len(_SEPARATOR.findall(head)) for head in heads]
    gaps = [len((_GAP if _DIGIT.search(head) else _WIDE_GAP).findall(head)) for head in heads]
    shapes = [_NUMBER.sub("0", head) if _DIGIT.search(head) else "" for head in heads]
    for number in range(1, len(lines)):
        for before in range(max(number - 2, 0), number):
            if len(shapes[number]) > _MIN_SHAPE and shapes[number] == shapes[before]:
                scores[number] = scores[before] = max(scores[number], _OFTEN_PRINTED)
        if gaps[number] > 1 and gaps[number] == gaps[number - 1]:
            scores[number - 1] = scores[number] = max(scores[number], _OFTEN_PRINTED)
        if _is_row(commas, number, least=2) or _is_row(gaps, number, least=1):
            scores[number - 2 : number + 1] = [_PRINTED] * 3


def _is_row(counts: Sequence[int], number: int, *, least: int) -> bool:
    return (
        number > 1
        and counts[number] >= least
        and (counts[number] == counts[number - 1] == counts[number - 2])
    )


def _mark_sessions(lines: Sequence[str], scores: list[float]) -> None:
    """What follows a command is of its output, up to a blank line with words behind it; the last
    lines may be typed where nothing follows."""
    last = max((number for number, line in enumerate(lines) if line.strip()), default=0)
    begin: int | None = None
    for number in range(last + 2):
        if number < len(lines) and lines[number].strip():
            if begin is None and _COMMAND.match(lines[number].lstrip()):
                begin = number
            continue
        if begin is not None:
            for at in range(begin, number):
                if number <= last and scores[at] > _QUESTION:
                    scores[at] = max(scores[at], 0) + 1
                elif scores[at] > -1:
                    scores[at] += 1
        begin = None


_MIN_WRAPPED, _MIN_INDENTED = 60, 80  # characters


def _mark_wrapped(lines: Sequence[str], scores: list[float]) -> None:
    """Paragraphs as a terminal shows them: wrapped with a hanging indent, or indented."""
    begin = 0
    for number in range(len(lines) + 1):
        if number < len(lines) and lines[number].strip():
            continue
        if number > begin + 1 and lines[begin].rstrip().endswith(":"):
            begin += not lines[begin + 1].startswith("  ")
        if number > begin and _is_wrapped(lines[begin:number]):
            end = number
            while end > begin + 1 and not lines[end - 1].startswith("  "):
                end -= 1
            for at in range(begin, end):
                scores[at] = max(scores[at], _LIMIT)
        begin = number + 1


def _is_wrapped(paragraph: Sequence[str]) -> bool:
    if all(line.startswith("  ") for line in paragraph):
        return sum(map(len, paragraph)) > _MIN_INDENTED
    mark = _LIST_MARK.match(paragraph[0])
    hanging = [
        len(before) > _MIN_WRAPPED and line.startswith("  ") and not _LIST_MARK.match(line)
        for before, line in pairwise(paragraph)
    ]
    return sum(hanging) > 1 and hanging[0] and _indent(paragraph[1]) > (mark.end() if mark else 0)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


# Within a line

_TOKEN = re.compile(r"\S+")
_LABELS = re.compile(r"[\w./\[\]-]+: (?:[\w./\[\]-]+(?: [\w./-]+){0,4}: ){1}[^\s.]")
_LABEL = re.compile(r"[\w.\[\]/-]{2,40}: ")
_GLUED = re.compile(r"(?<=\d)(?=[^\W\d_]{3})|(?<=[\])}>])(?=[^\W\d_]{2})")
_MIN_LEAD, _MIN_TAIL, _MIN_BEFORE_TAIL = 2, 4, 3  # words
_MAX_PLACES = 12  # of a line, in which typed words may begin


def _printed_start(line: str, is_next_printed: bool) -> int:
    """Where the output begins that was pasted behind typed words; the end of the line if none."""
    if len(line) > 120 and (inside := _INSIDE.search(line[:LONGEST_LINE])):
        return inside.start()
    head = line[:READ_CHARS]
    if not head[:1].isalnum():
        return len(line)
    words = 0
    for token in _TOKEN.finditer(head):
        at = token.start()
        if words >= _MIN_LEAD and _is_start(head, at, token[0], is_next_printed):
            return at
        words += bool(_WORD.fullmatch(token[0]))
    return len(line)


def _is_start(head: str, at: int, token: str, is_next_printed: bool) -> bool:
    is_after_stop = head[:at].rstrip()[-1:] in (":", ".", "?", "!")
    if _COMMAND.match(head, at) and (is_after_stop or "@" in token):
        return True
    if head[at - 2 : at] == ": " and head.count("`", 0, at) % 2 == 0 and _LABELS.match(head, at):
        return True
    if not is_next_printed or token[0] in "@`":
        return False
    if head[at - 3 : at].isspace() and len(_WIDE_GAP.findall(head)) == 1:
        return True
    return is_after_stop and bool(
        _CERTAIN.match(head, at) or _LIKELY.match(head, at) or _LABEL.match(head, at)
        or (not _WORD.fullmatch(token) and _shape(head[at:]).score > 0)
    )  # fmt: skip


def _typed_end(line: str) -> int:
    """Where words begin that were typed at the end of the last printed line; else its end."""
    if len(line) > LONGEST_LINE:
        return len(line)
    for place in islice(_GLUED.finditer(line), _MAX_PLACES):
        rest = _shape(line[place.end() :])
        is_sentence = rest.plain >= _MIN_TAIL and 3 * rest.plain >= 2 * rest.words
        if is_sentence and rest.score < 0 and len(line[: place.end()].split()) >= _MIN_BEFORE_TAIL:
            return place.end()
    return len(line)
