"""The text of an agent.toml with a setting or an include mode changed; comments and order stay. Writes nothing."""

import re
import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from recto import toml_file
from recto.agents.agent_file import PROMPTS, STRATEGY, check
from recto.agents.front import key_of
from recto.errors import Invalid
from recto.sources.source import Include, SourceId

# Two names for one thing: whichever a file has is the one that is changed.
_SHORT = {STRATEGY: "strategy"}
_ANY_TABLE = re.compile(r"^(?:#[ \t]*)?\[", re.MULTILINE)


def with_setting(text: str, path: Path, key: str, value: Any) -> str:
    """Checked; Invalid names what is allowed."""
    key, typed = check(key, value, str(path))
    here = _table(text, path)
    name = _written(key, here)
    if key in PROMPTS:
        # a prompt is one thing, whichever way it is given
        text = _without(text, path, PROMPTS[1 - PROMPTS.index(key)])
        here = _table(text, path)
    in_place = _in_place(text, here, name, typed) if name not in here and "." not in name else None
    return in_place or toml_file.with_value(text, path, name.split("."), typed)


def _written(key: str, here: dict[str, Any]) -> str:
    """The name that the file has for it; where it has both, the longer one counts."""
    short, long = _SHORT.get(key), here.get("context")
    is_long = isinstance(long, dict) and key.removeprefix("context.") in long
    return short if short in here and short and not is_long else key


def _in_place(text: str, here: dict[str, Any], name: str, value: Any) -> str | None:
    """A key of no table put where a line shows it as an example, or before the tables that are commented out: behind
    them it would be swallowed by the first that is not any more. None where there is nothing of the kind."""
    import tomlkit  # only to write a file

    line = f"{name} = {tomlkit.item(value).as_string()}"
    table = _ANY_TABLE.search(text)
    end = table.start() if table else len(text)
    example = re.compile(rf"^#[ \t]*{name}[ \t]*=.*$", re.MULTILINE).search(text, 0, end)
    if example is None and (table is None or text[end] != "#"):
        return None
    place = example.span() if example else (end, end)
    changed = f"{text[: place[0]]}{line}{'' if example else chr(10) * 2}{text[place[1] :]}"
    try:
        return changed if tomllib.loads(changed) == {**here, name: value} else None
    except tomllib.TOMLDecodeError:  # the line was part of a text, not an example
        return None


def without_setting(text: str, path: Path, key: str) -> str | None:
    """None when the file does not say it."""
    changed = None
    for name in filter(None, (key, _SHORT.get(key))):
        shorter = toml_file.without(text if changed is None else changed, path, name.split("."))
        changed = shorter if shorter is not None else changed
    return changed


def with_include(text: str, path: Path, id: SourceId, include: Include, servers: Collection[str]) -> str:
    """`id` without a name means a server as a whole. A line that means the same is changed rather than doubled."""
    table = _table(text, path).get("include")
    written = [each for each in table if _same(each, id, servers)] if isinstance(table, dict) else []
    for doubled in written[1:]:
        text = _without(text, path, "include", doubled)
    return toml_file.with_value(text, path, ["include", written[0] if written else str(id).rstrip("/")], include)


def meant(written: str, servers: Collection[str]) -> SourceId:
    """What a line of [include] means: a tool without a server is a server of that name, or else one of ours."""
    id = SourceId.parse(written)
    alone = written.partition(":")[2]
    return SourceId("tool", "", alone) if id.kind == "tool" and alone in servers else id


def _same(written: str, id: SourceId, servers: Collection[str]) -> bool:
    try:
        other = meant(written, servers)
    except Invalid:
        return False
    if id.kind == "tool":
        return other == id
    return other.kind == id.kind and key_of(other.name) == key_of(id.name)


def _without(text: str, path: Path, *names: str) -> str:
    changed = toml_file.without(text, path, names)
    return text if changed is None else changed


def _table(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as why:
        raise Invalid(f"{path} is not valid TOML: {why}; mend it first", file=str(path)) from why
