"""Compactions at a real terminal: the spinner, the marker, and being asked first."""

from pathlib import Path

import pytest
from tests.cli.conftest import Run, one
from tests.cli.terminal import Terminal
from tests.cli.test_context_compaction import REPLY, SUMMARY, block_of, editor, talk
from tests.conftest import Script, mostly_slow

TOO_MUCH = "word " * 150
QUESTION = "use it? [Y]es / [e]dit / [n]ot now "


@pytest.fixture
def nearly_full(run: Run, script: Script) -> str:
    """A conversation that the next long message fills up; the name of its model."""
    model = nearby(script(REPLY, SUMMARY, limit=1200))
    talk(run, model, 13)
    return model


def nearby(model: str) -> str:
    """The same by a name that fits on a line of the screen; we are in its folder."""
    return f"scripted:{Path(model).name}"


def ask_too_much(terminal: type[Terminal], *options: str) -> Terminal:
    chat = terminal("chat", "--continue", *options)
    chat.wait_for_prompt()
    chat.type(TOO_MUCH + "\r")
    return chat


def test_a_summary_in_the_making_is_told_with_its_seconds_and_marked_when_it_is_there(
    terminal: type[Terminal], run: Run, script: Script, tmp_path: Path
) -> None:
    model = nearby(script(REPLY, {**SUMMARY, "until": str(tmp_path / "seen")}, limit=1200))
    talk(run, model, 13)
    chat = ask_too_much(terminal)
    chat.wait_for("summing up ")
    chat.wait_for(f" tokens with {model}… 3 s")
    (tmp_path / "seen").touch()
    chat.wait_for("─ compaction 1: ")
    chat.wait_for(f" tokens · summary by {model} ─")
    assert "summing up" not in chat.wait_for(str(REPLY["text"]))
    chat.leave()


def test_asked_first_a_yes_makes_the_compaction(terminal: type[Terminal], run: Run, nearly_full: str) -> None:
    chat = ask_too_much(terminal, "--set", "context.confirm=true")
    told = chat.wait_for(QUESTION)
    assert "to be compacted: " in told
    assert "there are 14 boats in the harbour" in told
    assert "compaction 1: " in told
    chat.type("perhaps\r")
    assert "perhaps" in chat.wait_for(QUESTION), "the keys of an answer can be seen"
    chat.type("\r")
    chat.wait_for("compaction 1: ")
    chat.wait_for(str(REPLY["text"]))
    chat.leave()
    assert block_of(run("context", "summary", "--json"))["made_by"] == "model"


@pytest.mark.parametrize("keys", mostly_slow(["n\r", "\x03", "\x04"], ["\x03"]))
def test_asked_first_a_no_leaves_all_as_it_is_and_the_answer_comes(
    terminal: type[Terminal], run: Run, nearly_full: str, keys: str
) -> None:
    chat = ask_too_much(terminal, "--set", "context.confirm=true")
    chat.wait_for(QUESTION)
    chat.settle()
    chat.type(keys)
    told = chat.wait_for(str(REPLY["text"]))
    assert "left out of this request" in told
    assert "Traceback" not in told
    chat.leave()
    assert one(run("context", "stats", "--json"))["compactions"] == 0


def test_asked_first_the_user_may_write_the_summary(
    terminal: type[Terminal], run: Run, nearly_full: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", f"sh {editor(tmp_path, 'sed -i s/14/15/ $1')}")
    chat = ask_too_much(terminal, "--set", "context.confirm=true")
    chat.wait_for(QUESTION)
    chat.type("e\r")
    chat.wait_for("summary by you")
    chat.wait_for(str(REPLY["text"]))
    chat.leave()
    block = block_of(run("context", "summary", "--json"))
    assert (block["made_by"], "15 boats" in block["summary"]) == ("user", True)


@pytest.mark.slow
def test_what_was_typed_before_the_question_is_no_answer_to_it(
    terminal: type[Terminal], run: Run, script: Script, tmp_path: Path
) -> None:
    talk(run, script(REPLY, {**SUMMARY, "until": str(tmp_path / "typed")}, limit=1200), 13)
    chat = ask_too_much(terminal, "--set", "context.confirm=true")
    chat.wait_for("summing up")
    chat.type("\r\r\r")
    chat.settle()
    (tmp_path / "typed").touch()
    chat.wait_for(QUESTION)
    chat.type("n\r")
    chat.wait_for("left out of this request")
    chat.wait_for(str(REPLY["text"]))
    chat.leave()
    assert one(run("context", "stats", "--json"))["compactions"] == 0, "Enter would have been a yes"


def test_ctrl_c_stops_a_compaction_and_nothing_is_changed(terminal: type[Terminal], run: Run, script: Script) -> None:
    talk(run, script(REPLY, {**SUMMARY, "hang_s": 600}), 6)
    chat = terminal("chat", "--continue")
    chat.wait_for_prompt()
    chat.type("/compact\r")
    chat.wait_for("summing up")
    chat.type("\x03")
    chat.wait_for("stopped; nothing was compacted")
    chat.leave()
    assert one(run("context", "stats", "--json"))["compactions"] == 0


@pytest.mark.slow
def test_the_line_at_80_percent_comes_before_the_compaction(terminal: type[Terminal], run: Run, script: Script) -> None:
    settings = ("--set", "context.reserved_response_tokens=50", "--set", "context.threshold=0.95")
    model = script(REPLY, SUMMARY, limit=1200)
    talk(run, model, 18, *settings)
    chat = terminal("chat", "--continue", *settings)
    chat.wait_for_prompt()
    chat.type("word " * 150 + "\r")
    chat.wait_for("· the context is 8")
    chat.wait_for("it is compacted at 1,140")
    chat.leave()
    assert one(run("context", "stats", "--json"))["compactions"] == 0
