"""Sources taken apart: what of them is embedded, which words they are found by, and which part would be sent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.choice.chunks import MOST_PART, apart, chunks, stems
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
def test_a_name_is_taken_apart_however_it_is_joined(name: str) -> None:
    assert apart(name) == "get user info"


def test_capitals_in_a_row_are_one_word() -> None:
    assert apart("parseHTMLPage") == "parse html page"
    assert apart("s3_presignURL") == "s3 presign url"


def test_a_tool_is_found_by_its_name_description_server_and_parameters() -> None:
    schema = {
        "type": "object",
        "properties": {
            "owner_name": {"type": "string", "description": "Account of the repository"},
            "lines": {"type": "array", "items": {"properties": {"comment": {"description": "A remark"}}}},
        },
    }
    (chunk,) = chunks(Tool("gh__createReview", "Reviews a pull request. Approves it.", schema, server="github"))
    assert stems("github create review pull request owner account repository comment remark") <= chunk.stems
    assert chunk.name == stems("gh create review")
    assert chunk.said == ("github gh create review: Reviews a pull request. Approves it.", "Reviews a pull request.")
    assert chunk.part is None


@pytest.mark.parametrize("schema", [{}, {"properties": []}, {"properties": {"a": 3}}, {"properties": None}])
def test_a_schema_that_is_not_as_it_should_be_has_no_parameters(schema: dict[str, object]) -> None:
    assert len(chunks(Tool("do_it", "Does it.", schema))) == 1


def test_a_schema_without_end_is_read_so_far() -> None:
    schema: dict[str, object] = {"type": "object"}
    schema["properties"] = {"again": schema}
    assert len(chunks(Tool("loop", "Goes round.", schema))) == 1


def test_a_short_text_is_one_chunk() -> None:
    (chunk,) = chunks(Rule("commit-messages", "The subject is a sentence.", "How commits are described"))
    assert chunk.said == ("commit messages: How commits are described\nThe subject is a sentence.",)
    assert {"commit", "messag"} <= chunk.name
    assert chunk.part is None


def test_a_long_text_competes_by_its_sections() -> None:
    first, *rest = chunks(Reference("greenhouse", LONG, "How it is run"))
    assert first.said == ("greenhouse: How it is run",)
    assert first.part is None
    parts = [chunk.part or "" for chunk in rest]
    assert any(part.startswith("## Ventilation\nThe roof opens") for part in parts)
    assert all(part in LONG for part in parts)


def test_of_a_very_long_section_its_heading_and_what_fits_is_a_part() -> None:
    words = " ".join(f"word{number}" for number in range(2000))
    text = f"# Title\n\n## Endless\n{words}\n\n## Short\nThe end of it.\n"
    parts = [chunk.part for chunk in chunks(Reference("long", text)) if chunk.part]
    assert all(len(part) <= MOST_PART for part in parts)
    later = [part for part in parts if "…" in part]
    assert later
    assert all(part.startswith("## Endless\n\n…\n\nword") for part in later)


def test_a_source_without_text_is_known_by_its_name() -> None:
    (chunk,) = chunks(Rule("brevity", ""))
    assert chunk.said == ("brevity",) or chunk.said == ("brevity\n",)
    assert chunk.stems == chunk.name


@given(st.text(max_size=3000), st.text(max_size=60))
def test_any_text_can_be_taken_apart(text: str, name: str) -> None:
    made = chunks(Reference(name or "x", text))
    assert made
    for chunk in made:
        assert chunk.said
        assert chunk.name <= chunk.stems
        assert chunk.part is None or len(chunk.part) <= max(MOST_PART, len(text))
