import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto import wire
from recto.chat.blocks import Block, Compaction, File, Image, Made, Text, Thinking, ToolCall, ToolResult
from recto.errors import Invalid

made = st.none() | st.builds(Made, st.text(), st.text(), st.none() | st.floats(0, 1e6))
attachments = st.one_of(
    st.builds(File, st.text(), st.text(), st.text(), made, st.text(), st.text()),
    st.builds(Image, st.text(), st.text(), made, st.text()),
)
blocks = st.one_of(
    attachments,
    st.builds(Text, st.text(), made),
    st.builds(Thinking, st.text(), st.none() | st.text(), st.none() | st.text(), made),
    st.builds(ToolCall, st.text(), st.text(), st.text(), made),
    st.builds(
        ToolResult,
        st.text(),
        st.text(),
        st.text(),
        st.booleans(),
        st.text(),
        st.text(),
        st.lists(st.text()).map(tuple),
        made,
        st.lists(attachments, max_size=2).map(tuple),
    ),
    st.builds(
        Compaction,
        st.integers(),
        st.text(),
        st.none() | st.text(),
        st.text(),
        st.integers(),
        st.integers(),
        st.integers(),
        st.text(),
        st.text(),
        st.lists(st.text()).map(tuple),
        st.dictionaries(st.text(), st.text()),
        st.dictionaries(st.text(), st.integers()),
        st.lists(st.text()).map(tuple),
        st.text(),
        st.integers(0),
        st.lists(st.text()).map(tuple),
        ledger=st.lists(st.text()).map(tuple),
        places=st.dictionaries(st.text(), st.integers()),
        cleared=st.none() | st.text(),
        made=made,
    ),
)


@given(st.lists(blocks).map(tuple))
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
