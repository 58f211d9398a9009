"""A new kind of source is one class and one line: here a picker of dreams, in every place and phase."""

import json
from typing import Any

import pytest
from tests.conftest import Open, Script

from recto.chat.message import Message
from recto.engine import Engine
from recto.sources.selection import Selection, StablePicks
from recto.sources.source import Insert, Pick, Rule
from recto.turn.context import TurnContext
from recto.turn.planned_request import PlannedRequest, count_with, with_current
from recto.turn.turn import Picker, Room, VolatilePicks


class Dreams(Picker):
    rooms: list[Room]

    def __init__(self) -> None:
        super().__init__()
        self.rooms = []

    async def stable(self) -> StablePicks:
        rule = Rule("dreams", "Speak of dreams.")
        return StablePicks(rules=(Selection(rule, "always", "a dream"),), notes=("dreams are on",))

    @property
    def wants_room(self) -> bool:
        return True

    async def volatile(self, message: Message, context: TurnContext, room: Room) -> VolatilePicks:
        self.rooms.append(room)
        self.notes.append("one dream was left out")
        passed = Pick("memory", "a longer dream", "does not fit")
        return VolatilePicks((Insert("memory", "Dreamt of boats.", (Pick("memory", "boats", "a dream"),)),), (passed,))

    async def fill(self, planned: PlannedRequest) -> PlannedRequest:
        assert planned.window.free > 0
        insert = Insert("recalled", "A dream came back.", (Pick("memory", "back", "free room"),))
        return with_current(planned, await count_with(planned, insert))


@pytest.fixture
def dreams(monkeypatch: pytest.MonkeyPatch) -> Dreams:
    picker, real = Dreams(), Engine._pickers

    def pickers(self: Engine, planned: Any, citations: Any) -> list[Picker]:
        *others, callers = real(self, planned, citations)
        return [*others, picker, callers]

    monkeypatch.setattr(Engine, "_pickers", pickers)
    return picker


def test_what_a_picker_brings_is_counted_recorded_and_sent_in_its_place(
    desk: Open, script: Script, dreams: Dreams
) -> None:
    at = desk(script({"text": "ok"}))
    talk = at.conversation()
    drafted = talk.window("hello")
    reply = talk.ask("hello")
    assert drafted.total == reply.window.total, "a draft is the same path"
    tokens = {section.name: section.tokens for section in reply.window.sections}
    assert min(tokens[name] for name in ("rules", "memory", "recalled")) > 0
    assert [pick.name for pick in reply.window.not_picked] == ["a longer dream"]
    assert {"dreams are on", "one dream was left out"} <= set(reply.notes)
    system, message = json.loads(at.rebuild(reply.request_id))["messages"]
    assert "Speak of dreams." in system["content"]
    assert message["content"] == "A dream came back.\n\nDreamt of boats.\n\nhello"
    assert all(room.unused > 0 and not room.is_shared for room in dreams.rooms)
