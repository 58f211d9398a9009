"""Drafts one after the other: what the first one loaded serves the next, as long as nothing has changed."""

from collections.abc import Callable

import pytest
from tests.compaction.test_compaction_work import REPLY, SAID, SUMMARY
from tests.conftest import Open, Script

from recto.api.blocking import Desk, Talk

TURNS = 12
CHANGES: dict[str, Callable[[Talk], object]] = {
    "a turn": lambda talk: talk.ask("One thing more."),
    "a pin": lambda talk: talk.pin("#3"),
    "a priority": lambda talk: talk.set_priority("#3", 10),
    "a compaction": lambda talk: talk.compact(),
    "an undo": lambda talk: talk.undo(),
    "a fork": lambda talk: talk.fork("#4"),
    "another strategy": lambda talk: talk.use_strategy("hybrid"),
}


@pytest.fixture
def opened(desk: Open, script: Script) -> Desk:
    return desk(script(REPLY, SUMMARY, limit=1200), context__reserved_response_tokens=100, context__prepare_at=0.0)


@pytest.fixture
def talk(opened: Desk) -> Talk:
    made = opened.conversation()
    for number in range(TURNS):
        made.ask(SAID.format(number))
    return made


@pytest.mark.parametrize("change", CHANGES)
def test_a_draft_after_a_change_is_that_of_a_client_that_comes_new(opened: Desk, talk: Talk, change: str) -> None:
    talk.window("What now?")
    CHANGES[change](talk)
    fresh = opened.conversation(talk.id)
    fresh.session.apply(head=talk.session.head)
    assert talk.window("What now?").to_json() == fresh.window("What now?").to_json()


def test_a_draft_with_another_window_is_loaded_for_that(talk: Talk) -> None:
    talk.window("What now?")
    talk.set_setting("context.max_prompt_tokens", 800)
    smaller = talk.window("What now?")
    talk.set_setting("context.max_prompt_tokens", None)
    assert smaller.limit == 800
    assert talk.window("What now?").limit == 1200
