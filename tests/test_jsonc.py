"""The editor of JSON with comments: what it parses, and what an edit leaves as it was."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem.errors import BadInput
from claude_mem.install import jsonc

_json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=6), _json, max_size=4), st.sampled_from([None, 2, "\t"]))
def test_any_object_is_read_and_takes_a_member(value: dict[str, object], indent: int | str) -> None:
    text = json.dumps(value, indent=indent)
    node = jsonc.parse(text)
    assert node.value == value
    longer = jsonc.add_member(text, node, "our key", {"a": [1]})
    assert json.loads(longer) == {**value, "our key": {"a": [1]}}
    root = jsonc.parse(longer)
    assert root.members is not None
    assert json.loads(jsonc.remove_child(longer, root, root.members["our key"])) == value


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[1, /* mine */ 0]", "[1 /* mine */]"),
        ("[1, // mine\n 0]", "[1 // mine\n]"),
        ("[1, // mine\n 0\n]", "[1 // mine\n]"),
        ("[1 // mine\n, 0]", "[1 // mine\n]"),
        ("[1, 0 // mine\n]", "[1 // mine\n]"),
        ("[1, 0, // mine\n 2]", "[1, // mine\n 2]"),
        ("[0 // mine\n, 1]", "[// mine\n1]"),
        ("[// mine\n 0, 1]", "[// mine\n 1]"),
        ("[ // mine [\n 0]", "[ // mine [\n ]"),
        ("[0 /* mine */]", "[/* mine */]"),
        ("[\n  0\n]", "[]"),
    ],
)
def test_removing_an_element_keeps_the_comments_next_to_it(before: str, after: str) -> None:
    array = jsonc.parse(before)
    assert array.elements is not None
    (zero,) = [element for element in array.elements if element.value == 0]
    assert jsonc.remove_child(before, array, zero) == after


def test_of_a_repeated_name_the_last_member_is_removed() -> None:
    text = '{"a": 1, "b": 2, "b": 3}'
    root = jsonc.parse(text)
    assert root.members is not None and root.members["b"].value == 3
    assert jsonc.remove_child(text, root, root.members["b"]) == '{"a": 1, "b": 2}'


_gaps = st.sampled_from(["", " ", "\n  ", " /* block */ ", " // line\n", "\n// line\n /* block */"])


@given(st.data(), st.integers(1, 4), st.booleans(), st.booleans())
def test_removing_any_child_keeps_every_comment_and_every_other_value(
    data: st.DataObject, count: int, is_object: bool, trailing_comma: bool
) -> None:
    children = [f'"{i}": {i}' if is_object else str(i) for i in range(count)]
    inner = ",".join(f"{data.draw(_gaps)}{child}{data.draw(_gaps)}" for child in children)
    inner += f",{data.draw(_gaps)}" if trailing_comma else ""
    text = "{" + inner + "}" if is_object else f"[{inner}]"
    root = jsonc.parse(text)
    nodes = [*root.members.values()] if root.members else root.elements or []
    index = data.draw(st.integers(0, count - 1))
    shorter = jsonc.remove_child(text, root, nodes[index])
    remaining = [i for i in range(count) if i != index]
    expected = {str(i): i for i in remaining} if is_object else remaining
    assert jsonc.parse(shorter).value == expected
    assert re.findall("block|line", shorter) == re.findall("block|line", text)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        jsonc.parse(text)
    except BadInput as error:
        assert str(error).startswith("line ")
