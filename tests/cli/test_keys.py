"""Keys of providers: stored where only the user can read them, used, listed without any part of them, removed."""

import stat
import sys
import types
from pathlib import Path

import pytest
from tests.cli.conftest import Run, failure, one, rows

from recto.cli.log import redact
from recto.errors import Invalid
from recto.settings.keys import KeyedEnvironment, KeyStore

KEY = "sk-test-0123456789abcdef"


class Keyring(types.ModuleType):
    """The package as it is with a backend: the world ends there."""

    def __init__(self) -> None:
        super().__init__("keyring")
        self.kept: dict[tuple[str, str], str] = {}

    def get_keyring(self) -> object:
        return self

    def get_password(self, service: str, name: str) -> str | None:
        return self.kept.get((service, name))

    def set_password(self, service: str, name: str, key: str) -> None:
        self.kept[service, name] = key

    def delete_password(self, service: str, name: str) -> None:
        del self.kept[service, name]


@pytest.fixture(autouse=True)
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> Keyring:
    made = Keyring()
    monkeypatch.setitem(sys.modules, "keyring", made)
    return made


def test_without_a_keyring_a_key_goes_into_a_file_for_the_user_alone(run: Run, home: Path) -> None:
    run("keys", "set", "openai", input=f"{KEY}\n")
    assert stat.S_IMODE((home / "keys.json").stat().st_mode) == 0o600
    assert KeyedEnvironment(home, {})["OPENAI_API_KEY"] == KEY
    assert one(run("keys", "list", "--json")) == {"provider": "openai", "variable": "OPENAI_API_KEY", "from": "file"}
    run("keys", "remove", "openai")
    assert "OPENAI_API_KEY" not in KeyedEnvironment(home, {})
    assert KEY not in (home / "keys.json").read_text()
    failure(run("keys", "remove", "openai"))


def test_a_keyring_has_it_where_there_is_one(run: Run, home: Path, keyring: Keyring) -> None:
    assert not [each for each in rows(run("models", "list", "--json")) if each["provider"] == "anthropic"]
    run("keys", "set", "anthropic", input=KEY)
    assert [each for each in rows(run("models", "list", "--json")) if each["provider"] == "anthropic"]
    assert keyring.kept == {("recto", "ANTHROPIC_API_KEY"): KEY}
    assert KEY not in (home / "keys.json").read_text()
    assert KeyedEnvironment(home, {})["ANTHROPIC_API_KEY"] == KEY
    assert rows(run("keys", "list", "--json"))[0]["from"] == "keyring"
    run("keys", "remove", "anthropic")
    assert keyring.kept == {}


def test_a_keyring_that_is_gone_is_a_missing_key_and_no_crash(
    run: Run, home: Path, keyring: Keyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("keys", "set", "openai", input=KEY)
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert "OPENAI_API_KEY" not in KeyedEnvironment(home, {})
    assert "which cannot be opened" in failure(run("keys", "remove", "openai"))


def test_the_environment_wins(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("keys", "set", "openai", input=KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    assert KeyedEnvironment(home, {"OPENAI_API_KEY": "sk-other"})["OPENAI_API_KEY"] == "sk-other"
    assert KeyedEnvironment(home, {"OPENAI_API_KEY": " "})["OPENAI_API_KEY"] == KEY
    assert one(run("keys", "list", "--json"))["from"] == "environment"
    assert "wins" in run("keys", "set", "openai", input=KEY).stderr


def test_no_part_of_a_key_is_ever_repeated(run: Run, home: Path) -> None:
    for args in (["keys", "set", "openai", KEY], ["keys", "set", KEY + KEY], ["keys", "remove", KEY + KEY]):
        result = run(*args, input="")
        assert result.exit_code
        assert "sk-test" not in result.output
    run("keys", "set", "openai", input=KEY)
    for args in (["keys", "list"], ["keys", "list", "--json"], ["keys", "set", "openai"], ["config", "show"]):
        assert KEY[:8] not in run(*args, input=KEY).output
    unlike = "plain0word0key0of0a0server"
    KeyStore(home).put("WORK_API_KEY", unlike)
    assert KeyedEnvironment(home, {})["WORK_API_KEY"] == unlike
    assert unlike not in redact(f"sent {unlike}"), "nor is it in a log"


def test_a_server_of_ones_own_has_a_key_by_its_name(run: Run, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    assert "there is no provider work that takes a key" in failure(run("keys", "set", "work", input=KEY))
    monkeypatch.setenv("RECTO_WORK_BASE_URL", "http://127.0.0.1:9/v1")
    assert one(run("keys", "set", "work", "--json", input=KEY))["variable"] == "WORK_API_KEY"
    assert KeyedEnvironment(home, {})["WORK_API_KEY"] == KEY


@pytest.mark.parametrize("typed", ["", "  \n", "two words", "sk-\x1b[31m", "clé-0123456789"])
def test_what_no_key_can_be_is_refused(run: Run, home: Path, typed: str) -> None:
    assert "without spaces; copy it again" in failure(run("keys", "set", "openai", input=typed))
    assert not (home / "keys.json").exists()


def test_a_broken_file_is_told_and_left_alone(run: Run, home: Path) -> None:
    home.mkdir()
    for broken in ("{", "[1]", '{"OPENAI_API_KEY": 7}'):
        (home / "keys.json").write_text(broken)
        assert "Fix or delete it." in failure(run("keys", "set", "openai", input=KEY))
        with pytest.raises(Invalid):
            KeyStore(home).places()
        assert (home / "keys.json").read_text() == broken
