"""Listing: the tools of a server as it lists them, checked: what a model cannot be told is left out, with a sentence
that says so. Schemas pass untouched: never resolved, never walked."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recto.text import clean

LONGEST_DESCRIPTION = 8_000
LARGEST_SCHEMA = 100_000
MOST_TOOLS = 2_000
"""Nobody offers that many; a list without an end must end somewhere."""
_MOST_NOTES = 5


@dataclass(frozen=True, slots=True)
class Listed:
    """A tool, as its server names it."""

    name: str
    description: str
    schema: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, "schema": self.schema}


@dataclass(frozen=True, slots=True)
class Listing:
    tools: tuple[Listed, ...] = ()
    notes: tuple[str, ...] = ()


def check(server: str, raw: Sequence[object]) -> Listing:
    """The tools that can be offered, in their order."""
    tools: dict[str, Listed] = {}
    notes: list[str] = []
    for number, each in enumerate(raw[:MOST_TOOLS], 1):
        tool, because = _checked(each, number)
        if tool and tools.setdefault(tool.name, tool) is not tool:
            because = f"{tool.name} is there twice: the first is offered"
        if because:
            notes.append(f"a tool of the MCP server {server}: {because}")
    if len(raw) > MOST_TOOLS:
        notes.append(f"the MCP server {server} has {len(raw):,} tools: the first {MOST_TOOLS:,} are offered")
    return Listing(tuple(tools.values()), _few(server, notes))


def _checked(raw: object, number: int) -> tuple[Listed | None, str]:
    """The tool, and what is to be told of it, if anything."""
    if not isinstance(raw, dict):
        return None, f"number {number} is not an object: left out"
    name = raw.get("name")
    if not isinstance(name, str) or not name.strip():
        return None, f"number {number} has no name: left out"
    name, replaced = clean(name)
    if replaced or len(name) > 1_000:
        return None, f"number {number} has a name that cannot be used: left out"
    schema = raw.get("inputSchema")
    if not isinstance(schema, dict):
        return None, f"{name} has a schema that is not an object: left out"
    if because := _unfit(schema):
        return None, f"{name} has {because}: left out"
    return Listed(name, _description(raw), schema), ""


def _unfit(schema: dict[str, Any]) -> str:
    try:
        size = len(json.dumps(schema, ensure_ascii=False, allow_nan=False).encode())
    except RecursionError:
        return "a schema nested too deeply"
    except ValueError:
        return "a schema that is not valid JSON"
    return f"a schema of {size:,} bytes, more than {LARGEST_SCHEMA:,}" if size > LARGEST_SCHEMA else ""


def _description(raw: dict[str, Any]) -> str:
    told = raw.get("description") or raw.get("title") or ""
    text = clean(told)[0].strip() if isinstance(told, str) else ""
    return text if len(text) <= LONGEST_DESCRIPTION else text[: LONGEST_DESCRIPTION - 1] + "…"


def _few(server: str, notes: list[str]) -> tuple[str, ...]:
    more = len(notes) - _MOST_NOTES
    if more <= 0:
        return tuple(notes)
    return (*notes[:_MOST_NOTES], f"of more tools of the MCP server {server} there is as much to say: {more:,}")
