from pathlib import Path
from typing import Any

import pytest

from recto.base import locations
from recto.errors import Invalid
from recto.settings import settings


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_later_layers_win_and_each_value_says_where_it_came_from(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    write(home / "config.toml", 'model = "openai:a"\n[context]\nlow_water = 0.4\n[reply]\nmax_tokens = 10')
    write(project / ".recto/config.toml", 'system_prompt = "b"\n[reply]\nmax_tokens = 20')
    loaded = settings.load(home, project, {"RECTO_REPLY_MAX_TOKENS": "30"}, {"model": "openai:c", "vault": None})
    assert (loaded.model, loaded.origin("model")) == ("openai:c", "option")
    assert (loaded.reply.max_tokens, loaded.origin("reply.max_tokens")) == (30, "RECTO_REPLY_MAX_TOKENS")
    assert loaded.context.low_water == 0.4
    assert loaded.origin("context.low_water") == str(home / "config.toml")
    assert loaded.origin("vault") == "default"


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("context.low_water", 1.5, "a number from 0.05 to 0.95"),
        ("context.low_water", "0.99", "a number from 0.05 to 0.95"),
        ("context.max_prompt_tokens", "many", "a whole number from 0 to 100,000,000"),
        ("context.max_prompt_tokens", 0.5, "a whole number"),
        ("context.max_prompt_tokens", "-1", "a whole number from 0 to 100,000,000"),
        ("context.enabled", "perhaps", "true or false"),
        ("context.strategy", "hope", "discard or summarize or hybrid"),
        ("context.budgets.tools", "1.5", "a number from 0 to 1"),
        ("model", 7, "a text"),
        ("reply.max_tokens", True, "a whole number"),
        ("tools.result_characters", 999, "a whole number from 1,000 to 10,000,000"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(key: str, value: Any, allowed: str) -> None:
    with pytest.raises(Invalid) as caught:
        settings.check(key, value, "here")
    for part in (key, repr(value), allowed):
        assert part in caught.value.message


def test_an_unknown_setting_comes_with_the_nearest_one() -> None:
    with pytest.raises(Invalid, match=r"no setting context\.low_watr; did you mean context\.low_water\?"):
        settings.check("context.low_watr", 1)


def test_an_unknown_table_in_a_file_names_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "config.toml", "[colours]\nred = 1")
    with pytest.raises(Invalid, match="there is no setting colours") as caught:
        settings.read_file(path)
    assert str(path) in caught.value.message


@pytest.mark.parametrize("content", [b"model = ", b"\xff\xfe"])
def test_a_broken_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(content)
    with pytest.raises(Invalid, match="is not valid TOML"):
        settings.load(tmp_path, None, {})


def test_a_mark_of_byte_order_and_a_home_of_nobody_are_no_harm(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b'\xef\xbb\xbfvault = "~nobody-of-this-name/notes"\n')
    assert settings.load(tmp_path, None, {}).vault == str(tmp_path / "~nobody-of-this-name/notes")


def test_the_folder_of_the_user_and_the_home_are_no_projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user, home = tmp_path / "user", tmp_path / "elsewhere"
    monkeypatch.setenv("HOME", str(user))
    monkeypatch.setenv("RECTO_HOME", str(home))
    for folder in (user, home):
        (folder / ".recto").mkdir(parents=True)
        write(folder / ".mcp.json", "{}")
        (folder / "agents/default").mkdir(parents=True)
        assert locations.find_project(folder / "agents/default") is None
    (tmp_path / "link").symlink_to(user)
    assert locations.find_project(tmp_path / "link") is None


def test_nested_groups_are_read_from_files_and_environment(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[context.budgets]\nsystem = 0.2\nmessages = 0.4\n")
    loaded = settings.load(tmp_path, None, {"RECTO_CONTEXT_BUDGETS_TOOLS": "0.1"})
    assert loaded.context.budgets == settings.BudgetSettings(0.2, 0.1, 0.4)
    assert loaded.origin("context.budgets.tools") == "RECTO_CONTEXT_BUDGETS_TOOLS"


@pytest.mark.parametrize(
    ("flags", "key", "allowed"),
    [
        ({"recent_messages_to_keep": 3, "min_recent_messages_to_keep": 4}, "min_recent_messages_to_keep", "0 to 3"),
        ({"max_prompt_tokens": 1000, "reserved_response_tokens": 1000}, "reserved_response_tokens", "from 0 to 999"),
        ({"threshold": 0.4, "low_water": 0.5}, "low_water", "below 0.4"),
        ({"min_score": 0.6, "include_score": 0.5}, "min_score", "from 0 to 0.5"),
        ({"budgets.system": 0.5}, "budgets.system", "at most 1"),
        ({"budgets.tools": 0.9}, "budgets.tools", "from 0 to 0.3"),
        ({"low_water": 0.9}, "low_water", "below 0.85"),
    ],
)
def test_values_that_do_not_suit_each_other_are_named(
    tmp_path: Path, flags: dict[str, Any], key: str, allowed: str
) -> None:
    with pytest.raises(Invalid) as caught:
        settings.load(tmp_path, None, {}, {f"context.{name}": value for name, value in flags.items()})
    assert f"context.{key}" in caught.value.message
    assert allowed in caught.value.message


def test_where_one_of_two_was_chosen_the_default_of_the_other_gives_way(tmp_path: Path) -> None:
    none = settings.load(tmp_path, None, {}, {"context.recent_messages_to_keep": 0})
    assert none.context.min_recent_messages_to_keep == 0
    low = settings.load(tmp_path, None, {}, {"context.threshold": 0.4})
    assert low.context.low_water == 0.2


def test_values_from_several_files_are_checked_together_and_each_keeps_its_file(tmp_path: Path) -> None:
    origins = {"context.threshold": "one.toml", "context.low_water": "two.toml"}
    values = {"context.low_water": 0.9, "context.threshold": 0.95}
    both = settings.changed(settings.load(tmp_path, None, {}), values, origins)
    assert (both.context.low_water, both.origin("context.low_water")) == (0.9, "two.toml")
    with pytest.raises(Invalid, match=r"^two\.toml: context\.low_water = 0\.9"):
        settings.changed(settings.load(tmp_path, None, {}), {"context.low_water": 0.9}, origins)
