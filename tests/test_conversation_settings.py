"""Settings that one conversation keeps: over those of user, project and agent, below the options of a call."""

from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Open, Script

from recto.api.blocking import Desk
from recto.errors import Invalid
from recto.sources.source import SourceKind

REPLY = {"text": "Yes."}

RULES: tuple[SourceKind] = ("rule",)


def rule(home: Path, name: str, text: str, include: str = "always") -> Path:
    path = home / "agents" / "default" / "rules" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\ninclude: {include}\n---\n{text}\n")
    return path


def body(opened: Desk) -> str:
    return opened.rebuild().decode()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_they_stay_with_the_conversation_and_with_no_other(desk: Open, script: Script) -> None:
    model = script(REPLY, limit=4000)
    opened = desk(model)
    talk = opened.conversation()
    talk.ask("hello")
    assert talk.set_setting("threshold", "0.6") == 0.6
    assert talk.set_setting("context.max_prompt_tokens", 3000) == 3000
    again = desk(model).conversation(talk.id)
    assert again.chosen_settings == {"context.threshold": 0.6, "context.max_prompt_tokens": 3000}
    assert again.window("hello").limit == 3000
    assert again.ask("hello").window.limit == 3000
    assert again.settings.origin("context.threshold") == again.name == "conversation #1"
    stats = again.stats().window
    assert stats is not None
    assert stats.trigger == 1800
    assert opened.conversation().window("hello").limit == 4000


def test_a_new_conversation_gets_them_at_once(desk: Open, script: Script) -> None:
    opened = desk(script(REPLY))
    talk = opened.conversation(settings={"context.enabled": False, "budgets.tools": 0.1})
    talk.ask("hello")
    again = opened.conversation(talk.id)
    assert again.chosen_settings == {"context.enabled": False, "context.budgets.tools": 0.1}
    assert not again.context_settings.enabled
    more = opened.conversation(talk.id, settings={"context.enabled": None})
    assert more.chosen_settings == {"context.budgets.tools": 0.1}


def test_they_win_over_files_and_agent_and_yield_to_options(
    desk: Open, script: Script, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = script(REPLY)
    (home / "agents" / "default").mkdir(parents=True)
    (home / "agents" / "default" / "agent.toml").write_text("[context]\nmax_prompt_tokens = 2000\n")
    (home / "config.toml").write_text("[context]\nmax_prompt_tokens = 1500\n")
    monkeypatch.setenv("RECTO_CONTEXT_MAX_PROMPT_TOKENS", "1800")
    talk = desk(model).conversation()
    assert talk.window("hello").limit == 2000
    talk.set_setting("max_prompt_tokens", 3000)
    talk.ask("hello")
    assert talk.window("hello").limit == 3000
    other = desk(model, context__max_prompt_tokens=2500).conversation(talk.id)
    assert other.window("hello").limit == 2500
    assert other.settings.origin("context.max_prompt_tokens") == "option"


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("model", "openai:x", "model is not kept with a conversation"),
        ("thershold", 0.5, "there is no setting thershold"),
        ("context.threshold", 7, "it takes a number from 0.1 to 1"),
        ("context.reserved_response_tokens", 5000, "it takes a whole number from 0 to 2,999"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    desk: Open, script: Script, key: str, value: Any, says: str
) -> None:
    talk = desk(script(REPLY)).conversation(settings={"max_prompt_tokens": 3000})
    with pytest.raises(Invalid, match=says):
        talk.set_setting(key, value)
    assert talk.chosen_settings == {"context.max_prompt_tokens": 3000}


def test_settings_that_no_longer_fit_the_others_are_ignored_with_a_note(desk: Open, script: Script, home: Path) -> None:
    model = script(REPLY)
    talk = desk(model).conversation(settings={"threshold": 0.3})
    talk.ask("hello")
    (home / "config.toml").write_text("[context]\nlow_water = 0.5\n")
    reply = desk(model).conversation(talk.id).ask("hello")
    (note,) = reply.notes
    assert note.startswith("the settings of this conversation are ignored: ")
    assert "context.threshold = 0.3 is not allowed" in note


def test_fixed_sources_stay_as_they_were_when_the_conversation_began(desk: Open, script: Script, home: Path) -> None:
    style, gone = rule(home, "style", "Write short."), rule(home, "tone", "Be kind.")
    rule(home, "other", "Say please.", "manual")
    model = script(REPLY)
    opened = desk(model)
    talk = opened.conversation(settings={"session": "fixed"})
    talk.ask("hello")
    before = body(opened)
    rule(home, "style", "Write long.")
    rule(home, "new", "Rhyme.")
    rule(home, "other", "Say thanks.")
    gone.unlink()
    later = desk(model).conversation(talk.id)
    later.ask("hello")
    after = body(opened)
    assert "Write short." in after
    assert "Be kind." in after
    assert not [text for text in ("Write long.", "Rhyme.", "Say thanks.") if text in after]
    assert after.startswith(before[: before.index("hello")]), "the prefix stays"
    assert {str(each.source.id): each.mode for each in later.sources(RULES).items} == {
        "rule:style": "always", "rule:tone": "always", "rule:new": None, "rule:other": None
    }  # fmt: skip
    assert "Write long." in style.read_text()


def test_fixed_can_be_chosen_later_and_taken_back(desk: Open, script: Script, home: Path) -> None:
    rule(home, "style", "Write short.")
    opened = desk(script(REPLY))
    talk = opened.conversation()
    talk.ask("hello")
    rule(home, "style", "Write long.")
    talk.set_setting("session", "fixed")
    talk.ask("hello")
    assert "Write short." in body(opened)
    talk.set_setting("session", None)
    talk.ask("hello")
    assert "Write long." in body(opened)
