"""`recto context export` and `import` at the command line."""

import os
from pathlib import Path

import pytest
from tests.cli.conftest import Run, Spawn, failure
from tests.conftest import Script


@pytest.fixture
def asked(run: Run, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECTO_MODEL", script({"text": "Hello \x1b[31mred."}, {"text": "Again."}))
    assert run("ask", "Hi there").exit_code == 0
    assert run("ask", "Another one").exit_code == 0


@pytest.mark.usefixtures("asked")
def test_what_is_exported_is_imported_elsewhere(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "all.jsonl"
    done = run("context", "export", "--all", "-o", str(file))
    assert (done.exit_code, done.stdout) == (0, "")
    assert f"written to {file}" in done.stderr
    assert os.stat(file).st_mode & 0o777 == 0o600
    monkeypatch.setenv("RECTO_HOME", str(tmp_path / "elsewhere"))
    assert run("context", "import", str(file)).stdout == f"{file} (recto): 2 added; 4 messages stored\n"
    assert run("context", "import", str(file)).stdout == f"{file} (recto): 2 here already; 0 messages stored\n"
    assert run("context", "export", "--all").stdout_bytes == file.read_bytes()
    assert run("request", "verify", "--all").exit_code == 0
    assert run("store", "check").exit_code == 0


@pytest.mark.usefixtures("asked")
def test_what_cannot_be_written_is_told_and_nothing_is_left(run: Run, tmp_path: Path) -> None:
    assert "cannot write" in failure(run("context", "export", "-o", str(tmp_path / "none" / "a.md")))
    (tmp_path / "folder").mkdir()
    assert "cannot write" in failure(run("context", "export", "-o", str(tmp_path / "folder")))
    assert not list(tmp_path.glob(".*partial"))


def test_usage_is_checked(run: Run) -> None:
    assert "not both" in failure(run("context", "export", "1", "--all"), 2)
    assert "Missing argument" in failure(run("context", "import"), 2)
    assert "there is no conversation yet" in failure(run("context", "export"))
    assert "there is no conversation #7" in failure(run("context", "export", "7"))


def test_what_cannot_be_imported_is_one_sentence(fork: Spawn, tmp_path: Path) -> None:
    file = tmp_path / "odd.json"
    file.write_bytes(b'[{"role": "\\u001b[31mboss", "content": "a"}]')
    done = fork("context", "import", str(file))
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1
    assert b"\x1b" not in done.stderr
    assert b"is unknown; known are" in done.stderr


@pytest.mark.usefixtures("asked")
def test_a_conversation_that_went_on_here_stays(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "one.jsonl"
    run("context", "export", "1", "-o", str(file))
    assert run("ask", "-c", "1", "Once more").exit_code == 0
    assert "1 here with other content, which stays; 0 messages" in run("context", "import", str(file)).stdout
