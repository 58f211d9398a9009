"""Which words of a question the chunks of candidates contain, and their weight."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.sources.candidates import CandidateCache, Candidates, name_weight, values_in
from recto.sources.source import Rule, Tool


def chunks(*texts: str) -> Candidates:
    return CandidateCache().get([Rule(f"{place:02}", text) for place, text in enumerate(texts)])


def test_words_match_in_any_form() -> None:
    found = chunks("Deletes files for good.", "Sent an email.")
    matches, total = found.match("delete the file")
    assert set(matches) == {0}
    assert set(matches[0].words) == {"delete", "file"}
    assert matches[0].weight == total
    assert set(found.match("send emails")[0]) == {1}


def test_a_rare_word_weighs_more() -> None:
    found = chunks(*["open the page"] * 20, "open the invoice")
    matches, _ = found.match("page invoice")
    assert matches[20].weight > matches[0].weight


def test_common_words_weigh_little() -> None:
    found = chunks("get weather", "get going")
    matches, _ = found.match("get the weather")
    assert matches[0].weight > 3 * matches[1].weight


def test_stop_words_do_not_match() -> None:
    found = chunks("of the and to it is", "what is the weather")
    matches, _ = found.match("the of and to it is sunny")
    assert matches == {}


def test_abbreviations_match_the_full_word() -> None:
    found = chunks("Opens a pull request.", "Lists the rows of a database.")
    assert set(found.match("merge my pr")[0]) == {0}
    assert set(found.match("look into the db")[0]) == {1}


def test_rare_words_of_a_name_weigh_more() -> None:
    assert name_weight(frozenset({"get", "weather"})) < name_weight(frozenset({"sunny", "weather"}))


@given(st.lists(st.text(max_size=40), max_size=6), st.text(max_size=60))
def test_no_match_weighs_more_than_the_question(texts: list[str], question: str) -> None:
    found = chunks(*texts)
    matches, total = found.match(question)
    assert all(0 <= each.weight <= total + 1e-9 for each in matches.values())


def tool(name: str, description: str, **types: str) -> Tool:
    schema = {"properties": {key: {"type": type} for key, type in types.items()}, "required": [*types]}
    return Tool(name, description, schema, "agent", "any", name)


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("Please add 4 and 38 for me.", "total"),
        ("whats 1289.50 + 347.25, need it for the invoice", "total"),
        ("was steht in aufgaben.txt", "look"),
        ("尾行看一下 /var/log/app.log", "look"),
        ("hol mir https://example.org/a.csv", "fetch"),
        ("Who was born in 1934?", None),
        ("Write to ann@example.org", None),
    ],
)
def test_a_tool_is_likelier_if_the_message_has_what_it_works_on(message: str, wanted: str | None) -> None:
    tools = [
        tool("total", "Gives the sum.", a="number", b="number"),
        tool("look", "Gives the content.", path="string"),
        tool("fetch", "Gives the answer.", url="string"),
        tool("wait", "Does nothing for a while.", seconds="number"),
    ]
    chunks = CandidateCache().get(tools).chunks
    assert [source.name for source, chunk in chunks if chunk.takes in values_in(message)] == (
        [wanted] if wanted else []
    )


def test_a_schema_of_any_kind_is_read() -> None:
    odd: list[Any] = [{}, {"required": 3}, {"properties": [], "required": ["a"]}, {"properties": {"a": 7}}]
    for schema in odd:
        assert CandidateCache().get([Tool("t", "", schema, "agent", "any", "t")]).chunks[0][1].takes == ""
