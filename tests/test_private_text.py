"""The byte scanner: what is private goes, the rest stays, and JSON stays JSON."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claude_mem.hook.private_text import MAX_SECTIONS, NAMES, strip_private
from tests.growth import too_fast_growth
from tests.plain_private_text import Pairs, strip_value

SECRET = "zq9-the-secret-zq9"
MARKS = [
    *(chr(code) for code in (*range(0x2060, 0x2065), *range(0x2066, 0x2070), 0x180E, 0x34F, 0x61C)),
    "\u200b", "\u200c", "\u200d", "\u200e", "\u202e", "\ufeff", "\xad", "\u3164", "\uffa0",
    "\u115f", "\u17b4", "\u180b", "\ufe00", "\ufe0f", "\U000e0001", "\U000e0070", "\U000e0100",
    "\U000e01ef", "\u2066\U000e0061\ufe0f",
]  # fmt: skip
TAGS = [name.decode() for name in NAMES]


def stripped(value: object, *, ascii_only: bool = True) -> object:
    return json.loads(strip_private(json.dumps(value, ensure_ascii=ascii_only).encode()))


@pytest.mark.parametrize("tag", TAGS)
def test_a_tag_and_what_it_encloses_go(tag: str) -> None:
    assert stripped({"a": f"one <{tag}>{SECRET}</{tag}> two"}) == {"a": "one  two"}


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a<PRIVATE>x</Private>b", "ab"),
        ("a<private>x<private>y</private>z</private>b", "ab"),
        ("a<private>unclosed", "a"),
        ("a<private>x<system-reminder>y</private>z</system-reminder>b", "ab"),
        ("a<private>x<system-reminder>y</private>z", "a"),
        ("a<private class='x' >y</private >b", "ab"),
        ("a<private\n>y</private\t>b", "ab"),
        ("a<private/>y", "a"),
        ("a</private>b", "ab"),
        ("a<private", "a<private"),
        ("a<private with no end", "a"),
        ("one<private>x</private>two<private>y</private>three", "onetwothree"),
        ("a < b and <b>bold</b> privateer", "a < b and <b>bold</b> privateer"),
        ("<privates>stay</privates>", "<privates>stay</privates>"),
        ("a< private>x</private>b", "ab"),
        ("a<\n private >x< / private >b", "ab"),
        ("a<private\u00a0>x</private\u00a0>b", "ab"),
        ("a<\u00a0private\u2003class='y'>x</\u3000private>b", "ab"),
        ("a<\ufeffprivate>x<\u200b/private>b", "ab"),
        ("a < private and so on", "a < private and so on"),
        ("a < private b > c", "a "),
        ("a <privateer> b", "a <privateer> b"),
        ("<system_instruction>x</system_instruction>", ""),
        ("\u00e9<private>\u4e2d\u6587</private>\U0001f600", "\u00e9\U0001f600"),
    ],
)
def test_tags_in_every_form(text: str, left: str) -> None:
    assert stripped(text) == left
    assert stripped(text, ascii_only=False) == left


@pytest.mark.parametrize(
    "raw",
    [
        rb'"a\u003cprivate\u003eSECRET\u003c/private\u003eb"',
        rb'"a\u003Cprivate>SECRET<\/private>b"',
        rb'"a<pr\u0069vate>SECRET<\u002fprivate>b"',
        rb'"a\u003c\u0070\u0072\u0069\u0076\u0061\u0074\u0065\u003eSECRET\u003c\u002Fprivate\u003Eb"',
        rb'"a<\u0050RIVATE>SECRET</PRIVATE>b"',
        rb'"a\\u003cprivate\\u003eSECRET\\u003c/private\\u003eb"',
        rb'"a\\\\u003cprivate\\\\u003eSECRET\\\\u003c/private\\\\u003eb"',
        rb'"a<private\u0020x=\"1\">SECRET</private>b"',
        rb'"a<private\n>SECRET</private>b"',
    ],
)
def test_tags_written_with_escapes(raw: bytes) -> None:
    assert json.loads(strip_private(raw)) == "ab"


@pytest.mark.parametrize(
    "text",
    [
        "a＜private＞x＜/private＞b", "a＜PRIVATE＞x</private>b", "a<private>x＜/private＞b",
        "a&lt;private&gt;x&lt;/private&gt;b", "a&LT;private reason=1&GT;x&lt;/private&gt;b",
        "a<pri\u200bvate>x</priv\u00adate>b", "a＜pri\u2060vate＞x＜/private＞b",
        "a﹤private﹥x﹤/private﹥b", "a&ltprivate&gt;x&lt/private&gt;b",
        "a&#60;private&#62;x&#60;/private&#62;b", "a&#x3C;private&#x3E;x&#x3c;&#x2F;private&#x3e;b",
        "a&#060;private&#062;x&#060;&#47;private&#062;b",
        "a&amp;lt;private&amp;gt;x&amp;lt;/private>b",
        "a%3Cprivate%3Ex%3C%2Fprivate%3Eb", "a%3cprivate why=1%3ex%3c/private%3eb",
        "a%253Cprivate%253Ex%253C%252Fprivate%253Eb", "a&lt;private>x&lt;&sol;private>b",
        r"a\x3cprivate\x3ex\x3c/private\x3eb", r"a\x3Cprivate>x\x3C\x2Fprivate>b",
        *(f"a<pri{mark}vate>x</pr{mark}ivate>b" for mark in MARKS),
        *(f"a<{mark}private>x<{mark}/private>b" for mark in MARKS),
        *(f"a<private{mark}>x</{mark}private>b" for mark in MARKS),
        *(f"a&lt;{mark}private&gt;x%3C/priv{mark}ate%3Eb" for mark in MARKS),
    ],
)  # fmt: skip
def test_tags_with_other_brackets_and_invisible_characters(text: str) -> None:
    data = json.dumps({"prompt": text, "n": 1}, ensure_ascii=False).encode()
    assert json.loads(strip_private(data)) == {"prompt": "ab", "n": 1}


@pytest.mark.parametrize(
    "text",
    [
        "a＜private＞x＜/private＞b",
        "a﹤private﹥x﹤/private﹥b",
        *(f"a<pri{mark}vate>x</{mark}private>b" for mark in MARKS),
        *(f"a<private{mark}>x<{mark}/private>b" for mark in MARKS),
    ],
)
def test_other_brackets_and_invisible_characters_as_escapes(text: str) -> None:
    data = json.dumps({"prompt": text, "n": 1}).encode()
    assert json.loads(strip_private(data)) == {"prompt": "ab", "n": 1}


def test_other_brackets_in_json_inside_json() -> None:
    inner = json.dumps({"t": "a＜private＞x＜/private＞b"})
    data = json.dumps({"prompt": inner}).encode()
    assert b"x" not in strip_private(data)
    assert json.loads(strip_private(data))


@pytest.mark.parametrize(
    "text",
    [
        "if a &lt; b and private &gt; c",
        "＜b＞ private",
        "caf\u00ade 👩\u200d💻 private",
        "&lt;p&gt;",
        "&#60;b&#62; private 100%3 %3Cb%3E private",
        "private ✔\ufe0f private\nprivate, private 👩\u200d💻",
        "x3c private &amp;lt;b",
    ],
)
def test_other_brackets_without_a_tag_stay(text: str) -> None:
    data = json.dumps({"prompt": text}, ensure_ascii=False).encode()
    assert strip_private(data) == data


def test_a_tag_ends_with_the_member_that_it_stands_in() -> None:
    payload = {"one": f"<private>{SECRET}", "two": "stays", "three": ["<private>x", SECRET], "4": 5}
    assert stripped(payload) == {"one": "", "two": "stays", "three": ["", ""], "4": 5}


def test_an_escaped_quote_does_not_end_the_string() -> None:
    assert stripped({"a": f'<private>"{SECRET}" \\" {SECRET}', "b": "c"}) == {"a": "", "b": "c"}


def test_backslashes_before_a_quote_are_counted() -> None:
    assert stripped({"a": "<private>x\\", "b": "c\\\\"}) == {"a": "", "b": "c\\\\"}


def test_a_hundred_sections_of_a_string_are_followed_and_no_more() -> None:
    section = "<private>x<private>y</private></private>k"
    assert stripped(section * MAX_SECTIONS + "end") == "k" * MAX_SECTIONS + "end"
    over = {"a": section * (MAX_SECTIONS + 1) + SECRET, "b": "c"}
    assert stripped(over) == {"a": "k" * MAX_SECTIONS, "b": "c"}
    each_once = ["<private>x</private>k"] * (MAX_SECTIONS + 50)
    assert stripped({"a": each_once}) == {"a": ["k"] * (MAX_SECTIONS + 50)}


# Sections over several strings


@pytest.mark.parametrize(
    ("value", "left"),
    [
        (["a<private>x", SECRET, "y</private>b", "c"], ["a", "", "b", "c"]),
        (["a<private>x", SECRET], ["a", ""]),
        (["a<private>", ["b", [SECRET]], {"text": SECRET}], ["a", ["", [""]], {"text": ""}]),
        (["a<private>", 12, -3.5e7, True, None, "</private>", 8],
         ["a", 0, 0, True, None, "", 8]),
        ({"stdout": "a<private>", "stderr": SECRET}, {"stdout": "a", "stderr": ""}),
        ({"a": "<private>", SECRET: 1}, {"a": "", "": 0}),
        ({f"a<private>{SECRET}": SECRET, "b": "</private>c"}, {"a": "", "": "c"}),
        ([{"type": "text", "text": "a<private>"},
          {"type": "text", "text": f"{SECRET}</private>b"}],
         [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
        ([{"lines": ["-a", "+<private>", f"+{SECRET}"]}, {"oldStart": 7, "lines": ["</private>b"]}],
         [{"lines": ["-a", "+", ""]}, {"oldStart": 0, "lines": ["b"]}]),
        (["a<private>", "x<private>", "</private>" + SECRET, "</private>b"], ["a", "", "", "b"]),
        (["a<private>", "</private>b<private>", SECRET, "</private>c"], ["a", "b", "", "c"]),
        (["a<private>x<system-reminder>", "</private>" + SECRET, "</system-reminder>b"],
         ["a", "", "b"]),
        (["a<private", "  why='x'>", SECRET, "</private>b"], ["a", "", "", "b"]),
        (["a<private why='x'", ">", SECRET, "</private>b"], ["a", "", "", "b"]),
        (["a</private>b", "c"], ["ab", "c"]),
        (["a", "b"], ["a", "b"]),
    ],
)  # fmt: skip
def test_an_open_tag_reaches_through_the_strings_after_it(value: object, left: object) -> None:
    assert stripped({"v": value, "after": "stays"}) == {"v": left, "after": "stays"}
    assert stripped([value, "x"] if left == value else [value]) == (
        [left, "x"] if left == value else [left]
    )


def test_an_escaped_tag_reaches_through_the_strings_after_it() -> None:
    raw = rb'{"a": ["x\u003cprivate\u003e", "SECRET", "y\u003c\/private>z"], "b": "c"}'
    assert json.loads(strip_private(raw)) == {"a": ["x", "", "z"], "b": "c"}


def test_two_documents_on_a_line_are_told_apart() -> None:
    assert strip_private(b'{"a":["<private>x","y"]}{"b":["z"]}') == b'{"a":["",""]}{"b":["z"]}'


_pieces = st.sampled_from([
    "a", "b ", "<private>", "</private>", "<PRIVATE >", "</ private>", "< private>",
    "<private", "</private", "<private ", "< private ",
    "<system-reminder>", "</system-reminder>", "<private x='>", "<privates>", "<", ">", "\u00a0",
    "<private\u00a0>", "text", "\n", '"', "é",
])  # fmt: skip
_tagged = st.lists(_pieces, max_size=6).map("".join)
_documents = st.recursive(
    st.one_of(_tagged, st.integers(-99, 99), st.none(), st.booleans()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(st.tuples(_tagged, inner), max_size=4).map(Pairs),
    ),
    max_leaves=14,
)


@settings(max_examples=1000)
@given(_documents, st.booleans(), st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " : ")]))
def test_the_scanner_does_what_a_plain_program_does(
    value: object, ascii_only: bool, separators: tuple[str, str]
) -> None:
    text = Pairs.dumps(value, ascii_only, separators)
    clean = strip_private(text.encode())
    assert json.loads(clean, object_pairs_hook=Pairs) == strip_value(value)


# Bytes that are not JSON


@pytest.mark.parametrize(
    "data",
    [
        f"plain words <private>{SECRET}</private> end",
        f'not "<private>json" {SECRET}',
        f'{{"cut": "<private>{SECRET}',
        f'{{"a": "<private>x", {SECRET}',
        f"{{'single': '<private>{SECRET}'}}",
        f'<private>"{SECRET}", "x": "</private>"',
    ],
)
def test_bytes_that_are_not_json_are_cut_to_the_end_of_the_tag(data: str) -> None:
    assert SECRET.encode() not in strip_private(data.encode())


def test_bytes_without_tags_are_returned_untouched() -> None:
    data = b'\xff\xfe{"a": "< \\u003c private"} \x00'
    assert strip_private(data) is data


_text = st.text(max_size=30)
_hidden = st.builds(
    lambda tag, before, inner, closed: f"{before}<{tag}>{SECRET}{inner}" + (f"</{tag}>" * closed),
    st.sampled_from(TAGS + [tag.upper() for tag in TAGS]),
    _text,
    _text,
    st.integers(1, 2),
)
_values = st.recursive(
    st.one_of(_text, _hidden, st.integers(), st.none(), st.booleans()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(_text, _hidden), inner, max_size=4),
    ),
    max_leaves=12,
)


@given(_values, st.booleans())
def test_no_secret_is_left_in_any_json_and_it_stays_json(value: object, ascii_only: bool) -> None:
    clean = strip_private(json.dumps(value, ensure_ascii=ascii_only).encode())
    assert SECRET.encode() not in clean
    json.loads(clean)


@given(_values, st.integers(0, 400), st.binary(max_size=5))
def test_no_secret_is_left_in_json_that_was_cut_or_spoiled(
    value: object, at: int, noise: bytes
) -> None:
    data = json.dumps(value).encode()
    assert SECRET.encode() not in strip_private(data[:at])
    # Noise may itself be the end of a tag or of a string; inside the secret it breaks it up.
    spoiled = noise.translate(None, b'<>/"\\') + data
    assert SECRET.encode() not in strip_private(spoiled)


def _escaped(text: str, chosen: list[bool]) -> str:
    return "".join(f"\\u{ord(c):04x}" if flag else c for c, flag in zip(text, chosen, strict=False))


@given(
    st.sampled_from(TAGS + [t.upper() for t in TAGS]),
    st.lists(st.booleans(), min_size=80, max_size=80),
    _text,
)
def test_any_character_of_a_tag_may_be_an_escape(tag: str, chosen: list[bool], after: str) -> None:
    opening, closing = f"<{tag}>", f"</{tag}>"
    tail = json.dumps(after)[1:-1]
    raw = f'"a{_escaped(opening, chosen)}{SECRET}{_escaped(closing, chosen[40:])}{tail}"'
    clean = strip_private(raw.encode())
    assert SECRET.encode() not in clean
    assert json.loads(clean).startswith("a")


@given(st.binary(max_size=300))
def test_any_bytes_at_all_are_taken(data: bytes) -> None:
    assert len(strip_private(data)) <= len(data)


@pytest.mark.parametrize("before", ['{"a": ["', '["', '{"a": "', "no JSON "])
@pytest.mark.parametrize(
    "piece",
    [
        "<", "< ", "<private>", "<private ", "< private ", "</private>", "<private></private>",
        '<private>", "', '<private>", "</private>', '<private", "', "<\\n", "\\\\", "\\u003c",
        '<private>"], ["', '<private>"], 12, ["', "<\u00a0", "< private x=", '"<private>": ["x',
    ],
)  # fmt: skip
def test_the_scanner_takes_time_in_proportion(before: str, piece: str) -> None:
    def text(size: int) -> str:
        return before + piece * (size // len(piece))

    for after in ("", '"', '"]', '"]}', '"}'):
        complaint = too_fast_growth(
            lambda data: strip_private(data.encode()),
            lambda size, end=after: text(size) + end,  # type: ignore[misc]
        )
        assert complaint is None
