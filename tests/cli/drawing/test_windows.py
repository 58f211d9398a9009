"""Windows and records as people see them, whoever wrote them."""

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from recto.cli.drawing.requests import draw_request
from recto.cli.drawing.windows import draw_window


def pick(kind: str, name: str, mode: str = "always", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "name": name, "tokens": 10, "because": "asked for", "mode": mode, "score": None, **more}


def section(name: str, *picks: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "tokens": sum(each["tokens"] for each in picks), "budget": 500, "picks": list(picks)}


RECORD: dict[str, Any] = {
    "id": "01R",
    "conversation": "01C",
    "message": "01M",
    "purpose": "reply",
    "created": "2026-01-31T12:00:00.000Z",
    "sha256": "00",
    "size": 900,
    "pieces": 7,
    "model": "openai:gpt-5",
    "parameters": {"max_tokens": 5},
    "limit": 4000,
    "reserve": 512,
    "total": 100,
    "free": 3388,
    "exact": True,
    "strategy": "hybrid",
    "sections": [
        section("system", pick("system", "system prompt")),
        section("rules", pick("rule", "style"), pick("rule", "tone", "manual")),
        section("tools", *(pick("tool", f"tool{n}", "manual", server="files") for n in range(20))),
        section("history", pick("messages", "01A…01B")),
        section("sources", pick("rule", "errors", "agent", score=0.871), pick("reference", "api", "agent", score=0.92)),
        section("documents", pick("document", "Boat.md")),
        section("message", pick("message", "01M")),
    ],
    "plan": {
        "strategy": "hybrid",
        "because": "everything fits",
        "kept": {"first": "01A", "last": "01B", "count": 2, "tokens": 9},
        "lifted": [{"messages": ["01A"], "tokens": 3, "because": "pinned"}],
        "bands": [{"name": "high", "budget": 10, "tokens": 2}],
        "excerpts": {"01A": 64},
    },
    "messages": {"first": "01A", "last": "01B", "count": 2, "lifted": [], "current": "01M", "rounds": ["01X"]},
    "prefix": {"base": "01Q", "kept": 2, "of": 3, "broken_by": "another model"},
    "not_picked": [
        pick("reference", "billing", "agent", score=0.34, because="0.34 is under the floor of 0.4"),
        pick("rule", "tests", "agent", score=0.61, because="did not fit: 900 tokens"),
        pick("message", "01Z", "agent", score=0.5, because="#3, holds mast"),
    ],
    "notes": ["the window is unknown"],
    "usage": {"input": 100, "output": 5, "cache_read": 40},
    "attempts": [{"error": "gone", "wait_s": 1.0}],
    "used": [
        {"kind": "rule", "name": "errors", "server": "", "sign": "quoted", "detail": "retry"},
        {"kind": "tool", "name": "tool19", "server": "files", "sign": "called", "detail": ""},
    ],
    "reply": "01Y",
    "finish": "stop",
}


def drawn(record: dict[str, Any], width: int = 100, **how: Any) -> str:
    out = StringIO()
    draw_request(Console(file=out, width=width), record, **how)
    return out.getvalue()


def lines(shown: str) -> list[str]:
    return [" ".join(line.split()) for line in shown.splitlines()]


def test_sources_are_grouped_with_badges_tokens_and_because() -> None:
    shown = lines(drawn(RECORD))
    assert "3 rules (1 agent, 2 always)" not in shown
    assert "3 rules (1 agent, 1 always, 1 manual), 1 reference (agent), 20 tools (all manual)" in shown
    at = shown.index("Rules (3)")
    assert shown[at + 1 : at + 6] == [
        "style [Always] asked for 10",
        "tone [Manual] asked for 10",
        "errors [Agent 0.87] asked for · used: quoted 10",
        "References (1)",
        "api [Agent 0.92] asked for 10",
    ]
    assert "files:tool0 [Manual] asked for 10" in shown


def test_a_long_list_is_folded_and_what_was_used_stays() -> None:
    shown = lines(drawn(RECORD))
    assert "and 12 more; --all shows them 120" in shown
    assert "files:tool19 [Manual] asked for · used: called 10" in shown
    assert "files:tool7 [Manual] asked for 10" not in shown
    whole = drawn(RECORD, whole=True)
    assert "more; " not in whole
    assert all(f"files:tool{n} " in whole for n in range(20))


def test_it_is_readable_at_eighty_columns_and_in_colour() -> None:
    assert all(len(line) <= 80 for line in drawn(RECORD, 80).splitlines())
    out = StringIO()
    draw_window(Console(file=out, width=80, force_terminal=True, color_system="standard"), RECORD)
    assert "\x1b[35m[Agent 0.87]" in out.getvalue()
    assert "[Agent 0.87]" in drawn(RECORD, 80)
    assert "\x1b" not in drawn(RECORD, 80)


@pytest.mark.parametrize("width", [50, 80, 200])
def test_bars_are_scaled_to_the_screen_and_never_folded(width: int) -> None:
    full = {**RECORD, "reserve": 0, "free": 4000, "total": 0}
    shown = drawn(full, width).splitlines()
    (free,) = (line for line in shown if line.count("█") > 3)
    name, bar, size = free.split()
    assert (name, size) == ("free", "4,000")
    assert bar == "█" * min(28, width // 3)
