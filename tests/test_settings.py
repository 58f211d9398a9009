from pathlib import Path
from typing import Any

import pytest

from recto import places, settings
from recto.errors import Invalid


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_later_layers_win_and_each_value_says_where_it_came_from(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    write(home / "config.toml", 'model = "openai:a"\n[context]\nlow_water = 0.4\n[reply]\nmax_tokens = 10')
    write(project / ".recto/config.toml", 'model = "openai:b"\n[reply]\nmax_tokens = 20')
    loaded = settings.load(home, project, {"RECTO_REPLY_MAX_TOKENS": "30"}, {"model": "openai:c", "vault": None})
    assert (loaded.model, loaded.origin("model")) == ("openai:c", "option")
    assert (loaded.reply.max_tokens, loaded.origin("reply.max_tokens")) == (30, "RECTO_REPLY_MAX_TOKENS")
    assert loaded.context.low_water == 0.4
    assert loaded.origin("context.low_water") == str(home / "config.toml")
    assert loaded.origin("vault") == "default"


def test_without_files_everything_is_a_default(tmp_path: Path) -> None:
    loaded = settings.load(tmp_path, None, {})
    assert loaded.model == "embedded:smollm2"
    assert not loaded.origins


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("context.low_water", 1.5, "a number from 0.05 to 0.95"),
        ("context.max_prompt_tokens", "many", "a whole number from 0 to 100,000,000"),
        ("context.max_prompt_tokens", 0.5, "a whole number"),
        ("context.enabled", "perhaps", "true or false"),
        ("context.strategy", "hope", "discard"),
        ("model", 7, "a text"),
        ("reply.max_tokens", True, "a whole number"),
        ("tools.step_limit", 0, "from 1 to 1,000"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(key: str, value: Any, allowed: str) -> None:
    with pytest.raises(Invalid) as caught:
        settings.check(key, value, "here")
    assert key in caught.value.message
    assert repr(value) in caught.value.message
    assert allowed in caught.value.message


@pytest.mark.parametrize(("text", "value"), [("on", True), ("FALSE", False), ("1", True), ("no", False)])
def test_switches_can_be_written_as_words(text: str, value: bool) -> None:
    assert settings.check("context.enabled", text) is value


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


def test_a_folder_in_place_of_the_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(Invalid, match="cannot read"):
        settings.load(tmp_path, None, {})


def test_paths_in_a_project_file_start_at_the_project(tmp_path: Path) -> None:
    write(tmp_path / "p/.recto/config.toml", 'vault = "notes"')
    assert settings.load(tmp_path / "h", tmp_path / "p", {}).vault == str(tmp_path / "p/notes")


def test_the_project_is_the_nearest_folder_with_a_recto_folder(tmp_path: Path) -> None:
    (tmp_path / "a/.recto").mkdir(parents=True)
    (tmp_path / "a/b/c").mkdir(parents=True)
    assert places.find_project(tmp_path / "a/b/c") == tmp_path / "a"


def test_the_home_is_recto_home_or_a_folder_of_the_user() -> None:
    assert places.find_home({"RECTO_HOME": "/somewhere"}) == Path("/somewhere")
    assert places.find_home({}) == Path.home() / ".recto"


def test_get_reads_by_dotted_key() -> None:
    assert settings.Settings().get("context.low_water") == 0.5
    with pytest.raises(Invalid):
        settings.Settings().get("origins")
