from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto import wire
from recto.chat.blocks import BLOCKS, Block, DocumentReference, Made, MessageRange, Quote, Text
from recto.errors import Invalid


def built(kind: type) -> st.SearchStrategy[Any]:
    """Any value of a kind, by the types of its fields."""
    fields = get_type_hints(kind)
    return st.builds(kind, **{name: st.from_type(fields[name]) for name in getattr(kind, "__struct_fields__", fields)})


st.register_type_strategy(MessageRange, st.builds(MessageRange, st.integers(1, 99), st.integers(1, 99)))
st.register_type_strategy(Made, st.builds(Made, st.text(), st.text(), st.none() | st.floats(0, 1e6)))
for kind in (DocumentReference, Quote, *BLOCKS.values()):
    st.register_type_strategy(kind, built)


@given(st.lists(st.one_of(*map(st.from_type, BLOCKS.values())), max_size=4).map(tuple))
def test_blocks_come_back_from_json_as_they_went(said: tuple[Block, ...]) -> None:
    assert wire.blocks_from_json(wire.blocks_to_json(said)) == said


def test_an_unknown_block_type_is_named() -> None:
    with pytest.raises(Invalid, match="unknown block type 'hologram'"):
        wire.block_from_json({"type": "hologram"})


def test_a_block_without_its_text_is_refused() -> None:
    with pytest.raises(Invalid, match=r"a text block cannot be read: .*`text`"):
        wire.block_from_json({"type": "text"})


def test_fields_of_a_later_version_are_passed_over() -> None:
    assert wire.block_from_json({"type": "text", "text": "a", "mood": "fine"}) == Text("a")


def test_stored_blocks_are_read_that_are_not_quite_json() -> None:
    assert wire.blocks_from_json('[{"type":"text","text":"half \\ud800"}]') == (Text("half \ud800"),)
    assert wire.blocks_from_json('[{"type":"text","text":"a 😀","made":null}]') == (Text("a 😀"),)
    with pytest.raises(ValueError, match="char 1"):
        wire.blocks_from_json("[")
