import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agents.conftest import Write, only_note

from recto.agents import agent_file
from recto.agents.agents import Agents
from recto.base import file_cache
from recto.sources.source import Reference, Rule


def test_rules_and_references_are_read_with_their_front_matter(agents: Agents, yours: Write) -> None:
    path = yours(
        "rules/House style.md",
        "---\ndescription: How letters\n  look.\ninclude: always\npriority: 900\ntags: [a]\n---\n\n# Style\nBe brief.",
    )
    other = yours("references/api.md", "---\nenabled: false\n---\nGET /things\n")
    agent = agents.read("clerk")
    assert agent.rules == (
        Rule("House style", "# Style\nBe brief.", "How letters look.", "always", 900, True, str(path)),
    )
    assert agent.references == (Reference("api", "GET /things", "", "manual", 500, False, str(other)),)
    assert list(agent.enabled_texts) == [agent.rules[0]]
    assert not agent.notes


def test_of_two_rules_with_one_name_the_first_is_used_and_the_other_noted(agents: Agents, yours: Write) -> None:
    yours("rules/Style.md", "first")
    yours("rules/style.md", "second")
    agent = agents.read("clerk")
    assert [(rule.name, rule.text) for rule in agent.rules] == [("Style", "first")]
    assert "is already the rule Style" in only_note(agent)


def test_a_rule_of_the_project_replaces_that_of_the_user_without_a_note(
    agents: Agents, yours: Write, theirs: Write
) -> None:
    yours("rules/style.md", "mine")
    yours("rules/mine.md", "mine alone")
    theirs("rules/Style.md", "---\ninclude: agent\n---\ntheirs")
    agent = agents.read("clerk")
    assert [(rule.name, rule.text) for rule in agent.rules] == [("mine", "mine alone"), ("Style", "theirs")]
    assert not agent.notes
    for name, priority in (("low", 0), ("high", 999)):
        yours(f"rules/{name}.md", f"---\npriority: {priority}\n---\ntext")
    assert [rule.name for rule in agents.read("clerk").rules] == ["high", "mine", "Style", "low"]


@pytest.mark.parametrize(
    ("front", "said"),
    [
        ("include: sometimes", "include = 'sometimes' is not allowed; it takes always or manual or agent"),
        ("include: [always]", "it takes always or manual or agent"),
        ("priority: high", "priority = 'high' is not allowed; it takes a whole number from 0 to 999"),
        ("priority: 1000", "it takes a whole number from 0 to 999"),
        ("priority: true", "it takes a whole number from 0 to 999"),
        ("priority: 1.5", "it takes a whole number from 0 to 999"),
        ("enabled: perhaps", "enabled = 'perhaps' is not allowed; it takes true or false"),
        ("description: 7", "description = 7 is not allowed; it takes a text"),
        ("inlcude: always", "unknown property inlcude; did you mean include?"),
        ("- a\n- b", "the front matter is not a list of properties"),
        ("a: [", "the front matter is not valid YAML"),
        ("just a text", "the front matter is not a list of properties"),
    ],
)
def test_a_problem_in_front_matter_is_noted_and_the_default_applies(
    agents: Agents, yours: Write, front: str, said: str
) -> None:
    path = yours("rules/style.md", f"---\n{front}\n---\nBe brief.\n")
    agent = agents.read("clerk")
    assert agent.rules == (Rule("style", "Be brief.", path=str(path)),)
    note = only_note(agent)
    assert said in note
    assert str(path) in note


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"x" * (file_cache.MAX_FILE_BYTES + 1), "is larger than 2 MB"),
        (b"\0\1\2" * 9, "is not text"),
        (b"---\ninclude: always\n---\n \n", "has no text, so the reference is ignored"),
    ],
)
def test_a_file_that_is_too_large_or_binary_is_noted(agents: Agents, yours: Write, raw: bytes, said: str) -> None:
    yours("references/api.md", raw)
    agent = agents.read("clerk")
    assert not agent.references
    assert said in only_note(agent)


def test_other_encodings_and_invalid_characters_are_read(agents: Agents, yours: Write) -> None:
    yours("rules/a.md", "---\ninclude: always\n---\nGrüße".encode("utf-16"))
    yours("rules/b.md", b"one \xff two")
    first, second = agents.read("clerk").rules
    assert (first.text, first.include) == ("Grüße", "always")
    assert second.text == "one � two"


@given(st.binary(max_size=400))
def test_any_file_is_a_source_or_a_note(raw: bytes) -> None:
    for text in (raw, b"---\n" + raw + b"\n---\nbody"):
        sheet = agent_file.read_source_file(Rule, "/x/rules/style.md", text)
        assert sheet.source or sheet.notes
        if sheet.source:
            assert sheet.source.text.strip()
            sheet.source.text.encode()
