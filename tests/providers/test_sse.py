"""Events come out whole, however the bytes were cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.providers.http import MAX_EVENT_BYTES, EventReader, ServerEvent

STREAM = (
    ": a comment\r\n\r\n"
    "event: greeting\r\ndata: Grüße 😀\r\ndata:zwei\r\n\r\n"
    "data:{\"a\": 1}\n\n"
    "id: 7\nretry: 10\ndata: line\u2028separators\x85stay\n\n"
    "event: no data\n\n"
    "data\n\n"
    "data: mac\r\r"
    "data: [DONE]"
).encode()  # fmt: skip
EVENTS = [
    ServerEvent("Grüße 😀\nzwei", "greeting"),
    ServerEvent('{"a": 1}'),
    ServerEvent("line\u2028separators\x85stay"),
    ServerEvent(""),
    ServerEvent("mac"),
    ServerEvent("[DONE]"),
]


def read(chunks: list[bytes]) -> list[ServerEvent]:
    reader = EventReader()
    return [event for chunk in chunks for event in reader.feed(chunk)] + reader.end()


@given(st.lists(st.integers(0, len(STREAM)), max_size=20))
def test_no_cut_of_the_bytes_changes_the_events(cuts: list[int]) -> None:
    ends = [0, *sorted(cuts), len(STREAM)]
    assert read([STREAM[a:b] for a, b in pairwise(ends)]) == EVENTS


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])), min_size=1))
def test_any_text_comes_back_as_it_was(lines: list[str]) -> None:
    stream = "".join(f"data: {line}\n" for line in lines).encode() + b"\n"
    assert read([stream]) == [ServerEvent("\n".join(lines))]


def test_bytes_that_are_no_utf8_become_replacement_characters() -> None:
    assert read([b"data: a\xffb\n\n"]) == [ServerEvent("a\N{REPLACEMENT CHARACTER}b")]


def test_a_field_named_error_is_an_event_of_that_name() -> None:
    assert read([b'error: {"code":500}\n\n']) == [ServerEvent('{"code":500}', "error")]


def test_a_line_without_end_is_given_up() -> None:
    reader = EventReader()
    reader.feed(b"x" * MAX_EVENT_BYTES)
    with pytest.raises(ValueError, match="an event of more"):
        reader.feed(b"x")
