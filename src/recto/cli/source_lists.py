"""Lists of sources, for people and for programs: what is in a session and how, and what else there is; MCP servers
with what they run. Knows no command."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from recto.cli.agent_show import without_secrets
from recto.cli.badges import badge
from recto.cli.revealed import revealed
from recto.cli.show import counted, shortened, visible, when
from recto.sources.source import OWN, Kind, Tool

if TYPE_CHECKING:
    from recto.servers.state import State
    from recto.sources.server import ServerConfig
    from recto.sources.session import Listed

HEADINGS: dict[Kind, str] = {"rule": "Rules", "reference": "References", "tool": "Tools"}
NONE: dict[Kind, str] = {"rule": "no rules", "reference": "no references", "tool": "no tools"}
MARKS = {True: "●", False: "○"}
LEGEND = "● in the session  ○ available"
APPROVALS = {"ask": "", "allow": "runs unasked", "deny": "never runs"}
STOPPED, OFF, UNTRUSTED = "stopped", "off", "untrusted"
STATES = {"running": "green", "starting": "yellow", "failed": "red", "untrusted": "yellow"}
# A list that nobody reads on a screen is cut nowhere, but a description stays on its line.
UNBOUNDED = 160
LEAST_DESCRIPTION = 12


# -- sources


def to_json(listed: "Listed") -> dict[str, Any]:
    source = listed.source
    out: dict[str, Any] = {"id": str(source.id), "kind": source.kind, "name": source.id.name}
    if isinstance(source, Tool):
        out |= {"server": source.server, "called": source.name, "approval": listed.approval}
    out |= {"include": listed.include, "mode": listed.mode, "since": listed.since, "removed": listed.removed}
    out |= {"enabled": source.enabled, "description": source.description}
    return out if isinstance(source, Tool) else out | {"priority": source.priority, "path": source.path}


def draw(console: Console, whose: str, items: Sequence["Listed"], kinds: Sequence[Kind], servers: "Servers") -> None:
    """Under a heading for each kind, by the names that commands take."""
    console.print(Text(whose, "bold"), soft_wrap=True)
    for kind in kinds:
        some = [each for each in items if each.source.kind == kind]
        inside = sum(each.mode is not None for each in some)
        counts = f"{inside} of {len(some)} in the session" if some else "none"
        console.print()
        console.print(Text.assemble((HEADINGS[kind], "bold"), (f"  {counts}", "dim")))
        draw_items(console, some, whole_ids=True)
    if servers:
        console.print()
        console.print(Text("Servers", "bold"))
        servers.draw(console)
    if items:
        console.print()
        console.print(Text(LEGEND, "dim"))


def draw_items(
    console: Console, items: Sequence["Listed"], *, whole_ids: bool = False, fold: int | None = None, more: str = ""
) -> None:
    """What is in the session first, a line each; of what is merely available the first `fold`, and how many more."""
    inside = [each for each in items if each.mode is not None]
    available = [each for each in items if each.mode is None]
    shown = [*inside, *available[:fold]]
    named = max((cell_len(_name(each, whole_ids)) for each in shown), default=0)
    said = max((cell_len(_how(each)) for each in shown), default=0)
    for each in shown:
        _print(console, _row(each, whole_ids, min(named, console.width // 2), said, _room(console)))
    if rest := len(items) - len(shown):
        _print(console, Text(f"… and {rest} more{more}", "dim"))


def _row(listed: "Listed", whole_ids: bool, named: int, said: int, room: int) -> Text:
    inside = listed.mode is not None
    name, how = _name(listed, whole_ids), _how(listed)
    row = Text.assemble(
        (MARKS[inside], "green" if inside else "dim"),
        " ",
        (_padded(name, named), "" if inside else "dim"),
        "  ",
        *_badge(listed),
        "  " if said else "",
        _padded(how, said),
    )
    if (left := room - row.cell_len - 2) >= LEAST_DESCRIPTION:
        description = Text(shortened(listed.source.description, left), "dim")
        description.truncate(left, overflow="ellipsis")
        row.append("  ").append_text(description)
    row.rstrip()
    return row


def _badge(listed: "Listed") -> tuple[Text, str]:
    """How it came in; of what is merely available, how it would."""
    found = badge({"mode": listed.mode or listed.include})
    return found if listed.source.enabled else Text(found.plain, "dim"), " " * (len("[Always]") - len(found))


def _name(listed: "Listed", whole_id: bool) -> str:
    id = listed.source.id
    name = str(id) if whole_id else f"{id.server}/{id.name}" if id.server else id.name
    return revealed(name)


def _how(listed: "Listed") -> str:
    """What the badge does not tell."""
    if not listed.source.enabled:
        return "not enabled"
    since = f" {_moment(listed.since)}" if listed.since else ""
    by_hand = f"added{since}" if listed.mode == "manual" else f"taken out{since}" if listed.removed else ""
    return ", ".join(filter(None, (by_hand, APPROVALS[listed.approval or "ask"])))


def _moment(since: str) -> str:
    """A time as it is kept; what is no time was written by somebody else, and is shown as it is."""
    try:
        return when(since)
    except ValueError:
        return shortened(since, 20)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))


def _room(console: Console) -> int:
    return console.width if console.is_terminal else UNBOUNDED


def _print(console: Console, line: Text) -> None:
    # programs read lines, people read words: only for them is a long line broken
    console.print(line, soft_wrap=not console.is_terminal)


# -- servers


class Servers:
    """The MCP servers of an agent, our own aside, with how it goes with each."""

    def __init__(self, configs: Sequence["ServerConfig"], states: Iterable["State"]) -> None:
        known = {state.name: state for state in states}
        self._known = [(each, known.get(each.name)) for each in configs if each.name != OWN]

    def __bool__(self) -> bool:
        return bool(self._known)

    def to_json(self) -> Iterator[dict[str, Any]]:
        for config, state in self._known:
            yield {
                "kind": "server",
                "name": config.name,
                "state": _at(config, state),
                "because": state.why if state else "",
                "tools": state.tools if state else None,
                "runs": runs(config),
                "approval": config.approval or "ask",
                "is_yours": config.is_yours,
                "origin": config.origin,
            }

    def draw(self, console: Console) -> None:
        """Each with what it runs, and which file says so."""
        for config, state in self._known:
            at = _at(config, state)
            tools = f", {counted(state.tools, 'tool')}" if state and state.tools else ""
            why = f": {visible(state.why)}" if state and state.why else ""
            _print(console, Text.assemble(revealed(config.name), "  ", (at, STATES.get(at, "dim")), f"{tools}{why}"))
            _print(console, Text(f"  {runs(config)}", "dim"))
            if at == UNTRUSTED and (unasked := unasked_in_words(config)):
                _print(console, Text(f"  {unasked}", "yellow"))
            _print(console, Text(f"  from {visible(config.origin)}", "dim"))


def _at(config: "ServerConfig", state: "State | None") -> str:
    return OFF if not config.enabled else state.state if state else STOPPED


def runs(config: "ServerConfig", *, whole: bool = False) -> str:
    """The command line, or the address; of variables and headers the names. What looks like a key is hidden, unless
    somebody has to judge the `whole`: that is with values, as they are written."""
    url, *args = (config.url, *config.args) if whole else without_secrets((config.url, *config.args))
    if config.url:
        headers = (f"{name}: {value}" if whole else name for name, value in config.headers.items())
        return revealed(f"{url}{' with the headers ' if config.headers else ''}{', '.join(headers)}")
    env = (f"{name}={shlex.quote(value) if whole else '…'}" for name, value in config.env.items())
    line = [*env, shlex.join((config.command, *args))]
    return revealed(" ".join((*line, *(("in", config.cwd) if config.cwd else ()))))


def unasked_in_words(config: "ServerConfig") -> str:
    """Which of its tools would run without asking; empty where none would."""
    asked = [name for name in config.tools if config.approval_of(name) != "allow"]
    if config.approval == "allow":
        return "its tools run without asking" + (f", but for {revealed(', '.join(asked))}" if asked else "")
    unasked = [name for name in config.tools if name not in asked]
    return f"without asking run {revealed(', '.join(unasked))}" if unasked else ""


def starting_in_words(states: Iterable["State"]) -> str:
    """Which servers are on their way; empty when none is."""
    names = [state.name for state in states if state.state == "starting"]
    return f"starting {shortened(', '.join(names), 60)}" if names else ""
