import os
from pathlib import Path

import pytest
from tests.cli.conftest import Run, failure, one


def test_comments_and_order_survive(run: Run, home: Path) -> None:
    home.mkdir()
    before = '# my own\nmodel = "openai:gpt-4o" # the small one\n\n[reply]\n# often busy\ntries = 3\n'
    (home / "config.toml").write_text(before)
    run("config", "set", "reply.tries", "5")
    run("config", "set", "context.enabled", "false")
    after = (home / "config.toml").read_text()
    assert after.startswith(before.replace("tries = 3", "tries = 5"))
    assert one(run("config", "get", "context.enabled", "--json"))["value"] is False


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("reply.tries", "99", "a whole number from 1 to 20"),
        ("reply.tries", "some", "a whole number from 1 to 20"),
        ("context.strategy", "magic", "it takes discard"),
        ("context.enabled", "perhaps", "true or false"),
        ("reply.trys", "3", "did you mean reply.tries?"),
        ("reply", "3", "there is no setting reply"),
        ("model", "no colon", "there is no model 'no colon'; write provider:model"),
        ("model", "unheard-of", "names no provider; write provider:model"),
        ("model", "openai:", "is not a model; write provider:model"),
        ("model", "", "write provider:model"),
        ("context.summary_model", "no colon", "there is no model 'no colon'; write provider:model"),
    ],
)
def test_a_bad_key_or_value_is_named_and_nothing_is_written(
    run: Run, home: Path, key: str, value: str, said: str
) -> None:
    assert said in failure(run("config", "set", key, value))
    assert not (home / "config.toml").exists()


def test_a_project_has_settings_of_its_own(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes").mkdir()
    run("config", "set", "vault", "notes", "--project")
    assert (tmp_path / ".recto" / "config.toml").read_text() == 'vault = "notes"\n'
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    assert one(run("config", "get", "vault", "--json"))["value"] == str(tmp_path / "notes")


def test_a_path_means_the_same_from_anywhere(run: Run, tmp_path: Path) -> None:
    run("config", "set", "vault", "notes")
    assert one(run("config", "get", "vault", "--json"))["value"] == str(tmp_path / "notes")


def test_a_broken_file_is_named_and_left_as_it_is(run: Run, home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text("model = \n")
    for command in (["config", "show"], ["config", "set", "reply.tries", "3"], ["ask", "hello"]):
        assert "config.toml is not valid TOML" in failure(run(*command))
    assert (home / "config.toml").read_text() == "model = \n"


def test_a_wrong_value_in_the_file_can_be_mended_by_setting_it(run: Run, home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text("[reply]\ntries = 99\n")
    assert "tries" in failure(run("config", "show"))
    assert run("config", "set", "reply.tries", "3").exit_code == 0
    assert one(run("config", "get", "reply.tries", "--json"))["value"] == 3


def test_an_unknown_key_in_the_file_is_named(run: Run, home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text('modell = "x"\n')
    assert "did you mean model?" in failure(run("context", "show"))
    assert run("conversations", "list").exit_code == 0
    assert "did you mean model?" in failure(run("config", "set", "reply.tries", "3"))


def test_a_group_that_is_no_table_is_named(run: Run, home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text("reply = 3\n")
    assert "reply must be a table" in failure(run("config", "set", "reply.tries", "3"))


def test_a_link_stays_a_link_and_permissions_stay(run: Run, home: Path, tmp_path: Path) -> None:
    home.mkdir()
    real = tmp_path / "dotfiles.toml"
    real.write_text("")
    real.chmod(0o600)
    (home / "config.toml").symlink_to(real)
    run("config", "set", "reply.tries", "3")
    assert (home / "config.toml").is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    assert "tries = 3" in real.read_text()
    assert sorted(os.listdir(tmp_path)) == ["dotfiles.toml", "home"]


def test_a_home_that_is_a_file_is_named(run: Run, home: Path) -> None:
    home.write_text("")
    for command in (["config", "show"], ["config", "set", "reply.tries", "3"]):
        assert "is not a folder; set RECTO_HOME" in failure(run(*command))


def test_trust_shows_the_values_and_where_they_lead(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    file = tmp_path / ".recto/config.toml"
    file.parent.mkdir()
    file.write_text('model = "openai:theirs"\nvault = "notes"\n')
    shown = run("config", "show")
    assert shown.stderr.count("`recto config trust` accepts it") == 2
    assert "model = 'openai:theirs' is ignored" in run("config", "get", "model").stderr
    assert "vault = 'notes' is ignored" in failure(run("vault", "status"))
    assert run("config", "trust", "vault").stdout.splitlines() == [
        'vault = "notes" is trusted',
        f"  leads to  {tmp_path / 'notes'}",
        f"  said in   {file}",
    ]
    assert run("vault", "status").exit_code == 0
    row = one(run("config", "trust", "model", "--json"))
    assert row == {
        "key": "model",
        "value": "openai:theirs",
        "agent": "",
        "file": str(file),
        "path": "",
        "trusted": True,
    }
    assert one(run("config", "get", "model", "--json"))["value"] == "openai:theirs"
    assert 'model = "openai:theirs" is no longer trusted, and ignored' in run("config", "distrust", "model").stdout
    assert one(run("config", "get", "model", "--json"))["value"] != "openai:theirs"
    file.write_text("")
    assert "sets nothing that needs your trust" in run("config", "trust").stderr


def test_the_model_that_would_answer_is_shown_with_the_one_that_is_not_trusted(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".recto").mkdir()
    (tmp_path / ".recto/config.toml").write_text('model = "openai:theirs"\n')
    shown = run("models", "show")
    assert "embedded:qwen2.5-coder-1.5b" in shown.stdout
    assert "openai:theirs" in shown.stderr
