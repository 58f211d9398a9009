import hashlib
import sqlite3
from pathlib import Path

import pytest
from tests.cli.conftest import Run, Spawn, failure, one, rows
from tests.conftest import Script

from recto.cli.picture import draw_request
from recto.cli.show import console


def test_the_record_carries_the_hash_of_the_bytes(run: Run, spawn: Spawn, script: Script) -> None:
    answer = one(run("ask", "-m", script({"text": "Yes."}), "hello", "--json"))
    record = one(run("request", "show", answer["request"], "--json"))
    body = spawn("request", "rebuild", answer["request"]).stdout
    assert record["sha256"] == hashlib.sha256(body).hexdigest()
    assert record["size"] == len(body)
    assert (record["id"], record["conversation"]) == (answer["request"], answer["conversation"])
    assert record["reply"] == answer["message"]
    assert record["usage"]["input"] == record["total"]


def test_the_bytes_are_what_the_model_was_sent(
    run: Run, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("RECTO_SCRIPTED_LOG", str(log))
    answer = one(run("ask", "-m", script({"text": "Yes."}), "Grüße ✓", "--json"))
    run("ask", "--continue", "more")
    run("conversations", "undo")
    assert run("request", "rebuild", answer["request"]).stdout_bytes + b"\n" == log.read_bytes().splitlines(True)[0]
    assert run("request", "rebuild", answer["request"], "-o", "body.json").stdout == ""
    assert (tmp_path / "body.json").read_bytes() + b"\n" == log.read_bytes().splitlines(True)[0]


def test_show_explains_the_last_request(run: Run, script: Script) -> None:
    run("chat", "-m", script({"text": "Yes."}), input="hello\nagain\n")
    shown = " ".join(run("request", "show").stdout.split())
    assert "2 messages of history" in shown
    assert "all that was stable in" in shown
    assert "counted, " in shown
    assert "sha256" in shown


def test_a_broken_prefix_is_explained(run: Run, script: Script) -> None:
    run("chat", "-m", script({"text": "Yes."}), input=f"hello\n/model {script({'text': 'No.'})}\nagain\n")
    assert "by another model" in " ".join(run("request", "show").stdout.split())


def test_a_failed_request_says_how_it_ended(run: Run, script: Script) -> None:
    run("ask", "-m", script({"error": "unreachable"}), "hello")
    shown = " ".join(run("request", "show").stdout.split())
    assert "ended by error: " in shown
    assert "none reported" in shown


def test_a_record_of_an_older_version_is_shown_as_far_as_it_goes(capsys: pytest.CaptureFixture[str]) -> None:
    old = {"id": "01A", "conversation": "01B", "purpose": "reply", "created": "2026-01-31T12:00:00.000Z"}
    draw_request(console(), {**old, "size": 10, "pieces": 1, "sha256": "00"})
    assert "No context data available." in capsys.readouterr().out


def test_verify_proves_all_or_some(run: Run, script: Script) -> None:
    model = script({"text": "Yes."})
    ids = [one(run("ask", "-m", model, "hello", "--json"))["request"] for _ in range(2)]
    assert run("request", "verify", "--all").stdout == "".join(f"ok {id}\n" for id in ids)
    assert rows(run("request", "verify", ids[0], "--json")) == [{"request": ids[0], "ok": True, "difference": None}]
    assert "Name the requests" in failure(run("request", "verify"), 2)
    assert "01X" in failure(run("request", "verify", "01X"))


def test_what_was_altered_is_named_and_exits_1(run: Run, script: Script, home: Path) -> None:
    id = one(run("ask", "-m", script({"text": "Yes."}), "hello", "--json"))["request"]
    with sqlite3.connect(home / "recto.db") as database:
        database.execute("UPDATE pieces SET data = x'006368616e676564' WHERE n = 1")
    database.close()
    done = run("request", "verify", "--all")
    assert (done.exit_code, done.stdout.startswith(f"ALTERED {id}: ")) == (1, True)
    assert "was changed" in failure(run("request", "rebuild", id))
    assert run("request", "show", id, "--json").exit_code == 0


def test_a_file_that_cannot_be_written_is_named(run: Run, script: Script) -> None:
    run("ask", "-m", script({"text": "Yes."}), "hello")
    assert "cannot write nowhere/body.json" in failure(run("request", "rebuild", "-o", "nowhere/body.json"))


def test_nothing_sent_yet_is_said(run: Run) -> None:
    run("ask", "-m", "nope:x", "hello")
    assert "nothing was sent yet" in failure(run("request", "show"))
