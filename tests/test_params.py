"""Parameters become typed values, or an error that names the parameter."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem import params
from claude_mem.errors import BadInput
from claude_mem.recall.memory_ids import MemoryId, parse_memory_id
from claude_mem.redaction import Redactor
from claude_mem.worker.forgetting import ForgetRequest

KINDS = ("observation", "summary", "prompt")


@given(st.sampled_from(KINDS), st.integers(0, 10**18 - 1))
def test_a_memory_id_is_read_back_from_its_name(kind: str, number: int) -> None:
    memory_id = MemoryId(kind, number)
    assert parse_memory_id(str(memory_id)) == memory_id
    assert MemoryId.of_document(memory_id.document) == memory_id


@pytest.mark.parametrize("text", ["", "S", "#", "X3", "-1", "1.5", "S3 ", "٣", "1" * 19, "login"])
def test_other_texts_are_not_memory_ids(text: str) -> None:
    assert parse_memory_id(text) is None


def test_memory_ids_are_read_once_each_in_their_order() -> None:
    ids = params.memory_ids({"ids": ["P4", 12, "#12", "s3", "12"]})
    assert [str(memory_id) for memory_id in ids] == ["P4", "12", "S3"]


def test_a_secret_with_a_comma_is_removed_before_a_list_is_split() -> None:
    url = "https://keeper:Xk29,vQ81pL@harbor.example/lamp"
    memory = params.new_memory({"text": "The lamp", "files": f"lamp.py,{url}"}, Redactor())
    assert "lamp.py" in memory.files
    assert "Xk29" not in str(memory) and "vQ81pL" not in str(memory)


@pytest.mark.parametrize(
    ("values", "request_"),
    [
        ({"ids": [1]}, ForgetRequest(ids=(MemoryId("observation", 1),))),
        ({"session": 7}, ForgetRequest(session="7")),
        ({"file": "a.py", "query": "x", "ids": []}, ForgetRequest(file="a.py", query="x")),
        ({"project": "harbor", "confirm": "t"}, ForgetRequest(project="harbor", confirm="t")),
    ],
)
def test_a_request_to_forget_selects_in_one_way(
    values: dict[str, Any], request_: ForgetRequest
) -> None:
    assert params.forget_request(values) == request_


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"ids": [1], "session": "one"}, "session"),
        ({"session": "one", "query": "x"}, "query"),
        ({"file": " / "}, "file"),
        ({"query": "x", "file": ""}, "file"),
        ({"ids": "1"}, "ids"),
        ({"ids": [True]}, "ids"),
        ({"query": ["x"]}, "query"),
        ({"everything": "yes"}, "everything"),
    ],
)
def test_an_unclear_request_to_forget_is_refused(values: dict[str, Any], name: str) -> None:
    with pytest.raises(BadInput) as refused:
        params.forget_request(values)
    assert refused.value.field == name
