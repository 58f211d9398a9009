import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from recto.errors import Invalid, NotFound
from recto.sources.overrides import SourceList, SourceOverrides, find_source, overrides_from_json
from recto.sources.source import INCLUDES, Include, Reference, Rule, Source, SourceId, Tool
from recto.sources.tool_definition import ToolDefinition

WHEN = "2026-11-15T10:00:00.000Z"


def rule(name: str = "style", include: Include = "manual") -> Rule:
    return Rule(name, "Be short.", include=include)


def test_a_session_starts_with_what_is_always_included() -> None:
    modes = [SourceOverrides().mode(rule(include=include)) for include in INCLUDES]
    assert modes == ["always", None, None]


def test_what_is_added_by_hand_is_manual_whatever_its_mode() -> None:
    for include in ("manual", "agent"):
        overrides = SourceOverrides().add(rule(include=include), WHEN)
        assert overrides.mode(rule(include=include)) == "manual"
        assert overrides.listed(rule(include=include)).since == WHEN


def test_what_is_in_already_is_refused_with_the_reason() -> None:
    with pytest.raises(Invalid, match="rule:style is in this conversation already: it is always included"):
        SourceOverrides().add(rule(include="always"), WHEN)
    with pytest.raises(Invalid, match=f"already: added {WHEN}"):
        SourceOverrides().add(rule(), WHEN).add(rule(), WHEN)


def test_what_is_not_in_cannot_be_removed() -> None:
    with pytest.raises(Invalid, match="rule:style is not in this conversation"):
        SourceOverrides().remove(rule(), WHEN)


def test_a_removed_always_source_stays_out_and_comes_back_as_manual() -> None:
    always = rule(include="always")
    without = SourceOverrides().remove(always, WHEN)
    assert without.mode(always) is None
    assert without.listed(always).removed
    again = without.add(always, WHEN)
    assert again.mode(always) == "manual"
    assert not again.listed(always).removed
    # and out again, for good
    assert again.remove(always, WHEN).mode(always) is None


def test_a_source_that_a_message_might_bring_in_is_kept_out_once_removed() -> None:
    chosen = rule(include="agent")
    without = SourceOverrides().remove(chosen, WHEN)
    assert without.removes(chosen)
    assert not SourceOverrides().add(chosen, WHEN).remove(chosen, WHEN).removes(chosen)
    with pytest.raises(Invalid, match="not in this conversation"):
        without.remove(chosen, WHEN)


def test_a_source_that_is_not_enabled_is_never_in() -> None:
    off = Rule("style", "Be short.", include="always", enabled=False)
    assert SourceOverrides().mode(off) is None
    with pytest.raises(Invalid, match="not enabled"):
        SourceOverrides().add(off, WHEN)


def test_a_tool_may_run_without_asking_as_it_was_when_that_was_said() -> None:
    issue = ToolDefinition("github", "create_issue", "Creates an issue.")
    overrides = overrides_from_json(SourceOverrides().allow(issue).to_json())
    assert overrides.allows(issue)
    assert not overrides.allows(replace(issue, name="close_issue"))
    assert not overrides.allows(replace(issue, description="Deletes an issue."))
    assert not overrides.disallow("github").allows(issue)


sources = st.builds(rule, st.sampled_from("abc"), st.sampled_from(INCLUDES))


@given(st.lists(st.tuples(st.booleans(), sources), max_size=12))
def test_a_session_comes_back_from_json_as_it_went(steps: list[tuple[bool, Rule]]) -> None:
    overrides = SourceOverrides()
    for adds, source in steps:
        try:
            overrides = overrides.add(source, WHEN) if adds else overrides.remove(source, WHEN)
        except Invalid:
            continue
        assert (overrides.mode(source) is not None) == adds
    assert overrides_from_json(overrides.to_json()) == overrides


@pytest.mark.parametrize(
    "damaged", [None, [], "x", {"added": []}, {"allowed": ["github/create_issue"]}, {"removed": 3}]
)
def test_what_cannot_be_read_of_a_session_counts_as_not_said(damaged: object) -> None:
    assert overrides_from_json(damaged) == SourceOverrides()


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("rule:style", SourceId("rule", "style")),
        ("ref:my notes", SourceId("reference", "my notes")),
        ("reference:api", SourceId("reference", "api")),
        ("tool:github/create_issue", SourceId("tool", "create_issue", "github")),
        ("tool:a/b/c", SourceId("tool", "b/c", "a")),
        ("tool:recall", SourceId("tool", "recall", "recto")),
    ],
)
def test_a_source_is_named_by_kind_and_name_and_a_tool_by_its_server(text: str, id: SourceId) -> None:
    assert SourceId.parse(text) == id
    assert SourceId.parse(str(id)) == id


@pytest.mark.parametrize("text", ["", "style", "rule:", "law:style", "tool:/", ":x"])
def test_what_names_no_source_says_how_to_name_one(text: str) -> None:
    with pytest.raises(Invalid, match="write rule:NAME, ref:NAME or tool:SERVER/NAME"):
        SourceId.parse(text)


def test_a_source_is_found_by_its_name_and_one_that_is_not_there_names_what_may_be_meant() -> None:
    tool = Tool("github__create_issue", "", {}, server="github", own_name="create_issue")
    items: list[Source] = [rule(), Reference("Api", "x"), tool]
    listing = SourceList(tuple(SourceOverrides().listed(each) for each in items))
    assert find_source(listing, "ref:api").source.name == "Api"
    assert find_source(listing, "tool:github/create_issue").source is tool
    assert find_source(listing, "tool:github__create_issue").source is tool
    with pytest.raises(NotFound, match="there is no rule:styl; did you mean rule:style"):
        find_source(listing, "rule:styl")
