"""The chat at a real terminal: a pseudo-terminal with the real command behind it."""

from pathlib import Path

from tests.cli.conftest import Run, rows
from tests.cli.terminal import Terminal
from tests.conftest import Script


def said(run: Run) -> list[str]:
    return [row["text"] for row in rows(run("conversations", "show", "--json"))]


def test_a_chat_greets_answers_and_says_how_to_go_on(terminal: type[Terminal], script: Script, run: Run) -> None:
    model = script({"text": "# Title\n\nYes, **indeed**."})
    chat = terminal("chat", "-m", f"scripted:{Path(model).name}")  # a name that leaves the greeting on one line
    chat.wait_for("a new conversation · /help")
    chat.wait_for("› ")
    chat.type("hello\r")
    chat.wait_for("Title")
    chat.wait_for("Yes, indeed.")
    chat.wait_for("% of 8,192 tokens")
    chat.type("\x04")
    chat.wait_for("recto chat -c 1 continues this conversation")
    assert chat.code() == 0
    assert said(run)[0] == "hello"


def test_several_lines_are_one_message(terminal: type[Terminal], script: Script, run: Run) -> None:
    chat = terminal("chat", "-m", script({"text": "Yes."}))
    chat.wait_for("› ")
    chat.type("one\\\r")
    chat.type("two\x1b\r")
    chat.type("three")
    chat.type("\x1b[200~, pasted\nfour\x1b[201~")
    chat.type("\r")
    chat.wait_for("Yes.")
    chat.wait_for("› ")
    chat.type("/quit\r")
    assert chat.code() == 0
    assert said(run)[0] == "one\ntwo\nthree, pasted\nfour"


def test_ctrl_c_stops_the_reply_and_the_chat_goes_on(terminal: type[Terminal], script: Script, run: Run) -> None:
    chat = terminal("chat", "-m", script({"text": "first never", "delay_s": 600}, {"text": "Second."}))
    chat.wait_for("› ")
    chat.type("count\r")
    chat.wait_for("first")
    chat.type("\x03")
    chat.wait_for("stopped; the part received is kept")
    chat.wait_for("› ")
    chat.type("half a line")
    chat.wait_for("half a line")
    chat.type("\x03" * 5)
    chat.wait_for("› ")
    chat.type("again\r")
    assert "Traceback" not in chat.wait_for("Second.")
    chat.wait_for("› ")
    chat.type("\x04")
    assert chat.code() == 0
    assert said(run) == ["count", "first", "again", "Second."]


def test_errors_tools_and_notes_are_shown_and_the_chat_goes_on(
    terminal: type[Terminal], script: Script, notes: Path
) -> None:
    calls = [{"name": "read_document", "arguments": {"path": "Welcome"}}]
    model = script({"tool_calls": calls, "thinking": "It seems\nso"}, {"text": "Sorrel."}, {"error": "unreachable"})
    chat = terminal("chat", "--thinking", "-m", model, "--vault", str(notes))
    chat.wait_for("› ")
    chat.type("What of [[Nowhere]]?\r")
    chat.wait_for("· [[Nowhere]] leads to no document of the vault")
    told = chat.wait_for("Sorrel.")
    assert '· read_document {"path":"Welcome"} → ' in told
    assert "It seems" in told, "what it thought, as was asked for"
    chat.wait_for("› ")
    chat.type("more\r")
    chat.wait_for("The script breaks off here")
    chat.wait_for("› ")
    chat.type("/contxt\r")
    chat.wait_for("did you mean /context?")
    chat.wait_for("› ")
    chat.type("/context\r")
    chat.wait_for("8,192 tokens = ")


def test_what_was_typed_is_there_the_next_time(terminal: type[Terminal], script: Script, run: Run, home: Path) -> None:
    model = script({"text": "Yes."})
    for keys in ("remember me\r", "\x1b[A\r"):
        chat = terminal("chat", "-m", model)
        chat.wait_for("› ")
        chat.type(keys)
        chat.wait_for("Yes.")
        chat.wait_for("› ")
        chat.type("\x04")
        assert chat.code() == 0
        assert said(run)[0] == "remember me"
    assert (home / "history").stat().st_mode & 0o777 == 0o600


def test_ask_draws_markdown_at_a_terminal(terminal: type[Terminal], script: Script) -> None:
    asked = terminal("ask", "-m", script({"text": "Yes, **indeed**, not \x1b]0;title\x07."}), "--show-context", "hello")
    asked.wait_for("8,192 tokens = ")
    assert "**" not in asked.wait_for("indeed")
    asked.wait_for("not \ufffd]0;title\ufffd.")
    assert asked.code() == 0


def test_a_wait_for_the_model_says_so_and_leaves_no_trace(
    terminal: type[Terminal], script: Script, tmp_path: Path
) -> None:
    model = script({"text": "Here it is.", "until": str(tmp_path / "seen")})
    chat = terminal("chat", "-m", f"scripted:{Path(model).name}")
    chat.wait_for_prompt()
    chat.type("hello\r")
    chat.wait_for(f"waiting for scripted:{Path(model).name}…")
    (tmp_path / "seen").touch()
    chat.wait_for("Here it is.")
    chat.wait_for("% of 8,192 tokens")
    assert "\x1b[2K" in chat.raw, "the line of the wait is erased"


def test_a_history_that_cannot_be_kept_costs_no_chat(terminal: type[Terminal], script: Script, home: Path) -> None:
    (home / "history").mkdir(parents=True)
    chat = terminal("chat", "-m", script({"text": "Yes."}))
    chat.wait_for("› ")
    chat.type("hello\r")
    chat.wait_for("Yes.")
    chat.wait_for("› ")
    chat.type("\x04")
    assert chat.code() == 0
