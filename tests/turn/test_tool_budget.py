"""Tools that take more than their share of the window: first shortened, then left out, and the user is told."""

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
from recto.sources.tools import LocalTool, short_form
from recto.turn.session import LastTools
from recto.turn.source_picker import MOST_TOOLS, ToolFilter, sized_tools

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


def test_a_little_too_much_shortens_some_and_leaves_out_none(harbour: Harbour) -> None:
    offered = [tool(thing) for thing in THINGS]
    whole, notes = said(harbour(0.3, *offered).conversation(), "Count the boats, please")
    assert notes == []
    at = harbour(share_of(whole, size(whole) - 50), *offered)
    reply, notes = said(at.conversation(), "Count the boats, please")
    found = tools(at, reply)
    short = [name for name, text in found.items() if OUTSIDE.strip() not in text]
    assert len(found) == len(THINGS)
    assert len(short) == 1
    assert short != ["harbour__count_boats"], "the one that bears on the message is whole"
    assert size(reply) <= size(whole) - 50
    assert len(notes) == 1
    assert "1 tool offered in a shorter form" in notes[0]
    assert any("budgets.tools" in note for note in at.record(reply.request).account.notes or ())


def test_what_does_not_fit_even_so_is_named_and_the_relevant_ones_stay(harbour: Harbour) -> None:
    offered = [tool(thing) for thing in THINGS]
    whole, _ = said(harbour(0.3, *offered).conversation(), "Count the lamps, please")
    at = harbour(share_of(whole, size(whole) // 5), *offered)
    talk = at.conversation()
    reply, notes = said(talk, "Count the lamps, please")
    found = tools(at, reply)
    assert size(whole) // 10 < size(reply) <= size(whole) // 5, "no more are left out than must be"
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


def test_a_short_form_stays_until_the_next_compaction(harbour: Harbour) -> None:
    offered = [tool(thing) for thing in THINGS]
    whole, _ = said(harbour(0.3, *offered).conversation(), "Count the boats")
    at = harbour(share_of(whole, size(whole) // 2), *offered)
    talk = at.conversation()
    first, _ = said(talk, "Count the boats")
    later = harbour(0.3, *offered)  # another process, where all of them would fit
    talk = later.conversation(talk.id)
    second, notes = said(talk, "Count the cranes")
    assert tools(later, second) == tools(at, first)
    assert (notes, later.record(second.request).account.broken_by) == ([], None)
    talk.clear()
    third, notes = said(talk, "Count the docks")
    assert all(OUTSIDE.strip() in text for text in tools(later, third).values())
    assert len(notes) == 1
    assert "offered again" in notes[0]


def test_a_short_form_keeps_what_a_call_needs() -> None:
    nested = {"type": "array", "items": {"$ref": "#/$defs/day", "title": "Day"}}
    day = {"type": "string", "enum": ["title", "examples"], "default": {"title": "x"}, "examples": ["Monday"]}
    schema = {
        "type": "object",
        "properties": {"title": {"type": "string", "description": "What it is called. " * 9}, "days": nested},
        "required": ["title"],
        "$defs": {"day": day},
    }
    short = short_form(Tool("book", "Books a berth.\n\nOnly in summer.", schema))
    assert short.description == "Books a berth."
    assert short.schema["properties"]["title"] == {"type": "string"}
    assert short.schema["properties"]["days"]["items"] == {"$ref": "#/$defs/day"}
    assert short.schema["$defs"]["day"] == {name: day[name] for name in ("type", "enum", "default")}
    assert short.schema["required"] == ["title"]
    assert short_form(short) == short


def test_more_tools_than_a_provider_takes_are_not_offered(desk: Open, script: Script) -> None:
    at = desk(script({"text": "ok"}, limit=1_000_000))
    resolved = at.run(at.engine.turns.resolve(at.conversation().session))
    tools = [Tool(f"tool_{number}", "", {}, server="many") for number in range(300)]
    offered = [OfferedTool(LocalTool(each, lambda _: ""), Selection(each, "always", "")) for each in tools]
    tool_filter = ToolFilter(resolved, {}, (), LastTools())
    kept = tool_filter.fit(at.run(sized_tools(resolved, offered, {})))
    assert [each.runnable.tool for each in kept] == tools[:MOST_TOOLS]
    assert len(tool_filter.passed) == 300 - MOST_TOOLS
    assert "and 164 more" in tool_filter.note
