"""Second names of settings are accepted everywhere and shown under ours; hints name nothing unrelated."""

import re
from pathlib import Path

import pytest
from tests.cli.conftest import Run, failure, one

from recto.errors import Invalid
from recto.settings.settings import conversation_key, load, own_key, specs
from recto.settings.spec import HINTS


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("context.max_tokens", "context.max_prompt_tokens"),
        ("context_window", "context.max_prompt_tokens"),
        ("compaction_threshold", "context.threshold"),
        ("context.trigger", "context.threshold"),
        ("compaction.keep", "context.recent_messages_to_keep"),
        ("max_steps", "tools.step_limit"),
        ("embedding_model", "search.embedder"),
    ],
)
def test_a_name_of_another_program_leads_to_ours(name: str, own: str) -> None:
    with pytest.raises(Invalid, match=re.escape(f"Unknown setting {name}. Use {own}.")):
        own_key(name)


def test_no_name_means_two_settings() -> None:
    names = [name for spec in specs() for name in spec.names]
    assert len({*names, *HINTS}) == len(names) + len(HINTS)
    assert set(HINTS.values()) <= {spec.key for spec in specs()}


def test_in_a_conversation_a_name_of_context_is_meant_first() -> None:
    assert conversation_key("max_prompt_tokens", "/set") == "context.max_prompt_tokens"
    assert conversation_key("message_budget_ratio", "/set") == "context.budgets.messages"
    with pytest.raises(Invalid, match=r"Use context\.max_prompt_tokens"):
        conversation_key("max_tokens", "/set")
    with pytest.raises(Invalid, match=r"reply\.tries is not kept with a conversation"):
        conversation_key("reply.tries", "/set")


def test_a_file_a_variable_and_an_option_may_use_them(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("message_budget_ratio = 0.5\nmax_prompt_tokens = 9000\n")
    environment, flags = {"RECTO_RECENT_MESSAGES_TO_KEEP": "9"}, {"use_user_memory": "off"}
    loaded = load(tmp_path, environment=environment, flags=flags)
    assert (loaded.context.budgets.messages, loaded.context.max_prompt_tokens) == (0.5, 9000)
    assert (loaded.context.recent_messages_to_keep, loaded.context.use_user_memory) == (9, False)
    assert loaded.origin("max_prompt_tokens") == str(tmp_path / "config.toml")
    assert loaded.origin("context.recent_messages_to_keep") == "RECTO_RECENT_MESSAGES_TO_KEEP"
    assert (loaded.get("max_prompt_tokens"), loaded.notes) == (9000, {})


def test_config_writes_our_name_and_shows_the_other(run: Run, home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text("max_prompt_tokens = 9000 # mine\n")
    assert "context.max_prompt_tokens = 8000" in run("config", "set", "max_prompt_tokens", "8000").stdout
    assert "9000" not in (home / "config.toml").read_text()
    assert one(run("config", "get", "max_prompt_tokens", "--json"))["key"] == "context.max_prompt_tokens"
    assert "also accepted" not in run("config", "show").stdout
    named = run("config", "show", "max_prompt_tokens").stdout
    assert named.startswith("context.max_prompt_tokens = ")
    assert "\n    also accepted as max_prompt_tokens" in named
    assert named.count(" = ") == 1


def test_a_setting_can_be_unset(run: Run, home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text("# mine\nmax_prompt_tokens = 9000\n[reply]\ntries = 3\n")
    run("config", "set", "--project", "reply.tries", "5")
    assert one(run("config", "unset", "--project", "reply.tries", "--json"))["value"] == 3
    assert one(run("config", "unset", "reply.tries", "--json"))["value"] == 4
    unset = one(run("config", "unset", "context.max_prompt_tokens", "--json"))
    assert (unset["value"], unset["from"], unset["removed"]) == (0, "default", True)
    left = (home / "config.toml").read_text()
    assert (left.startswith("# mine\n"), "tries" in left, "max_prompt_tokens" in left) == (True, False, False)
    again = run("config", "unset", "reply.tries")
    assert (again.exit_code, "was not set" in again.stderr) == (0, True)
    failure(run("config", "unset", "reply.nothing"))


def hint(run: Run, key: str) -> str:
    said = failure(run("config", "get", key))
    return said.partition("did you mean ")[2].partition("?")[0]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("modle", "model"),
        ("reply.temprature", "reply.temperature"),
        ("temprature", "reply.temperature"),
        ("contxt.threshold", "context.threshold"),
        ("context.maxtokens", "context.max_prompt_tokens"),
        ("message_budget_ration", "context.budgets.messages"),
        ("tools.steplimit", "tools.step_limit"),
        ("spend.days", "spend.day"),
        ("low_water", "context.low_water"),
    ],
)
def test_a_slip_is_told_what_was_meant(run: Run, typed: str, meant: str) -> None:
    assert hint(run, typed) == meant
