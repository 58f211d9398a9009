"""Slash commands about conversations, from a pipe; tests/journeys/test_coming_back.py drives them at a terminal."""

from pathlib import Path

import pytest
from tests.cli.conftest import Run, failure, rows
from tests.conftest import Script


@pytest.fixture
def model(script: Script) -> str:
    return script(*({"text": f"Reply {number}."} for number in range(1, 20)))


def chat(run: Run, model: str, *lines: str, options: tuple[str, ...] = ()) -> str:
    result = run("chat", "-m", model, *options, input="".join(f"{line}\n" for line in lines))
    assert result.exit_code == 0, result.stderr
    return result.stdout


def refused(run: Run, model: str, *lines: str) -> str:
    result = run("chat", "-m", model, input="".join(f"{line}\n" for line in lines))
    assert result.exit_code == 1
    assert "Traceback" not in result.stderr
    return result.stderr


def said(run: Run, conversation: str = "1") -> list[str]:
    return [row["text"] for row in rows(run("conversations", "show", conversation, "--json"))]


def test_a_message_is_edited_and_answered_at_once(run: Run, model: str) -> None:
    assert chat(run, model, "one", "two", "/edit 3 two, but better").splitlines()[-1] == "Reply 3."
    assert said(run) == ["one", "Reply 1.", "two, but better", "Reply 3."]
    told = refused(run, model, "one", "/edit 1", "/edit 2", "/regenerate nosuch:model")
    assert ("there is no keyboard to edit with" in told, "#2 is not your message" in told) == (True, True)
    assert said(run, "2")[-1] == "Reply 1.", "a model that there is not leaves the old reply"


def test_a_reply_is_made_again(run: Run, model: str, script: Script) -> None:
    other = script({"text": "Said by another."})
    assert chat(run, model, "one", "/regenerate", f"/regenerate {other}").splitlines() == [
        "Reply 1.",
        "Reply 2.",
        "Said by another.",
    ]
    assert said(run) == ["one", "Said by another."]
    assert "there is no message yet to answer again" in refused(run, model, "/regenerate")


def test_another_conversation_is_found_and_continued_in_the_same_chat(run: Run, model: str, script: Script) -> None:
    other = script({"text": "Of apples."})
    run("ask", "-m", other, "Apple planning")
    run("ask", "-m", model, "About masts")
    lines = chat(run, model, "/conversations apples", "/switch apple", "and pears?", "/model").splitlines()
    assert lines[0].endswith("Apple planning")
    assert "Of apples." in lines, "its model answers"
    assert f"{other} answers; /model NAME changes that" in lines
    assert said(run, "1") == ["Apple planning", "Of apples.", "and pears?", "Of apples."]
    refused(run, model, "/switch pears")
    assert "this is conversation #1 already" in failure(run("chat", "-c", "1", input="/switch 1\n"))


def test_messages_are_named_by_number_with_and_without_sign_and_by_the_beginning_of_an_id(run: Run, model: str) -> None:
    chat(run, model, "one", "two")
    id = rows(run("conversations", "show", "--json"))[0]["id"]
    shown = chat(run, model, "/pin 3", f"/pin {id[:24].lower()}", "/unpin #3", "/fork 2", options=("-c", "one"))
    assert "#3 is pinned, in every window of conversation #1 from now on: two" in shown
    assert "#1 is pinned, in every window of conversation #1 from now on: one" in shown
    assert "#3 is no longer pinned in conversation #1: two" in shown
    assert "the next message of conversation #1 follows #2: Reply 1." in shown


def test_another_conversation_goes_on_as_it_was_left_whatever_the_options_of_the_chat(
    run: Run, script: Script, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, large, small = (script({"text": "Yes."}, limit=limit) for limit in (6000, 8000, 4096))
    also = tmp_path / "also" / "notes"
    also.mkdir(parents=True)
    run("ask", "-m", large, "--vault", str(notes), "With a vault")
    run("ask", "-m", small, "-c", "1", "Once by another model")
    monkeypatch.setenv("RECTO_MODEL", other)
    run("ask", "Without a vault")
    shown = chat(
        run, small, "/switch 1", "/context", "/switch 2", "/model", options=("--vault", str(also))
    ).splitlines()
    assert any(line.startswith(f"{large} · vault {notes} · conversation #1") for line in shown)
    assert any(line.startswith(f"{other} · no vault · conversation #2") for line in shown)
    assert f"{other} answers; /model NAME changes that" in shown
