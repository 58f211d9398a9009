"""What was spent, as the command line tells it: after a reply, for a conversation, a day and a model."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from tests.cli.conftest import Run, failure, one
from tests.conftest import Open, Script

from recto.cli import slash
from recto.cli.chat_state import ChatState

DEAR = {"input": 1000, "output": 10_000}
REPLY = {"text": "Yes.", "usage": {"input": 100, "output": 10}}


def shown(chat: ChatState) -> str:
    return " ".join("".join(part[1] for part in chat.toolbar()).split())


def console(width: int = 400) -> Console:
    return Console(file=io.StringIO(), width=width)


def test_stats_tell_what_was_known_then(run: Run, script: Script) -> None:
    run("chat", "-m", script(REPLY, prices=DEAR), input="hello\nagain\n")
    numbers = one(run("context", "stats", "--json"))
    assert (numbers["cost_usd"], numbers["unpriced"]) == (pytest.approx(0.4), 0)
    assert [each["cost_usd"] for each in numbers["models"]] == [pytest.approx(0.4)]
    run("ask", "--continue", "-m", script(REPLY), "and now?")
    assert "$0.40, without 1 request of unknown price" in run("context", "stats").stdout


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


def test_the_status_line_and_the_slash_command_tell_the_cost(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, prices=DEAR))
    talk = at.conversation()
    talk.ask("hello")
    chat = ChatState(at, talk, console())
    assert "$" not in shown(chat)
    chat.update_cost()
    assert "tokens $0.20 scripted:" in shown(chat)
    slash.run(chat, "/cost")
    told = chat.console.file.getvalue()  # type: ignore[attr-defined]
    assert "conversation #1  $0.20, 1 request\n" in told
    assert "today            $0.20, 1 request\n" in told


def test_the_status_line_tells_limits_and_unknown_prices(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, prices=DEAR), spend__conversation=9, spend__day=90)
    talk = at.conversation()
    talk.ask("hello")
    chat = ChatState(at, talk, console())
    chat.update_cost()
    assert "tokens $0.20 of $9.00, today $0.20 of $90.00 scripted:" in shown(chat)
    talk.use(script(REPLY))
    talk.ask("hello")
    chat.update_cost()
    assert "$0.20 of $9.00 + price unknown" in shown(chat)


def test_a_narrow_status_line_leaves_out_what_has_no_room_and_cuts_nothing(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, prices=DEAR))
    talk = at.conversation()
    talk.ask("hello")
    file = Path(talk.model).name
    told = []
    for width in (60, 45, 30, 20, 3):
        chat = ChatState(at, talk, console(width))
        chat.update_cost()
        told.append(shown(chat))
    assert told == [
        f"▱▱▱▱▱▱▱▱▱▱ 1 % of 8,192 tokens $0.20 {file}",
        f"1 % of 8,192 tokens $0.20 {file}",
        f"1 % $0.20 {file}",
        f"1 % {file}",
        "1 %",
    ]


def test_a_narrow_status_line_tells_the_window_rather_than_that_the_price_is_unknown(
    desk: Open, script: Script
) -> None:
    at = desk(script(REPLY, limit=32_000))
    talk = at.conversation()
    talk.ask("hello")
    told = {}
    for width in (40, 25):
        chat = ChatState(at, talk, console(width))
        chat.update_cost()
        told[width] = shown(chat)
    name = Path(talk.model).name
    assert told[40] == f"0 % of 32,000 tokens {name}"
    assert told[25] in (f"0 % {name}", "0 % of 32,000 tokens")


def test_a_free_model_shows_no_cost(desk: Open, script: Script) -> None:
    at = desk(script({"text": "Yes."}, prices={"input": 0, "output": 0}))
    talk = at.conversation()
    talk.ask("hello")
    chat = ChatState(at, talk, console())
    chat.update_cost()
    assert chat.cost == ""


def test_another_model_shows_its_window_at_once(desk: Open, script: Script) -> None:
    at = desk(script({"text": "Yes."}, limit=4000))
    talk = at.conversation()
    talk.ask("hello")
    chat = ChatState(at, talk, console())
    assert "of 4,000 tokens" in shown(chat)
    slash.run(chat, f"/model {script({'text': 'Yes.'}, limit=9000)}")
    assert "of 9,000 tokens" in shown(chat)


def test_costs_come_with_their_tokens(run: Run, script: Script) -> None:
    cached = {"text": "Yes.", "usage": {"input": 100, "output": 10, "cache_read": 40}}
    run("ask", "-m", script(cached, prices=DEAR), "hello")
    found = one(run("context", "cost", "--all", "--by", "model", "--json"))
    (group,) = found["groups"]
    assert (group["input"], group["output"], group["cache_read"]) == (100, 10, 40)
    assert found["total"]["input"] == 100
    assert "100 tokens in (40% from a cache), 10 out" in run("context", "cost", "--all").stdout


def test_stats_by_turn_tell_how_full_each_window_was(run: Run, script: Script) -> None:
    model = script(REPLY, prices=DEAR, limit=5000)
    run("ask", "-m", model, "hello")
    run("ask", "--continue", "-m", model, "again")
    first, second = [json.loads(line) for line in run("context", "stats", "--by", "turn", "--json").stdout.splitlines()]
    assert (first["number"], second["number"], second["answers"]) == (2, 4, 3)
    assert second["tokens"] > first["tokens"] > 0
    assert (first["limit"], first["usage"]["cost_usd"]) == (5000, pytest.approx(0.2))
    told = run("context", "stats", "--by", "turn").stdout.splitlines()
    assert told[0].startswith("#2 ")
    assert told[0].endswith("$0.20")
