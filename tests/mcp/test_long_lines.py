"""Errors that Recto answers in the server's place go to the call that the line belongs to, and to no other."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.mcp.stdio import END_BYTES, LongLine, error_for_long_line

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "result", "a"]), inner, max_size=3)
    ),
    max_leaves=6,
)
IDS = st.integers(-9, 10**9) | st.text("abc-", max_size=9)


def id_in(line: bytes) -> Any:
    found = error_for_long_line(LongLine.of(line), "why")
    assert found is None or found.message.error.message == "why"  # type: ignore[union-attr]
    return found and found.message.id  # type: ignore[union-attr]


@given(IDS, JSON, st.permutations(["jsonrpc", "id", "result"]), st.sampled_from([None, 2]))
def test_only_the_id_of_the_response_itself_is_found(
    id: int | str, result: Any, order: list[str], indent: int | None
) -> None:
    message = {"jsonrpc": "2.0", "id": id, "result": result}
    line = json.dumps({key: message[key] for key in order}, indent=indent).encode()
    assert id_in(line) == id


@given(IDS, st.binary(max_size=20))
def test_a_request_of_the_server_is_not_a_response(id: int | str, more: bytes) -> None:
    for order in (["jsonrpc", "id", "method"], ["method", "id", "jsonrpc"], ["id", "method"]):
        message = {"jsonrpc": "2.0", "id": id, "method": "roots/list"}
        line = json.dumps({key: message[key] for key in order}).encode()
        assert id_in(line) is None
        assert id_in(line[:-1] + more) is None


@pytest.mark.parametrize("behind", [b"", b', "jsonrpc": "2.0"'])
def test_an_id_after_a_long_result_is_found(behind: bytes) -> None:
    line = b'{"result": {"content": [{"id": 7, "text": "' + b"x" * 3 * END_BYTES + b'"}]}, "id": 12' + behind + b"}\r"
    assert id_in(line) == 12


def test_a_truncated_response_has_no_id() -> None:
    assert id_in(b'{"result": {"a": {"id": 7}') is None
    assert id_in(b'{"result": {"a": "b", "id": 7}}') is None
    assert id_in(b"nonsense") is None


@given(st.lists(st.binary(max_size=3 * END_BYTES), max_size=5))
def test_the_ends_are_the_same_whatever_the_chunks(chunks: list[bytes]) -> None:
    long = LongLine.of(b"first" + b"." * END_BYTES)
    for chunk in chunks:
        long.extend(chunk)
    assert long == LongLine.of(b"first" + b"." * END_BYTES + b"".join(chunks))
