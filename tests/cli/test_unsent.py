"""A first message that cannot be sent is kept, and not gone on with by accident."""

from pathlib import Path

import pytest
from tests.cli.conftest import Run, failure, one, rows
from tests.conftest import Open, Script

from recto.errors import RectoError

FAILS = ("scripted:gone.json", "openai:gpt-4o", "nowhere:x")


@pytest.mark.parametrize(("model", "command"), [(FAILS[0], "chat"), *((model, "ask") for model in FAILS)])
def test_a_message_that_was_never_sent_is_kept_and_not_continued(
    run: Run, script: Script, model: str, command: str
) -> None:
    def texts(conversation: str) -> list[str]:
        return [row["text"] for row in rows(run("conversations", "show", "--json", conversation))]

    run("ask", "-m", script({"text": "Yes."}), "the first one")
    failed = run("chat", "-m", model, input="lost?\n") if command == "chat" else run("ask", "-m", model, "lost?")
    assert (failed.exit_code, failed.stderr.count("recto: ")) == (1, 1)
    assert failed.stderr.rstrip().endswith("; your message is kept in conversation #2")
    assert rows(run("conversations", "show", "--json"))[0]["text"] == "lost?", "commands that look mean the latest"
    run("ask", "-m", script({"text": "On."}), "--continue", "and then?")
    assert texts("1") == ["the first one", "Yes.", "and then?", "On."]
    run("ask", "-m", script({"text": "Now."}), "-c", "2", "once more")
    assert texts("2") == ["lost?", "once more", "Now."]
    assert one(run("ask", "-m", script({"text": "."}), "--continue", "--json", "and?"))["notes"] == []
    assert rows(run("conversations", "show", "--json"))[0]["text"] == "lost?", "it was sent meanwhile"


def test_with_nothing_else_there_is_nothing_to_continue(run: Run, script: Script) -> None:
    assert "there is no conversation yet" in failure(run("ask", "--continue", "hello"))
    failure(run("ask", "-m", "scripted:gone.json", "hello"))
    told = failure(run("ask", "-m", script({"text": "Yes."}), "--continue", "again"))
    assert told == "recto: nothing was ever sent in conversation #1: `-c 1` continues it anyway\n"


def test_a_vault_that_is_missing_is_told_before_anything_is_stored(run: Run, script: Script, tmp_path: Path) -> None:
    failure(run("ask", "-m", script({"text": "Yes."}), "--vault", str(tmp_path / "gone"), "hello"))
    assert rows(run("conversations", "list", "--json")) == []


def test_what_failed_after_it_was_sent_is_continued(desk: Open, script: Script) -> None:
    at = desk(script({"error": "rate_limited"}))
    talk = at.conversation()
    with pytest.raises(RectoError) as failed:
        talk.ask("hello")
    assert "kept" not in failed.value.message
    latest = at.latest()
    assert latest
    assert latest.id == talk.id
