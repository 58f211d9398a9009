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
        self.takes = True

    def get_keyring(self) -> object:
        return self

    def get_password(self, service: str, name: str) -> str | None:
        return self.kept.get((service, name))

    def set_password(self, service: str, name: str, key: str) -> None:
        if not self.takes:
            raise RuntimeError("locked")
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
    told = run("keys", "set", "openai", input=f"{KEY}\n")
    assert told.stdout == f"the key of openai is stored in {home / 'keys.json'}, for you alone\n"
    assert stat.S_IMODE((home / "keys.json").stat().st_mode) == 0o600
    assert KeyedEnvironment(home, {})["OPENAI_API_KEY"] == KEY
    listed = run("keys", "list")
    assert listed.stdout == "openai        file\n"
    assert one(run("keys", "list", "--json")) == {"provider": "openai", "variable": "OPENAI_API_KEY", "from": "file"}
    assert run("keys", "remove", "openai").stdout == "the key of openai is removed\n"
    assert "OPENAI_API_KEY" not in KeyedEnvironment(home, {})
    assert KEY not in (home / "keys.json").read_text()
    assert "there is no key" in run("keys", "list").stderr


def test_a_keyring_has_it_where_there_is_one(run: Run, home: Path, keyring: Keyring) -> None:
    assert "in the system's keyring" in run("keys", "set", "anthropic", input=KEY).stdout
    assert keyring.kept == {("recto", "ANTHROPIC_API_KEY"): KEY}
    assert KEY not in (home / "keys.json").read_text()
    assert KeyedEnvironment(home, {})["ANTHROPIC_API_KEY"] == KEY
    assert rows(run("keys", "list", "--json"))[0]["from"] == "keyring"
    run("keys", "remove", "anthropic")
    assert keyring.kept == {}


def test_a_keyring_that_takes_nothing_leaves_it_to_the_file(run: Run, home: Path, keyring: Keyring) -> None:
    keyring.takes = False
    assert one(run("keys", "set", "openai", "--json", input=KEY))["from"] == "file"
    assert KeyedEnvironment(home, {})["OPENAI_API_KEY"] == KEY


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
    assert run("keys", "list").stdout == "openai        environment (OPENAI_API_KEY), not the one in the file\n"
    again = run("keys", "set", "openai", input=KEY)
    assert "OPENAI_API_KEY is set in the environment, and wins" in again.stderr


def test_a_stored_key_makes_the_models_of_its_provider_usable(run: Run) -> None:
    assert not [each for each in rows(run("models", "list", "--json")) if each["provider"] == "anthropic"]
    run("keys", "set", "anthropic", input=KEY)
    assert [each for each in rows(run("models", "list", "--json")) if each["provider"] == "anthropic"]


def test_a_missing_key_is_told_with_both_ways_to_give_one(run: Run) -> None:
    told = failure(run("ask", "-m", "openai:gpt-4o", "hello"))
    assert "set OPENAI_API_KEY in the environment, or store it with `recto keys set openai`" in told


def test_no_part_of_a_key_is_ever_repeated(run: Run) -> None:
    for args in (["keys", "set", "openai", KEY], ["keys", "set", KEY + KEY], ["keys", "remove", KEY + KEY]):
        result = run(*args, input="")
        assert result.exit_code
        assert "sk-test" not in result.output
    run("keys", "set", "openai", input=KEY)
    for args in (["keys", "list"], ["keys", "list", "--json"], ["keys", "set", "openai"], ["config", "show"]):
        assert KEY[:8] not in run(*args, input=KEY).output


def test_a_stored_key_is_in_no_log(run: Run, home: Path) -> None:
    unlike = "plain0word0key0of0a0server"
    KeyStore(home).put("WORK_API_KEY", unlike)
    assert KeyedEnvironment(home, {})["WORK_API_KEY"] == unlike
    assert unlike not in redact(f"sent {unlike}")


def test_a_server_of_ones_own_has_a_key_by_its_name(run: Run, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    assert "there is no provider work that takes a key" in failure(run("keys", "set", "work", input=KEY))
    monkeypatch.setenv("RECTO_WORK_BASE_URL", "http://127.0.0.1:9/v1")
    assert one(run("keys", "set", "work", "--json", input=KEY))["variable"] == "WORK_API_KEY"
    assert KeyedEnvironment(home, {})["WORK_API_KEY"] == KEY


@pytest.mark.parametrize("typed", ["", "  \n", "two words", "sk-\x1b[31m", "clé-0123456789"])
def test_what_no_key_can_be_is_refused(run: Run, home: Path, typed: str) -> None:
    assert "without spaces; copy it again" in failure(run("keys", "set", "openai", input=typed))
    assert not (home / "keys.json").exists()


def test_a_typing_error_is_noticed(run: Run) -> None:
    assert "did you mean openai?" in failure(run("keys", "set", "opnai", input=KEY))
    assert "no key of openai is stored" in failure(run("keys", "remove", "openai"))


def test_a_broken_file_is_told_and_left_alone(run: Run, home: Path) -> None:
    home.mkdir()
    for broken in ("{", "[1]", '{"OPENAI_API_KEY": 7}'):
        (home / "keys.json").write_text(broken)
        assert "Fix or delete it." in failure(run("keys", "set", "openai", input=KEY))
        with pytest.raises(Invalid):
            KeyStore(home).places()
        assert (home / "keys.json").read_text() == broken


def test_a_keyring_that_fails_is_no_crash(
    run: Run, home: Path, keyring: Keyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no session bus")

    run("keys", "set", "openai", input=KEY)
    monkeypatch.setattr(keyring, "get_password", fail)
    monkeypatch.setattr(keyring, "delete_password", fail)
    assert "OPENAI_API_KEY" not in KeyedEnvironment(home, {})
    assert run("keys", "remove", "openai").exit_code == 0
    monkeypatch.setattr(keyring, "get_keyring", fail)
    assert one(run("keys", "set", "openai", "--json", input=KEY))["from"] == "file"


def test_the_surroundings_stay_as_they_are(home: Path) -> None:
    KeyStore(home).put("OPENAI_API_KEY", KEY)
    around = KeyedEnvironment(home, {"HOME": "/x", "A_API_KEY": ""})
    assert (list(around), len(around), around["HOME"], around["A_API_KEY"]) == (["HOME", "A_API_KEY"], 2, "/x", "")
    assert around.get("NOTHING") is None
