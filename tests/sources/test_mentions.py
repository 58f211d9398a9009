import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.sources.documents import find_mentions, mentioned_sources
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
        ("@Rule:style and @REF:api and @Reference:größe", ["style", "API", "Größe"]),
        ("@ref:api's endpoints and @rule:style’s words, @ref:API’S.", ["API", "style"]),
        (r"\@rule:style and \\@ref:api are words", []),
    ],
)
def test_mentioned_sources_are_found(text: str, names: list[str]) -> None:
    found, problems = mentioned_sources(text, SOURCES)
    assert [each.name for each in found] == names
    assert problems == []


def test_an_unknown_name_is_reported_with_a_similar_one() -> None:
    found, problems = mentioned_sources("@rule:stlye and @ref:zebra", SOURCES)
    assert found == []
    assert problems == ["there is no rule stlye; did you mean style?", "there is no reference zebra"]


def test_names_are_reported_as_they_are_written() -> None:
    _, problems = mentioned_sources("@ref:AIP and @REF:grüße", SOURCES)
    assert problems == [
        "there is no reference AIP; did you mean API?",
        "there is no reference grüße; did you mean Größe?",
    ]


def test_words_that_only_begin_a_name_are_not_taken_for_it() -> None:
    _, problems = mentioned_sources("@rule:my rules are many", [Rule("my rule", "x")])
    assert problems == ["there is no rule my"]


def test_a_disabled_source_is_reported_and_not_returned() -> None:
    sources = [*SOURCES, Rule("off", "x", enabled=False)]
    found, problems = mentioned_sources("@rule:OFF and @rule:style and @rule:off", sources)
    assert [each.name for each in found] == ["style"]
    assert problems == ["rule off is not enabled"]


def test_many_unknown_names_are_counted_once_and_the_first_reported() -> None:
    text = " ".join(f"@rule:zz{number % 25}, @rule:ZZ{number % 25}" for number in range(100))
    _, problems = mentioned_sources(text, SOURCES)
    assert problems == [*(f"there is no rule zz{number}" for number in range(10)), "and 15 more are unknown"]


words = st.lists(st.sampled_from(["style", "off", "zz", "my rule", "API", "x.", "y's"]), max_size=30)


@given(words, st.sampled_from(["@rule:", "@Ref:", "\\@rule:", '@rule:"']))
def test_found_sources_are_enabled_and_problems_are_limited(names: list[str], sign: str) -> None:
    sources = [*SOURCES, Rule("off", "x", enabled=False)]
    found, problems = mentioned_sources(" ".join(f"{sign}{name}" for name in names), sources)
    assert all(each.enabled for each in found)
    assert len(found) == len({each.id for each in found})
    assert len(problems) == len(set(problems)) <= 11


@pytest.mark.untraced
def test_a_very_long_message_is_searched_in_time() -> None:
    assert len(find_mentions("@rule:style " * 20_000)) == 20_000
