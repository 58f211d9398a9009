"""What is typed while a reply comes: key by key, as a terminal sends it, and in a real chat."""

from pathlib import Path

import pytest
from tests.cli.conftest import Run, rows
from tests.cli.terminal import Terminal
from tests.conftest import Script

from recto.cli.terminal import Typeahead
from recto.errors import StoreError


class Typed:
    def __init__(self) -> None:
        self.taken = list[str]()
        self.keys = Typeahead(self.taken.append, lambda: self.taken.pop() if self.taken else None, lambda text: None)

    def feed(self, *keys: str) -> "Typed":
        for each in keys:
            self.keys.feed(each)
        return self


@pytest.mark.parametrize(
    ("keys", "taken", "left"),
    [
        (("hello\r",), ["hello"], ""),
        (("he", "llo", "\r", "x"), ["hello"], "x"),
        (("helo\x7flo\r",), ["hello"], ""),
        (("two words\x17three\r",), ["two three"], ""),
        (("all of it\x15nothing\r",), ["nothing"], ""),
        (("\r", "  \r"), [], ""),
        (("one\x1b\rtwo\r",), ["one\ntwo"], ""),
        (("a pasted\rtext\rof lines\r",), ["a pasted\ntext\nof lines"], ""),
        (("\x1b[Dleft\x1b[3~\x1bOPkeys\r",), ["leftkeys"], ""),
        (("split \x1b", "[C", "sequence\r"), ["split sequence"], ""),
        (("\x07\x00bell",), [], "bell"),
        (("first\r", "\x1b[A", " again\r"), ["first again"], ""),
        (("first\r", "typed\x1b[A"), ["first"], "typed"),
    ],
)
def test_keys_become_lines(keys: tuple[str, ...], taken: list[str], left: str) -> None:
    typed = Typed().feed(*keys)
    assert (typed.taken, typed.keys.text) == (taken, left)


def test_a_line_that_cannot_be_stored_stays_where_it_was_typed() -> None:
    def refuse(text: str) -> None:
        raise StoreError("the disk is full")

    keys = Typeahead(refuse, lambda: None, lambda text: None)
    keys.feed("precious words\r")
    assert keys.text == "precious words"


def said(run: Run) -> list[tuple[str, str]]:
    return [(row["role"], row["text"]) for row in rows(run("conversations", "show", "--json"))]


def test_a_message_typed_during_a_reply_is_shown_as_waiting_and_answered_next(
    terminal: type[Terminal], script: Script, run: Run, tmp_path: Path
) -> None:
    slow = {"text": "word after word", "after": 1, "until": str(tmp_path / "typed")}
    chat = terminal("chat", "-m", script(slow, {"text": "The second answer."}))
    chat.wait_for("› ")
    chat.type("first\r")
    chat.wait_for("word")
    chat.type("seco")
    chat.wait_for("seco")
    chat.type("nd\r")
    chat.wait_for("waiting: second")
    (tmp_path / "typed").touch()
    chat.wait_for("› second")
    chat.wait_for("The second answer.")
    chat.wait_for("tokens")
    chat.type("\x04")
    assert chat.code() == 0
    assert [text for role, text in said(run) if role == "user"] == ["first", "second"]
    assert said(run)[-1] == ("assistant", "The second answer.")


def test_what_waits_when_a_reply_is_stopped_is_told_and_can_be_taken_back(
    terminal: type[Terminal], script: Script, run: Run
) -> None:
    chat = terminal("chat", "-m", script({"text": "word " * 600, "delay_s": 0.1}, {"text": "Fine."}))
    chat.wait_for("› ")
    chat.type("first\r")
    chat.wait_for("word")
    chat.type("second\r")
    chat.wait_for("waiting: second")
    chat.type("half a thou")
    chat.wait_for("half a thou")
    chat.type("\x03")
    chat.wait_for("1 message waiting: your next one brings it along")
    chat.wait_for("half a thou")  # in the next prompt
    chat.type("\x15/waiting drop\r")
    chat.wait_for("taken back: second")
    chat.wait_for("nothing is waiting")
    chat.wait_for("› ")
    chat.type("\x04")
    assert chat.code() == 0


@pytest.mark.slow
def test_a_command_sends_nothing_that_waits(terminal: type[Terminal], script: Script, run: Run) -> None:
    chat = terminal("chat", "-m", script({"text": "word " * 600, "delay_s": 0.1}, {"text": "Fine."}))
    chat.wait_for("› ")
    chat.type("first\r")
    chat.wait_for("word")
    for text in ("second", "third"):
        chat.type(f"{text}\r")
        chat.wait_for(f"waiting: {text}")
    chat.type("\x03")
    chat.wait_for("2 messages waiting: your next one brings them along")
    for command, told in (
        ("/waiting", "2  third"),
        ("/thinking", "thinking is shown"),
        ("/waiting drop 1", "your next message brings it along"),
    ):
        chat.settle()
        chat.type(f"{command}\r")
        chat.wait_for(told)
    chat.wait_for("1 message waiting: your next one brings it along")
    assert [text for role, text in said(run) if role == "user"] == ["first"]
    chat.settle()
    chat.type("fourth\r")
    chat.wait_for("Fine.")
    chat.settle()
    chat.type("\x04")
    assert chat.code() == 0
    assert "third" in str(said(run))
    assert "second" not in str(said(run))
