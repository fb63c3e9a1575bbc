"""Text without the formats that stand between its words: colours, tags, entities, escapes, keys of
JSON, and what tools put before each line.

Text that was copied is compared in this form on both sides, so that a format which one of them has
makes no difference.
"""

import html
import re
from urllib.parse import unquote

MAX_LAYERS = 3  # of formats in formats, such as tags that are entities in JSON
_INLINE = re.compile(
    r"(?:b|i|u|s|em|strong|span|a|code|font|small|big|mark|sub|sup|tt|wbr|ins|del|abbr|kbd|var|q)",
    re.IGNORECASE,
)
# Each begins with one character, so that searching a text without it takes next to no time.
_COLOUR = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_ESCAPE = re.compile(
    r"(?<!\\)\\++(?:(?:u001[bB]|x1[bB]|033|e)(\[[0-?]*[ -/]*[@-~])"
    r"|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))"
)
_BEGINNINGS = ("\\u", "\\x", "\\0", "\\e")
_BLANKS = ("\\n", "\\r", "\\t")
_KEY = re.compile(r'"[\w .$/-]{1,40}\\*"[ \t]*:')
_TAG = re.compile(r"</?([a-zA-Z][\w-]{0,40})(?:\s[^<>]{0,200})?/?>|<!--|-->")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});")
_PERCENT = re.compile(r"%[0-9a-fA-F]{2}(?:%[0-9a-fA-F]{2})*")
# The number of a line, the file and line that a search found, and a key before up to three words.
_NUMBER = re.compile(r"(\n)[ \t>#]*[0-9]{1,6}[ \t]*[|:→│)\t-]")
_PLACE = re.compile(r"(\n)[\w./-]{1,100}?\.\w{1,8}[:-](?:[0-9]{1,6}[:-])?(?=\S)")
_KEY_OF_LINE = re.compile(r"(\n)[ \t]*(?:[-*+][ \t]+)?[\w.-]{1,30}:[ \t]+(?=\S+(?: \S+){0,2}\s*\n)")


def without_formats(text: str) -> str:
    for _ in range(MAX_LAYERS):
        previous = text
        if "\x1b" in text:
            text = _COLOUR.sub("", text)
        if "\\" in text:
            for blank in _BLANKS:
                text = text.replace(blank, "\n")
            if any(beginning in text for beginning in _BEGINNINGS):
                text = _ESCAPE.sub(_unescaped, text)
        if "&" in text:
            text = _ENTITY.sub(lambda match: html.unescape(match[0]), text)
        if "%" in text:
            text = _PERCENT.sub(lambda match: unquote(match[0]), text)
        if text == previous:
            break
    if '"' in text:
        text = _KEY.sub(" ", text)
    if "<" in text:
        text = _TAG.sub(_between_tags, text)
    if "\n" in text:
        text = f"\n{text}\n"
        for pattern in (_NUMBER, _PLACE, _KEY_OF_LINE):
            text = pattern.sub("\n", text)
    return text


def _unescaped(match: re.Match[str]) -> str:
    colour, code, byte = match.groups()
    if colour:
        return ""
    return chr(int(code or byte, 16))


def _between_tags(match: re.Match[str]) -> str:
    return "" if _INLINE.fullmatch(match[1] or "") else " "
