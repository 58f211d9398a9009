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
    ("key", "value"),
    [
        ("context.threshold", "-1"),
        ("reply.tries", "99"),
        ("reply", "3"),
        ("model", "no colon"),
        ("model", "unheard-of"),
        ("model", "openai:"),
        ("model", ""),
        ("context.summary_model", "no colon"),
    ],
)
def test_a_bad_key_or_value_is_refused_and_nothing_is_written(run: Run, home: Path, key: str, value: str) -> None:
    told = failure(run("config", "set", key, value))
    assert "write provider:model" in told or "model" not in key
    assert not (home / "config.toml").exists()


def test_a_path_means_the_same_from_anywhere_in_the_project(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("notes", "deep"):
        (tmp_path / name).mkdir()
    run("config", "set", "vault", "notes", "--project")
    assert (tmp_path / ".recto" / "config.toml").read_text() == 'vault = "notes"\n'
    monkeypatch.chdir(tmp_path / "deep")
    assert one(run("config", "get", "vault", "--json"))["value"] == str(tmp_path / "notes")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model = \n", "config.toml is not valid TOML"),
        ('modell = "x"\n', "did you mean model?"),
        ("reply = 3\n", "config.toml: "),
    ],
)
def test_a_broken_file_is_named_and_left_as_it_is(run: Run, home: Path, text: str, said: str) -> None:
    home.mkdir()
    (home / "config.toml").write_text(text)
    for command in (["config", "show"], ["config", "set", "reply.tries", "3"], ["ask", "hello"]):
        assert said in failure(run(*command))
    assert (home / "config.toml").read_text() == text


def test_a_wrong_value_in_the_file_can_be_mended_by_setting_it(run: Run, home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text("[reply]\ntries = 99\n")
    assert "tries" in failure(run("config", "show"))
    assert run("config", "set", "reply.tries", "3").exit_code == 0
    assert one(run("config", "get", "reply.tries", "--json"))["value"] == 3


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


def test_what_a_project_chooses_is_ignored_until_it_is_trusted(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    file = tmp_path / ".recto/config.toml"
    file.parent.mkdir()
    file.write_text('model = "openai:theirs"\nvault = "notes"\n')
    shown = run("models", "show")
    assert ("embedded:qwen2.5-coder-1.5b" in shown.stdout, "openai:theirs" in shown.stderr) == (True, True)
    assert run("config", "show").stderr.count("`recto config trust` accepts it") == 2
    assert "vault = 'notes' is ignored" in failure(run("vault", "status"))
    assert f"  leads to  {tmp_path / 'notes'}" in run("config", "trust", "vault").stdout.splitlines()
    assert run("vault", "status").exit_code == 0
    row = one(run("config", "trust", "model", "--json"))
    assert (row["value"], row["file"], row["trusted"]) == ("openai:theirs", str(file), True)
    assert one(run("config", "get", "model", "--json"))["value"] == "openai:theirs"
    run("config", "distrust", "model")
    assert one(run("config", "get", "model", "--json"))["value"] != "openai:theirs"
    file.write_text("")
    assert "sets nothing that needs your trust" in run("config", "trust").stderr
