"""What a user's machine can do to us: each a clear sentence, exit 1, nothing lost."""

import os
import shutil
from pathlib import Path

import pytest
from tests.cli.conftest import Run, Spawn, failure, rows
from tests.conftest import Script

COMMANDS = (["conversations", "list"], ["context", "stats"], ["request", "verify", "--all"], ["ask", "hello"])


@pytest.mark.parametrize("command", COMMANDS)
def test_a_corrupt_database_or_a_file_in_place_of_the_home_is_named_and_left(
    run: Run, home: Path, command: list[str]
) -> None:
    home.mkdir()
    damaged = b"this is no database, and never was " * 100
    (home / "recto.db").write_bytes(damaged)
    assert "recto.db is damaged" in failure(run(*command))
    assert (home / "recto.db").read_bytes() == damaged
    shutil.rmtree(home)
    home.write_text("a file where a folder should be")
    assert str(home) in failure(run(*command))
    assert home.read_text() == "a file where a folder should be"


def test_a_home_below_a_file_is_named_by_the_real_command(
    spawn: Spawn, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.write_text("a file")
    monkeypatch.setenv("RECTO_HOME", str(home / "below"))
    done = spawn("ask", "hello")
    assert done.returncode == 1
    assert done.stdout == b""
    assert done.stderr.startswith(b"recto: ")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_home_that_cannot_be_written_is_named(run: Run, home: Path) -> None:
    home.mkdir(mode=0o500)
    assert "check that the folder exists and can be written" in failure(run("ask", "hello"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_database_is_named(run: Run, script: Script, home: Path) -> None:
    run("ask", "-m", script({"text": "Yes."}), "hello")
    (home / "recto.db").chmod(0o400)
    home.chmod(0o500)
    assert "read-only" in failure(run("ask", "--continue", "hello"))
    home.chmod(0o700)


def test_a_script_that_is_no_script_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text('[{"text": 1}]')
    assert "broken.json" in failure(run("ask", "-m", "scripted:broken.json", "hello"))


def test_a_provider_that_cannot_be_reached_is_told_and_the_message_kept(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECTO_NOWHERE_BASE_URL", "http://127.0.0.1:9/v1")
    told = failure(run("ask", "-m", "nowhere:x", "--set", "reply.tries=1", "hello"))
    assert told.count("recto: ") == 1
    assert rows(run("conversations", "show", "--json"))[0]["text"] == "hello"


@pytest.mark.parametrize("id", ["", " ", "a\ud800b"])
def test_an_id_that_names_nothing_is_told_in_one_line(run: Run, script: Script, id: str) -> None:
    run("ask", "-m", script({"text": "Yes."}), "hello")
    for command in (["ask", "hello", "-c"], ["conversations", "fork"], ["conversations", "show"], ["request", "show"]):
        told = failure(run(*command, id))
        assert (told.startswith("recto: "), told.count("\n")) == (True, 1)
    assert len(rows(run("conversations", "list", "--json"))) == 1
