"""Turns with a provider that counts tokens itself, over a real connection."""

import json
import time
from typing import Any

import pytest
from tests.conftest import Open, Serve
from tests.providers.conftest import Answer, Loopback
from tests.test_cache_marks import said

from recto.api.blocking import Desk
from recto.window.calibration import UsageReport

MODEL = "anthropic:claude-sonnet-4-5"
COUNTED, ASKED = "/v1/messages/count_tokens", "/v1/messages"
DEADLINE_S = 30


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECTO_CONTEXT_COUNT_AT_PROVIDER", "on")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")


@pytest.fixture
def counting(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Any:
    def start(*counts: Answer) -> Loopback:
        server = serve(said("Fine."), routes={COUNTED: list(counts)})
        monkeypatch.setenv("RECTO_ANTHROPIC_BASE_URL", server.url)
        return server

    return start


def count(tokens: int) -> Answer:
    return Loopback.whole({"input_tokens": tokens})


def targets(server: Loopback) -> list[str]:
    return [each.target for each in server.received if each.body]


def reports(desk: Desk) -> list[UsageReport]:
    return desk.store.usage_reports.latest(MODEL)


def wait_for(desk: Desk, reported: int) -> UsageReport:
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        if found := [report for report in reports(desk) if report.reported == reported]:
            return found[0]
        time.sleep(0.01)
    raise AssertionError(f"no report of {reported}")


def test_the_first_requests_are_counted_in_the_background(desk: Open, counting: Any) -> None:
    server, at = counting(count(77)), desk(MODEL)
    at.conversation().ask("Hello")
    assert wait_for(at, 77).counted > 0
    (asked,) = [each for each in server.received if each.target == COUNTED]
    assert set(json.loads(asked.body)) == {"model", "messages", "system"}


def test_a_count_calibrates_the_next_turn(desk: Open, counting: Any) -> None:
    counting(count(77))
    at = desk(MODEL)
    talk = at.conversation()
    talk.ask("Hello")
    wait_for(at, 77)
    assert talk.window("x").calibration.replies >= 1


def test_a_turn_does_not_wait_for_a_count_in_the_background(desk: Open, counting: Any) -> None:
    server, at = counting(Loopback.nothing("hanging")), desk(MODEL)
    assert at.conversation().ask("Hello").text == "Fine."
    assert ASKED in targets(server)


def test_a_request_that_the_provider_counts_as_too_long_is_made_smaller_before_it_is_sent(
    desk: Open, counting: Any
) -> None:
    server = counting(count(250_000), count(100_000))
    at = desk(MODEL, context__enabled=False)
    talk = at.conversation()
    talk.extend([{"role": "user", "content": "word " * 20_000}, {"role": "assistant", "content": "Yes."}] * 7)
    reply = talk.ask("And now?")
    assert reply.text == "Fine."
    assert any("counts 250,000 tokens" in note and "making the window smaller" in note for note in reply.notes)
    sent = [each.target for each in server.received if each.body]
    assert sent.index(COUNTED) < sent.index(ASKED)
    assert sent.count(ASKED) == 1
    sizes = {each.target: len(each.body) for each in server.received if each.body}
    first = next(each for each in server.received if each.target == COUNTED)
    assert sizes[ASKED] < len(first.body)


def test_a_counting_endpoint_that_fails_changes_nothing(desk: Open, counting: Any) -> None:
    server = counting(Loopback.error(500, {}))
    talk = desk(MODEL).conversation()
    replies = [talk.ask(f"Question {number}") for number in range(6)]
    assert [reply.text for reply in replies] == ["Fine."] * 6
    assert not any("count" in note for reply in replies for note in reply.notes)
    assert targets(server).count(COUNTED) <= 4, "it is left alone after some failures"


@pytest.mark.parametrize("switch", ["setting", "key"])
def test_nobody_is_asked_where_it_is_switched_off_or_there_is_no_key(
    desk: Open, counting: Any, monkeypatch: pytest.MonkeyPatch, switch: str
) -> None:
    server = counting(count(77))
    if switch == "key":
        monkeypatch.delenv("ANTHROPIC_API_KEY")
    at = desk(MODEL, **({"context__count_at_provider": False} if switch == "setting" else {}))
    at.conversation().ask("Hello")
    at.close()
    assert COUNTED not in targets(server)
