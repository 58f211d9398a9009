import pytest

from recto.sources.mentions import find_mentions, mentioned
from recto.sources.source import Reference, Rule

SOURCES: list[Rule | Reference] = [
    Rule("style", "x"),
    Rule("v1.2", "x"),
    Rule("my rule", "x"),
    Reference("API", "x"),
    Reference("Größe", "x"),
]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Use @rule:style please", ["style"]),
        ("Use @rule:style, and @ref:api.", ["style", "API"]),
        ("(@rule:style)", ["style"]),
        ("@rule:STYLE\n\n@rule:style again", ["style"]),
        ("what about @rule:v1.2.", ["v1.2"]),
        ('with @rule:"my rule" and\n\n  @reference:Größe!', ["my rule", "Größe"]),
        ("mail me@rule:style or `@rule:style` in code", []),
        ("```\n@rule:style\n```", []),
        ("@rule: style", []),
        ("@rules:style", []),
    ],
)
def test_what_a_message_mentions_is_found(text: str, names: list[str]) -> None:
    found, problems = mentioned(text, SOURCES)
    assert [each.name for each in found] == names
    assert problems == []


def test_an_unknown_name_is_told_with_what_may_be_meant() -> None:
    found, problems = mentioned("@rule:stlye and @ref:zebra", SOURCES)
    assert found == []
    assert problems == ["there is no rule stlye; did you mean style?", "there is no reference zebra"]


def test_a_very_long_message_is_looked_through_in_time() -> None:
    assert len(find_mentions("@rule:style " * 20_000)) == 20_000
