"""Sources split into chunks: the texts to embed, the words that find them, and the part that is sent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.sources.candidates import MAX_PART_CHARS, source_chunks, split_identifier, text_stems
from recto.sources.source import Reference, Rule, Tool

LONG = """# The greenhouse

Some words about it that come first.

## Watering
Tomatoes at six in the morning, two litres a plant, never on the leaves. Basil only when the soil is dry.

## Ventilation
The roof opens at 26 degrees and closes at 22. In a storm it is closed by hand with the crank beside the door.

## Pests
Whitefly: yellow boards and wasps. Spider mites: raise the humidity, wash the leaves. Aphids: soft soap, in the evening.
"""


@pytest.mark.parametrize(
    "name", ["get_user_info", "get-user-info", "getUserInfo", "GetUserInfo", "get.user.info", "get__user__info"]
)
def test_an_identifier_is_split_in_any_style(name: str) -> None:
    assert split_identifier(name) == "get user info"


def test_capitals_in_a_row_are_one_word() -> None:
    assert split_identifier("parseHTMLPage") == "parse html page"
    assert split_identifier("s3_presignURL") == "s3 presign url"


def test_a_tool_is_found_by_its_name_description_server_and_parameters() -> None:
    schema = {
        "type": "object",
        "properties": {
            "owner_name": {"type": "string", "description": "Account of the repository"},
            "lines": {"type": "array", "items": {"properties": {"comment": {"description": "A remark"}}}},
        },
    }
    (chunk,) = source_chunks(Tool("gh__createReview", "Reviews a pull request. Approves it.", schema, server="github"))
    assert text_stems("github create review pull request owner account repository comment remark") <= chunk.stems
    assert chunk.name == text_stems("gh create review")
    assert chunk.texts == ("github gh create review: Reviews a pull request. Approves it.", "Reviews a pull request.")
    assert chunk.part is None


@pytest.mark.parametrize("schema", [{}, {"properties": []}, {"properties": {"a": 3}}, {"properties": None}])
def test_an_invalid_schema_has_no_parameters(schema: dict[str, object]) -> None:
    assert len(source_chunks(Tool("do_it", "Does it.", schema))) == 1


def test_an_endless_schema_is_read_up_to_a_limit() -> None:
    schema: dict[str, object] = {"type": "object"}
    schema["properties"] = {"again": schema}
    assert len(source_chunks(Tool("loop", "Goes round.", schema))) == 1


def test_a_short_text_is_one_chunk() -> None:
    (chunk,) = source_chunks(Rule("commit-messages", "The subject is a sentence.", "How commits are described"))
    assert chunk.texts == ("commit messages: How commits are described\nThe subject is a sentence.",)
    assert {"commit", "messag"} <= chunk.name
    assert chunk.part is None


def test_a_long_text_competes_by_its_sections() -> None:
    first, *rest = source_chunks(Reference("greenhouse", LONG, "How it is run"))
    assert first.texts == ("greenhouse: How it is run",)
    assert first.part is None
    parts = [chunk.part or "" for chunk in rest]
    assert any(part.startswith("## Ventilation\nThe roof opens") for part in parts)
    assert all(part in LONG for part in parts)


def test_a_source_without_text_is_found_by_its_name() -> None:
    (chunk,) = source_chunks(Rule("brevity", ""))
    assert chunk.texts == ("brevity",) or chunk.texts == ("brevity\n",)
    assert chunk.stems == chunk.name


@given(st.text(max_size=3000), st.text(max_size=60))
def test_any_text_can_be_split(text: str, name: str) -> None:
    made = source_chunks(Reference(name or "x", text))
    assert made
    for chunk in made:
        assert chunk.texts
        assert chunk.name <= chunk.stems
        assert chunk.part is None or len(chunk.part) <= max(MAX_PART_CHARS, len(text))
