"""Tools that take more than their share of the window are left out, and the user is told."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Open, Script

from recto.api.blocking import Desk, Talk
from recto.events import Noticed, Replied
from recto.sources.selection import OfferedTool, Selection
from recto.sources.source import Tool
from recto.sources.tools import LocalTool
from recto.turn.session import LastTools
from recto.turn.source_picker import MOST_TOOLS, ToolFilter

PART = Path(__file__).parents[1] / "mcp" / "parts" / "changing.py"
THINGS = (
    *("anchors", "boats", "cranes", "docks", "engines", "flags", "gangways", "hulls", "ice", "jetties", "keels"),
    "lamps",
)
OUTSIDE = "Mind what the harbour master wrote about this in the long letter of last year. " * 3


def tool(thing: str, more: str = OUTSIDE) -> dict[str, Any]:
    field = {"type": "string", "title": "Name", "description": f"which one, by its name. {more}"}
    schema = {"type": "object", "title": thing, "properties": {"name": field, "title": {"type": "string"}}}
    return {"name": f"count_{thing}", "description": f"Counts {thing}. {more}", "inputSchema": schema}


Harbour = Callable[..., Desk]


@pytest.fixture
def harbour(desk: Open, script: Script, tmp_path: Path) -> Harbour:
    """A desk with the tools of a server, of which all may take this share of a window."""
    (tmp_path / "home").mkdir()
    tools = tmp_path / "tools.json"
    args = ["-S", str(PART), str(tools), str(tmp_path / "calls")]
    servers = {"harbour": {"command": sys.executable, "args": args}}
    (tmp_path / "home" / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))

    model = script({"text": "ok"}, limit=40_000)

    def make(share: float, *offered: dict[str, Any]) -> Desk:
        tools.write_text(json.dumps(offered))
        for kept in (tmp_path / "home" / "servers").glob("*.json"):
            kept.unlink()
        return desk(model, context__budgets__tools=share)

    return make


def said(talk: Talk, text: str) -> tuple[Replied, list[str]]:
    events = list(talk.stream(text))
    (reply,) = [event for event in events if isinstance(event, Replied)]
    return reply, [event.text for event in events if isinstance(event, Noticed) and "budgets.tools" in event.text]


def tools(at: Desk, reply: Replied) -> dict[str, str]:
    """What was sent of each tool, by its name."""
    body = json.loads(at.rebuild(reply.request))
    return {each["function"]["name"]: json.dumps(each["function"]) for each in body.get("tools", ())}


def size(reply: Replied) -> int:
    return sum(each.tokens for each in reply.window.sections if each.name == "tools")


def share_of(reply: Replied, tokens: int) -> float:
    """The share that gives tools this many tokens."""
    return (tokens + 0.5) / (reply.window.limit - reply.window.reserve)


def test_what_does_not_fit_even_so_is_named_and_the_relevant_ones_stay(harbour: Harbour) -> None:
    offered = [tool(thing) for thing in THINGS]
    whole, _ = said(harbour(0.3, *offered).conversation(), "Count the lamps, please")
    at = harbour(share_of(whole, size(whole) // 2), *offered)
    talk = at.conversation()
    reply, notes = said(talk, "Count the lamps, please")
    found = tools(at, reply)
    assert size(whole) // 3 < size(reply) <= size(whole) // 2, "no more are left out than must be"
    assert "harbour__count_lamps" in found
    missing = {f"count_{thing}" for thing in THINGS} - {name.removeprefix("harbour__") for name in found}
    assert missing
    assert {pick.name for pick in reply.window.not_picked} == missing
    assert all(f"harbour__{name}" in notes[0] for name in missing)
    again, notes = said(talk, "And the lamps now?")
    assert notes == [], "nothing has changed"
    assert at.record(again.request).account.broken_by is None
    assert tools(at, again) == found
    wanted, notes = said(talk, f"Count the {sorted(missing)[0].removeprefix('count_')}, please")
    assert f"harbour__{sorted(missing)[0]}" in tools(at, wanted), "it bears on the message now"
    assert set(found) <= set(tools(at, wanted)), "what was there stays"
    assert len(notes) == 1


def test_tools_that_fit_again_are_offered_again(harbour: Harbour) -> None:
    offered = [tool(thing) for thing in THINGS]
    whole, _ = said(harbour(0.3, *offered).conversation(), "Count the boats")
    at = harbour(share_of(whole, size(whole) // 2), *offered)
    talk = at.conversation()
    first, _ = said(talk, "Count the boats")
    assert 0 < len(tools(at, first)) < len(offered)
    later = harbour(0.3, *offered)  # another process, where all of them would fit
    second, notes = said(later.conversation(talk.id), "Count the cranes")
    assert set(tools(at, first)) <= set(tools(later, second))
    assert "offered again" in notes[0]


def test_more_tools_than_a_provider_takes_are_not_offered(desk: Open, script: Script) -> None:
    at = desk(script({"text": "ok"}, limit=1_000_000))
    resolved = at.run(at.engine.turns.resolve(at.conversation().session))
    tools = [Tool(f"tool_{number}", "", {}, server="many") for number in range(300)]
    offered = [OfferedTool(LocalTool(each, lambda _: ""), Selection(each, "always", "")) for each in tools]
    sizes = dict.fromkeys((each.id for each in tools), 10)
    kept, left_out = ToolFilter(resolved, sizes, {}, (), LastTools()).fit(offered)
    assert [each.runnable.tool for each in kept] == tools[:MOST_TOOLS]
    assert len(left_out) == 300 - MOST_TOOLS
