"""What was spent, as the command line tells it: after a reply, for a conversation, a day and a model."""

import io

import pytest
from rich.console import Console
from tests.cli.conftest import Run, failure, one, rows
from tests.conftest import Open, Script

from recto.cli.chat_state import ChatState

DEAR = {"input": 1000, "output": 10_000}
REPLY = {"text": "Yes.", "usage": {"input": 100, "output": 10}}


def shown(chat: ChatState) -> str:
    return " ".join("".join(part[1] for part in chat.toolbar()).split())


def console(width: int = 400) -> Console:
    return Console(file=io.StringIO(), width=width)


def test_a_limit_is_one_sentence_and_the_message_is_kept(run: Run, script: Script) -> None:
    model = script(REPLY, prices=DEAR)
    run("config", "set", "spend.day", "0.3")
    asked = ("ask", "-m", model, "--set", "reply.max_tokens=5")
    assert run(*asked, "hello").exit_code == 0
    told = failure(run(*asked, "Where is the boat?"))
    assert told.count("\n") == 1
    assert told.startswith("recto: this call could cost $0.")
    assert "of the $0.30 for today (spend.day) $0.20 is spent" in told
    assert "your message is kept in conversation #2" in told
    assert "Where is the boat?" in run("conversations", "show", "2").stdout
    assert "$0.20 of $0.30, 1 request" in run("context", "cost").stdout
    assert run("ask", "-c", "2", "-m", model, "--set", "spend.day=9", "And now?").exit_code == 0


def test_the_status_line_tells_the_cost(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, prices=DEAR))
    talk = at.conversation()
    talk.ask("hello")
    chat = ChatState(at, talk, console())
    assert "$" not in shown(chat)
    chat.update_cost()
    assert "tokens $0.20 script" in shown(chat)
    talk.use(script({"text": "Yes."}, prices={"input": 0, "output": 0}))
    free = ChatState(at, at.conversation(), console())
    free.update_cost()
    assert free.cost == ""


def test_the_status_line_tells_limits_and_unknown_prices(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, prices=DEAR), spend__conversation=9, spend__day=90)
    talk = at.conversation()
    talk.ask("hello")
    chat = ChatState(at, talk, console())
    chat.update_cost()
    assert "tokens $0.20 of $9.00, today $0.20 of $90.00 script" in shown(chat)
    talk.use(script(REPLY))
    talk.ask("hello")
    chat.update_cost()
    assert "$0.20 of $9.00 + price unknown" in shown(chat)


def test_stats_by_turn_tell_how_full_each_window_was_and_its_cost(run: Run, script: Script) -> None:
    model = script(REPLY, prices=DEAR, limit=5000)
    run("ask", "-m", model, "hello")
    run("ask", "--continue", "-m", model, "again")
    first, second = rows(run("context", "stats", "--by", "turn", "--json"))
    assert (first["number"], second["number"], second["answers"]) == (2, 4, 3)
    assert second["tokens"] > first["tokens"] > 0
    assert (first["limit"], first["usage"]["cost_usd"]) == (5000, pytest.approx(0.2))
    run("ask", "--continue", "-m", script(REPLY), "and now?")
    numbers = one(run("context", "stats", "--json"))
    assert (numbers["cost_usd"], numbers["unpriced"]) == (pytest.approx(0.4), 1)
    assert [each["cost_usd"] for each in numbers["models"]][:1] == [pytest.approx(0.4)]
