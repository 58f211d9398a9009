import hashlib
import sqlite3
from pathlib import Path

import pytest
from tests.cli.conftest import Run, Spawn, failure, one, rows
from tests.conftest import Script


def test_the_record_carries_the_hash_of_the_bytes(run: Run, fork: Spawn, script: Script) -> None:
    answer = one(run("ask", "-m", script({"text": "Yes."}), "hello", "--json"))
    record = one(run("request", "show", answer["request"], "--json"))
    body = fork("request", "rebuild", answer["request"]).stdout
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


def test_verify_proves_all_or_some(run: Run, script: Script) -> None:
    model = script({"text": "Yes."})
    ids = [one(run("ask", "-m", model, "hello", "--json"))["request"] for _ in range(2)]
    assert run("request", "verify", "--all").stdout == "".join(f"ok {id}\n" for id in ids)
    assert [(row["request"], row["ok"]) for row in rows(run("request", "verify", ids[0], "--json"))] == [(ids[0], True)]
    failure(run("request", "verify"), 2)
    failure(run("request", "verify", "01X"))
    run("ask", "-m", "nope:x", "--continue", "hello again")
    unsent = rows(run("conversations", "show", "--json"))[-1]["id"]
    assert "No context data available" in failure(run("request", "show", unsent))
    failure(run("request", "rebuild", ids[0], "-o", "nowhere/body.json"))


def test_what_was_altered_is_named_and_exits_1(run: Run, script: Script, home: Path) -> None:
    id = one(run("ask", "-m", script({"text": "Yes."}), "hello", "--json"))["request"]
    with sqlite3.connect(home / "recto.db") as database:
        database.execute("UPDATE pieces SET data = x'006368616e676564' WHERE n = 1")
    database.close()
    done = run("request", "verify", "--all")
    assert (done.exit_code, done.stdout.startswith(f"ALTERED {id}: ")) == (1, True)
    assert "was changed" in failure(run("request", "rebuild", id))
    assert run("request", "show", id, "--json").exit_code == 0


# -- found by words and by replies


def test_a_reply_stands_for_its_request(run: Run, script: Script) -> None:
    answer = one(run("ask", "-m", script({"text": "Yes."}), "hello", "--json"))
    for named in (answer["request"], answer["message"], "last"):
        assert one(run("request", "show", named, "--json"))["id"] == answer["request"]
        assert run("request", "rebuild", named).stdout_bytes.startswith(b'{"model":')
        assert run("request", "verify", named).stdout == f"ok {answer['request']}\n"
    question = rows(run("conversations", "show", "--json"))[0]["id"]
    assert one(run("request", "show", question, "--json"))["id"] == answer["request"]
    assert "nothing was sent before" in failure(run("request", "show", "previous"))


# -- compared


@pytest.fixture
def rule(home: Path) -> Path:
    folder = home / "agents" / "default" / "rules"
    folder.mkdir(parents=True)
    (folder / "style.md").write_text("---\ninclude: always\n---\nWrite short.\nBe kind.\n")
    return folder / "style.md"


# -- sources as they were sent


def test_the_text_of_a_source_is_the_one_that_was_sent(run: Run, script: Script, rule: Path, home: Path) -> None:
    id = one(run("ask", "-m", script({"text": "Yes."}), "hello", "--json"))["request"]
    rule.unlink()
    assert run("request", "show", id, "--source", "rule:style").stdout == "Write short.\nBe kind.\n"
    told = one(run("request", "show", id, "--source", "rule:style", "--json"))
    assert (told["mode"], told["text"]) == ("always", "Write short.\nBe kind.")
    assert hashlib.sha256(told["text"].encode()).hexdigest() == told["sha256"]
    assert "rule:tone was not sent with this request" in failure(run("request", "show", id, "--source", "rule:tone"))
    assert run("request", "verify", id).stdout == f"ok {id}\n"
    with sqlite3.connect(home / "recto.db") as database:
        database.execute("DELETE FROM kept")
    database.close()
    assert "the store has no text" in failure(run("request", "show", "--source", "rule:style"))
    assert run("request", "show").exit_code == 0
