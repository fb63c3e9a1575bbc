"""Secrets that are given a name: assignments, members, arguments, flags, headers, elements.

Names are found by the words that they contain; then what follows is read as one of the ways in
which languages and formats give a name its value.
"""

import re
from collections.abc import Iterator

from claude_mem.redaction.judging import (
    Accept,
    is_argument,
    is_connection_password,
    is_environment_value,
    is_flag_value,
    is_listed_secret,
    is_logged_secret,
    is_mixed,
    is_plain_secret,
    is_quoted_secret,
    is_setting,
    is_told_password,
    kind_of,
)
from claude_mem.redaction.names import LONGEST_NAME, Certainty, certainty
from claude_mem.redaction.prefilter import VOCABULARY
from claude_mem.redaction.spans import Span
from claude_mem.redaction.word_patterns import Subject

_STEMS = frozenset((
    "pass", "pwd", "pw", "psk", "secret", "token", "key", "cred", "kennwort", "senha", "contrase",
    "clave", "wachtwoord", "heslo", "geslo", "salasana", "lozinka", "parol", "haslo", "jelszo",
    "sifre", "losenord", "adgangskode", "kodeord", "sandi", "khau", "slaptazodis", "segredo",
    "secreto", "geheim", "schl", "jeton", "sleutel", "chave", "llave",
))  # fmt: skip
_ONLY_AT_END = "pw"
VOCABULARY.add_parts(_STEMS)
# From the end of a stem: the rest of the name, what closes it, and how a value is given to it.
_AFTER = re.compile(
    r"(?P<rest>[\w-]{0,40}+)"
    r"(?P<close>\\{0,7}[\"'`]?)(?:\]|\)|\[\d{0,6}\]|\*{1,2})?"
    r"(?:"
    r"(?P<pair>,?\s{0,60}\\{0,7}[\"'`]?(?:[Vv]alue|ParameterValue|content)\\{0,7}[\"'`]?"
    r"\s{0,4}[:=]|[ \t]{1,4}-Value(?=[ \t])"  # name: NAME, value:
    r"|</key>\s{0,60}<string>(?=[^<]))"
    r"|(?P<block>\s{0,4}[:=]?\s{0,4}\{[^{}]{0,300}?\b(?:[Dd]efault(?:Value)?|value)[\"']?\s{0,20}[:=]"
    r"|:[ \t]{0,4}\n(?:[ \t]{1,40}\w{1,40}:[^\n]{0,80}\n){0,4}?[ \t]{1,40}[Dd]efault:)"
    r"|(?P<typed>[ \t]{0,8}:[ \t]{0,4}[A-Za-z&*][\w.\[\]<>|?, '&*]{0,50}?"  # name: type =
    r"(?: =(?![=>])|=(?=[ \t]{0,4}[\"'`]))"
    r"|[ \t]{1,4}[*\[\]\w.]{1,20}[ \t]{1,4}:?=(?!=)"  # name type =
    r"|[ \t]{1,4}As[ \t]{1,4}\w{1,20} =|[ \t]{0,4}\{ ?get; ?(?:\w{1,10} )?(?:set|init);? ?\} =)"
    r"|[ \t]{0,20}(?P<operator>=>|:{1,3}=|\?\?=?|\?=|\|\|=?|[.+]=|={1,3}|!={1,2}|<-|->"
    r"|:[-+?](?=\S)|:(?!:)\*{0,2}"
    r"|,|\((?=\s{0,20}[^\s)])|\{(?=[\"'])|\.(?:toBe|toEqual|toStrictEqual|equals?|isEqualTo|set)\("
    r"|\\{1,3}u003[dDaA]|%3[dDaA])"
    r"|(?P<cell>[ \t`*]{0,20}\|)"
    r"|(?P<element>(?:\s[^<>\n]{0,100})?>)"
    r"|(?P<prose>(?: (?:for|of|to|on) [\w .@-]{1,40}?)?"
    r"(?: is(?: now| set to)?:?|(?: provided)?:| =) )"
    r"|(?P<space>[ \t]{1,20})"
    r")"
)
# What may stand between the operator and a quoted value.
_OPENING = re.compile(
    r"[ \t]{0,20}(?:\\?\r?\n[ \t]{0,60})?"
    r"(?P<wrapper>(?:new )?[\[\]&*]{0,3}[A-Za-z_][\w.]{0,40}\([ \t]{0,4}|[(\[][ \t]{0,4}"
    r"|default[ \t]{0,4}=[ \t]{0,4})?"
    r"[bBrRuUfFlLnN@$]{0,3}(?P<quote>\\{0,7}(?:\"{3}|'{3}|[\"'`]))"
)
_ENDS_LINE, _GIVES = ("", "\n", "\r"), (":", "=", ":=", "?=")
_ENDS = ("", "\n", "\r", " ", "\t", "&", "#", '"', "'")
_QUOTES = ('"', "'", "`")
_SETTERS = (
    "put(",
    "setitem(",
    "set(",
    "setproperty(",
    "setenv(",
    "setdefault(",
    "add(",
    "addproperty(",
)
_LOOKUP = re.compile(
    r"(?i)get|env|input|read|load|find|fetch|param|config|lookup|prompt|ask|query|\b[t_]\($|has"
    r"|encode|decode|replace|split|strip|format|join|print|log"
)
_FALLBACK = re.compile(r"[^\n;]{0,80}?(?:\?\?|\|\||\?:|\bor\b)[ \t]{0,4}(?P<quote>[\"'`])")
_PLAIN = re.compile(r"(?P<gap>[ \t]{0,8})(?P<value>[^\s\"'`<>|;,(){}\[\]]{4,500}+)")
_UNTYPED = re.compile(r"[ \t]{0,8}:[ \t]{0,4}(?P<value>[^\s\"'`<>|;,(){}\[\]=]{6,200}+)")
_REST_IS_BLANK = re.compile(r"[ \t]{0,8}(?:\r?\n|\Z)")
_LAST_OF_LINE = re.compile(r"(?P<value>[^\s\"'`<>|;,(){}\[\]]{6,200}+)[ \t]{0,8}(?:\r?\n|\Z)")
_NEXT_LINE = re.compile(
    r"[ \t]{0,4}(?:[|>][-+]?)?[ \t]{0,4}\r?\n(?P<gap>[ \t]{1,60})"
    r"(?P<value>[^\s\"'`<>|;,(){}\[\]:]{8,500}+)[ \t]*$",
    re.MULTILINE,
)
_CELL_VALUE = re.compile(r"[ \t]{0,20}`?(?P<value>[^\s|`]{6,500})`?[ \t]{0,40}\|")
_SENTENCE_VALUE = re.compile(
    r"[ \t]{0,4}[\"'`]?(?P<value>[A-Za-z0-9_-]{20,200})(?![A-Za-z0-9_/.-]*[/(])"
)
_FIRST_WORD = re.compile(
    r"(?i)\b(?:api|access|secret|private|auth|bearer|license|signing|encryption|account|refresh|session"
    r"|subscription|bot) \Z"
)
_LAST_WORD = re.compile(r"(?P<value>[^\s\"'`<>|;,(){}\[\]=/]{8,60}+)(?=[\s,;.]|\Z)")
_ELEMENT_VALUE = re.compile(
    r"\s{0,60}(?:<!\[CDATA\[|<[Vv]alue>)?(?P<value>[^\s<>]{4,500})(?:\]\]>)?\s{0,60}</"
)
_REST = re.compile(r"[A-Za-z0-9+/_=.~!@#%^&*-]*")
_AFTER_FLAG = re.compile(r"(?:\A|[\s\"'])--?[A-Za-z][\w-]{0,30}[ =][\"']?\Z|[\s\"']/[a-z]:\Z")
_AFTER_PAIR = re.compile(r"(?:\A|[\s\"'(])\w{2,20}=[^\s,=()\"']{1,100} \Z")  # host=… password=…
_USER_NEAR = re.compile(r"(?i)\b(?:user|user_?name|login|email)[\"']?[ \t]{0,8}[:=]")
_USER_LINE = re.compile(
    r"(?i)\b(?:user|user_?name|login|email)[ \t]{0,8}[:= \t][ \t]{0,8}[\w.@-]+[ \t]*\n[ \t]*\Z"
)
_SECTION = re.compile(r"(?m)^\[[a-z][\w. -]{0,40}\][ \t]*\n(?:[\w. -]{1,40}=[^\n]*\n|[ \t]*\n)*\Z")
_PROSE = re.compile(
    r"(?i)(?<![\w.-])(?:the|an?|use[ds]?|using|with|and|or|pass(?:ing)?|if|add(?:ed)?|via|set|to|of|for|is|when|by"
    r"|no|not|require[sd]?|supports?|missing|new|our|your|we|it|both|either|flags?|options?)(?![\w.-])"
)
_ESCAPE = re.compile(r"\\{1,4}[nrt](?=[A-Z_#\[]|\Z)")  # the end of a line in a string
_LONGEST_VALUE = 500
_NAMES_IN_VALUE = 16  # a refused value in which more names follow is not looked at again for each
_NEAR = 120  # characters before a name
_LONGEST_LINE = 200  # of a line, what is looked at before a name
_DEFINES = frozenset((
    "#define", "define", "-x", "-gx", "-ux", "env", "setenv", "setx", "set", "arg", "export",
    "(setq", "(def", "set(",
    "(define", "fastcgi_param", "proxy_set_header", "add_header", "option",
))  # fmt: skip
_ENDS_ARGUMENT = re.compile(r"[ \t]{0,4}(?:\\?\r?\n|\Z|[|;&\"'`)]|-)")


def find_assigned_secrets(subject: Subject) -> Iterator[Span]:
    text, done = subject.text, 0
    refused_end = names_inside = 0
    for stem_start, stem_end in _stems(subject):
        if stem_start < done:
            continue
        names_inside = names_inside + 1 if stem_start < refused_end else 0
        if names_inside > _NAMES_IN_VALUE:
            continue
        after = _AFTER.match(text, stem_end)
        if after is None:
            continue
        assignment = _Assignment(text, stem_start, after)
        span = assignment.span()
        if span is not None:
            done = span.end
            yield span
        refused_end = max(refused_end, assignment.refused_end)


def _stems(subject: Subject) -> Iterator[tuple[int, int]]:
    """Where the stems of the text are, each with its end; none begins inside of another."""
    places = sorted(
        place for stem in _STEMS & subject.clues for place in _places(subject.lowered, stem)
    )
    done = 0
    for start, end in places:
        if start >= done:
            done = end
            yield start, end


def _places(lowered: str, stem: str) -> Iterator[tuple[int, int]]:
    start = lowered.find(stem)
    while start >= 0:
        end = start + len(stem)
        if stem != _ONLY_AT_END or not _is_in_word(lowered[end : end + 1]):
            yield start, end
        start = lowered.find(stem, end)


def _is_in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


class _Assignment:
    """A name in a text, and what gives it its value."""

    def __init__(self, text: str, stem: int, after: re.Match[str]) -> None:
        self.text, self.after = text, after
        self.start = _name_start(text, stem)
        self.name = text[self.start : after.end("rest")]
        self.sure = self._certainty()
        self.operator = after["operator"] or ""
        self.refused_end = 0  # of the last value that was no secret

    def _certainty(self) -> Certainty:
        if self.text[max(0, self.start - 1) : self.start] == " ":  # an API key
            first = _FIRST_WORD.search(self.text, max(0, self.start - 14), self.start)
            if first is not None and len(self.name) < 7:
                return certainty(f"{first[0]}{self.name}")
        sure = certainty(self.name)
        if sure is Certainty.ODD and self.is_flag:
            return Certainty.PASSWORD
        if sure is Certainty.ODD:
            near = max(0, self.start - _NEAR)
            return Certainty.PASSWORD if _USER_NEAR.search(self.text, near, self.start) else sure
        return sure

    @property
    def is_quoted(self) -> bool:
        return bool(self.after["close"])

    @property
    def is_flag(self) -> bool:
        return self.name.startswith("-")

    @property
    def is_environment(self) -> bool:
        """Whether the name is one of the environment, as in NAMES_LIKE_THIS."""
        return self.name == self.name.upper() and len(self.name) > 3

    def span(self) -> Span | None:
        if self.sure is Certainty.NONE or self.text.startswith("::", max(0, self.start - 2)):
            return None
        if self.after["element"] is not None:
            return self._element()
        if self.after["cell"] is not None:
            match = _CELL_VALUE.match(self.text, self.after.end())
            return self._found(match, is_plain_secret) if match else None
        if self.after["space"] is not None:
            return self._argument() or self._mentioned()
        if self.after["prose"] is not None:
            match = _LAST_WORD.match(self.text, self.after.end())
            told = self._found(match, is_listed_secret) if match else None
            return self._quoted(is_listed_secret) or told or self._plain()
        if self.operator == ",":
            return self._listed()
        if self.operator == "(" or self.operator.startswith("."):
            return self._called()
        if self.after["typed"] is not None and _REST_IS_BLANK.match(self.text, self.after.end()):
            match = _UNTYPED.match(self.text, self.after.start("typed"))  # no type: the value
            return self._found(match, is_plain_secret) if match else None
        return self._quoted(is_quoted_secret) or self._fallback() or self._plain()

    def _called(self) -> Span | None:
        """`setPassword("value")`."""
        if self.is_quoted or self.sure is Certainty.ODD:
            return None
        is_method = self.name.startswith(".") or "." in self.name
        is_word = self.name.islower() and not is_method
        return self._quoted(is_listed_secret if is_word else is_quoted_secret)

    def _listed(self) -> Span | None:
        """`f("NAME", "value")`, `["--name", "value"]`."""
        if self.is_flag and self.is_quoted:
            return self._quoted(is_flag_value)
        if not self.is_quoted:
            return None
        before = self.text[max(0, self.start - 20) : self.start].rstrip("\"'`\\ \t\n")
        if before.lower().endswith(_SETTERS):
            return self._quoted(is_quoted_secret)
        if not before.endswith(("(", "[", "{")):
            return self._quoted(is_mixed)
        return self._quoted(is_quoted_secret if self.is_environment else is_listed_secret)

    def _fallback(self) -> Span | None:
        """`token = getenv("TOKEN") or "value"`."""
        opening = _FALLBACK.match(self.text, self.after.end()) if self.operator == "=" else None
        if opening is None:
            return None
        return self._between(opening.end(), opening["quote"], is_listed_secret)

    def _quoted(self, accept: Accept) -> Span | None:
        opening = _OPENING.match(self.text, self.after.end())
        if opening is None:
            return None
        if _LOOKUP.search(opening["wrapper"] or ""):
            accept = is_listed_secret
        return self._between(opening.end(), opening["quote"], accept)

    def _between(self, start: int, quote: str, accept: Accept) -> Span | None:
        end = _closing(self.text, start, quote)
        if end < 0:
            end = _REST.match(self.text, start).end()  # type: ignore[union-attr]
            end = end if end - start >= _LONGEST_VALUE else start
        is_secret = end > start and accept(self.sure, self.text[start:end])
        return Span(start, end, kind_of(self.sure)) if is_secret else None

    def _element(self) -> Span | None:
        before = self.text[self.start - 1 : self.start]
        if before not in ("<", ":") and not (self.is_quoted and before in ('"', "'", ".")):
            return None
        match = _ELEMENT_VALUE.match(self.text, self.after.end())
        return self._found(match, is_quoted_secret) if match else None

    def _argument(self) -> Span | None:
        """`--name value`, `#define NAME value`, `ENV NAME value`."""
        before = self.text[_line_start(self.text, self.start) : self.start].strip().lower()
        is_keyword = self.text[self.start - 1 : self.start] == ":"
        is_defined = before.split(" ")[-1] in _DEFINES
        if not (self.is_flag or is_defined or is_keyword) or self.is_quoted:
            return None
        if span := self._quoted(is_flag_value if self.is_flag else is_quoted_secret):
            return span
        match = _PLAIN.match(self.text, self.after.end())
        if match is None or match["value"][0] == "-":
            return None
        is_word = match["value"].islower() and match["value"].isalpha()
        if is_word and self._is_prose(before, match.end()):
            return None
        return self._found(match, is_plain_secret if is_keyword else is_flag_value)

    def _is_prose(self, before: str, end: int) -> bool:
        """Whether a flag is mentioned in a sentence: it has words that commands do not have."""
        if before:
            return _PROSE.search(before) is not None
        return _ENDS_ARGUMENT.match(self.text, end) is None

    def _mentioned(self) -> Span | None:
        """`Invalid token 'value'`, `storePassword "value"`."""
        if self.is_quoted:
            return None
        if self.sure is Certainty.PASSWORD:
            match = _LAST_WORD.match(self.text, self.after.end())
            return (
                self._quoted(is_quoted_secret)
                or self._alone()
                or (self._found(match, is_told_password) if match else None)
            )
        if self.sure is Certainty.SECRET and (span := self._quoted(is_listed_secret)):
            return span
        match = _SENTENCE_VALUE.match(self.text, self.after.end())
        return self._found(match, is_mixed) if match else None

    def _alone(self) -> Span | None:
        """`keyPassword value`, as the only words of a line."""
        if self.text[_line_start(self.text, self.start) : self.start].strip():
            return None
        match = _LAST_OF_LINE.match(self.text, self.after.end())
        is_of_user = self._is_of_settings(_line_start(self.text, self.start))
        return self._found(match, is_argument if is_of_user else is_plain_secret) if match else None

    def _plain(self) -> Span | None:
        match = _PLAIN.match(self.text, self.after.end())
        if match is None and self.operator == ":":
            match = _NEXT_LINE.match(self.text, self.after.end())
            return self._found(match, is_plain_secret) if match else None
        if match is None:
            return None
        if self.text.startswith(("(", "["), match.end()):
            return None
        return self._found(match, self._plain_accept(match))

    def _plain_accept(self, match: re.Match[str]) -> Accept:
        """How sure a value without quotes must be, by what is around it."""
        following = self.text[match.end() : match.end() + 1]
        line_start = _line_start(self.text, self.start)
        space_before = self.after.start("operator") > self.after.end("close")
        is_tight = self.operator == "=" and not match["gap"] and not space_before
        if is_tight and (self.is_flag or self._is_after_flag()):
            return is_flag_value
        is_alone = not self.text[line_start : self.start].strip(" \t-#/*;$")
        if is_tight and (self.is_environment or (is_alone and following.isspace())):
            return is_environment_value
        if self.operator in (":-", ":+", ":?") and self.is_environment:
            return is_argument
        if self.after["block"] is not None:
            return is_setting
        if self.after["pair"] is not None:
            return is_environment_value if self.is_environment else is_quoted_secret
        is_of_connection = following == ";" or self.text[self.start - 1 : self.start] == ";"
        if is_tight and is_of_connection and self.sure >= Certainty.ODD:
            return is_connection_password
        if self.operator == ":" and match["gap"] and following in _QUOTES and self._is_header():
            return is_environment_value
        if following in _ENDS_LINE and self.operator in _GIVES and not self.is_quoted:
            if is_alone and (is_tight or self._is_of_settings(line_start)):
                return is_environment_value if self.is_environment else is_argument
            if is_alone and self.operator == ":":
                return is_setting
        if is_tight and not self.is_quoted and following in _ENDS and self.sure >= Certainty.LIKELY:
            return is_logged_secret
        return is_plain_secret

    def _is_header(self) -> bool:
        """`'name: value'`, a string of its own."""
        return not self.is_quoted and self.text[self.start - 1 : self.start] in _QUOTES

    def _is_after_flag(self) -> bool:
        """`--set name=value`, `"host=… name=value"`."""
        near = max(0, self.start - _NEAR)
        return bool(
            _AFTER_FLAG.search(self.text, near, self.start)
            or _AFTER_PAIR.search(self.text, near, self.start)
        )

    def _is_of_settings(self, line_start: int) -> bool:
        if self.is_environment:
            return True
        if _SECTION.search(self.text, max(0, line_start - _NEAR), line_start):
            return True
        return bool(_USER_LINE.search(self.text, max(0, line_start - 120), self.start))

    def _found(self, match: re.Match[str], accept: Accept) -> Span | None:
        value = _ESCAPE.split(match["value"], maxsplit=1)[0].rstrip(".:!?")
        if self.operator == "=" and "&" in value:  # the rest of a query
            value = value.partition("&")[0]
        if not accept(self.sure, value):
            self.refused_end = match.end("value")
            return None
        start = match.start("value")
        end = start + len(value)
        if len(match["value"]) >= _LONGEST_VALUE and (rest := _REST.match(self.text, match.end())):
            end = rest.end()
        return Span(start, end, kind_of(self.sure))


def _name_start(text: str, position: int) -> int:
    least = max(0, position - LONGEST_NAME)
    while position > least and (text[position - 1].isalnum() or text[position - 1] in "_-.$"):
        position -= 1
    if position and text[position - 1] == "\\" and text[position] in "nrt":
        position += 1  # an escape is not part of the name
    return position


def _line_start(text: str, position: int) -> int:
    least = max(0, position - _LONGEST_LINE)
    return max(least, text.rfind("\n", least, position) + 1)


def _closing(text: str, start: int, quote: str) -> int:
    """The quote that ends a value on its line; -1 where there is none near."""
    limit = start + _LONGEST_VALUE * 8
    line_end = text.find("\n", start, limit)
    limit = line_end if line_end >= 0 else limit
    end = text.find(quote, start, limit)
    while end > start and len(quote) == 1 and text[end - 1] == "\\" and text[end - 2] != "\\":
        end = text.find(quote, end + 1, limit)
    return end
