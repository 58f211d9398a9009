import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.errors import Invalid, NotFound
from recto.sources.session import Listing, Session, found, session_from_json
from recto.sources.source import INCLUDES, Include, Reference, Rule, Source, SourceId, Tool

WHEN = "2026-11-15T10:00:00.000Z"


def rule(name: str = "style", include: Include = "manual") -> Rule:
    return Rule(name, "Be short.", include=include)


def test_a_session_starts_with_what_is_always_included() -> None:
    modes = [Session().mode(rule(include=include)) for include in INCLUDES]
    assert modes == ["always", None, None]


def test_what_is_added_by_hand_is_manual_whatever_its_mode() -> None:
    for include in ("manual", "agent"):
        session = Session().add(rule(include=include), WHEN)
        assert session.mode(rule(include=include)) == "manual"
        assert session.listed(rule(include=include)).since == WHEN


def test_what_is_in_already_is_refused_with_the_reason() -> None:
    with pytest.raises(Invalid, match="rule:style is in this conversation already: it is always included"):
        Session().add(rule(include="always"), WHEN)
    with pytest.raises(Invalid, match=f"already: added {WHEN}"):
        Session().add(rule(), WHEN).add(rule(), WHEN)


def test_what_is_not_in_cannot_be_removed() -> None:
    with pytest.raises(Invalid, match="rule:style is not in this conversation"):
        Session().remove(rule(), WHEN)


def test_a_removed_always_source_stays_out_and_comes_back_as_manual() -> None:
    always = rule(include="always")
    without = Session().remove(always, WHEN)
    assert without.mode(always) is None
    assert without.listed(always).removed
    again = without.add(always, WHEN)
    assert again.mode(always) == "manual"
    assert not again.listed(always).removed
    # and out again, for good
    assert again.remove(always, WHEN).mode(always) is None


def test_a_source_that_is_not_enabled_is_never_in() -> None:
    off = Rule("style", "Be short.", include="always", enabled=False)
    assert Session().mode(off) is None
    with pytest.raises(Invalid, match="not enabled"):
        Session().add(off, WHEN)


def test_a_server_or_one_of_its_tools_may_run_without_asking() -> None:
    issue, other = SourceId("tool", "create_issue", "github"), SourceId("tool", "close_issue", "github")
    session = Session().allow(issue)
    assert session.allows(issue)
    assert not session.allows(other)
    assert Session(allowed=("github",)).allows(other)


sources = st.builds(rule, st.sampled_from("abc"), st.sampled_from(INCLUDES))


@given(st.lists(st.tuples(st.booleans(), sources), max_size=12))
def test_a_session_comes_back_from_json_as_it_went(steps: list[tuple[bool, Rule]]) -> None:
    session = Session()
    for adds, source in steps:
        try:
            session = session.add(source, WHEN) if adds else session.remove(source, WHEN)
        except Invalid:
            continue
        assert (session.mode(source) is not None) == adds
    assert session_from_json(session.to_json()) == session


@pytest.mark.parametrize("damaged", [None, [], "x", {"added": []}, {"allowed": {}}, {"removed": 3}])
def test_what_cannot_be_read_of_a_session_counts_as_not_said(damaged: object) -> None:
    assert session_from_json(damaged) == Session()


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
    listing = Listing(tuple(Session().listed(each) for each in items))
    assert found(listing, "ref:api").source.name == "Api"
    assert found(listing, "tool:github/create_issue").source is tool
    assert found(listing, "tool:github__create_issue").source is tool
    with pytest.raises(NotFound, match="there is no rule:styl; did you mean rule:style"):
        found(listing, "rule:styl")
