"""Lists of sources in a conversation and available ones, MCP servers with what they run, use statistics."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from recto.cli.drawing.windows import badge
from recto.cli.show import counted, shortened, visible, when
from recto.cli.terminal import revealed
from recto.sources.source import BUILT_IN_SERVER, DEFAULT_AGENT, SourceKind, Tool

if TYPE_CHECKING:
    from recto.api.source_changes import ApprovalChange, IncludeChange
    from recto.mcp.server_connection import ServerStatus
    from recto.reports.source_report import SourceReport
    from recto.sources.advice import Advice, SourceStats
    from recto.sources.overrides import SourceStatus
    from recto.sources.server_config import ServerConfig

LEGEND = "● in this conversation  ○ available"
APPROVALS = {"ask": "", "allow": "runs without asking", "deny": "never runs"}
STATES = {"running": "green", "starting": "yellow", "failed": "red", "untrusted": "yellow"}
DESCRIPTION_WIDTH, LEAST_DESCRIPTION = 60, 12


# -- sources


def source_to_json(listed: "SourceStatus") -> dict[str, Any]:
    source = listed.source
    out: dict[str, Any] = {"id": str(source.id), "kind": source.kind, "name": source.id.name}
    if isinstance(source, Tool):
        out |= {"server": source.server, "called": source.name, "approval": listed.approval}
        out |= {"change": listed.change.text} if listed.change else {}
    out |= {"include": listed.include, "mode": listed.mode, "since": listed.since, "removed": listed.removed}
    out |= {"enabled": source.enabled, "description": source.description}
    return out if isinstance(source, Tool) else out | {"priority": source.priority, "path": source.path}


def draw_source_list(
    console: Console, whose: str, items: Sequence["SourceStatus"], kinds: Sequence[SourceKind], servers: "ServerList"
) -> None:
    """Grouped by kind, with the names that commands take."""
    console.print(Text(whose, "bold"), soft_wrap=not console.is_terminal)
    for kind in kinds:
        some = [each for each in items if each.source.kind == kind]
        inside = sum(each.mode is not None for each in some)
        counts = f"{inside} of {len(some)} in this conversation" if some else "none"
        console.print()
        console.print(Text.assemble((f"{kind.capitalize()}s", "bold"), (f"  {counts}", "dim")))
        draw_items(console, some, whole_ids=True)
    if servers:
        console.print()
        console.print(Text("Servers", "bold"))
        servers.draw(console)
    if items:
        console.print()
        console.print(Text(LEGEND, "dim"))


def draw_items(
    console: Console,
    items: Sequence["SourceStatus"],
    *,
    whole_ids: bool = False,
    fold: int | None = None,
    more: str = "",
) -> None:
    """A line for each source in the conversation, then for the first `fold` others, and the number of the rest."""
    inside = [each for each in items if each.mode is not None]
    shown = [*inside, *[each for each in items if each.mode is None][:fold]]
    named = max((cell_len(_name(each, whole_ids)) for each in shown), default=0)
    for each in shown:
        is_in, name, found = each.mode is not None, _name(each, whole_ids), badge({"mode": each.mode or each.include})
        padding = " " * (min(named, console.width // 2) - cell_len(name)), " " * (len("[Always]") - len(found))
        how, room = _how(each), console.width - named - 16 if console.is_terminal else DESCRIPTION_WIDTH
        description = shortened(each.source.description, max(LEAST_DESCRIPTION, room - cell_len(how)))
        details = "  ".join(filter(None, (how, description)))
        row = Text.assemble(("●" if is_in else "○", "green" if is_in else "dim"), " ", (name, "" if is_in else "dim"))
        row.append(f"{padding[0]}  ").append_text(found).append(f"{padding[1]}  ").append(details, "dim")
        row.rstrip()
        _print(console, row)
    if rest := len(items) - len(shown):
        _print(console, Text(f"… and {rest} more{more}", "dim"))


def _name(listed: "SourceStatus", whole_id: bool) -> str:
    id = listed.source.id
    return revealed(str(id) if whole_id else f"{id.server}/{id.name}" if id.server else id.name)


def _how(listed: "SourceStatus") -> str:
    """Details that the badge lacks."""
    if not listed.source.enabled:
        return "not enabled"
    since = f" {when(listed.since)}" if listed.since else ""
    by_hand = f"added{since}" if listed.mode == "manual" else f"taken out{since}" if listed.removed else ""
    asks = "has changed: asks" if listed.change else APPROVALS[listed.approval or "ask"]
    return ", ".join(filter(None, (by_hand, asks)))


def _print(console: Console, line: Text) -> None:
    # lines are folded only for people
    console.print(line, soft_wrap=not console.is_terminal)


# -- servers


class ServerList:
    """An agent's MCP servers with their state, except the built-in one."""

    def __init__(self, configs: Sequence["ServerConfig"], states: Iterable["ServerStatus"]) -> None:
        known = {state.name: state for state in states}
        self._known = [(each, known.get(each.name)) for each in configs if each.name != BUILT_IN_SERVER]

    def __bool__(self) -> bool:
        return bool(self._known)

    def to_json(self) -> Iterator[dict[str, Any]]:
        for config, state in self._known:
            yield {
                "kind": "server",
                "name": config.name,
                "state": _at(config, state),
                "because": state.reason if state else "",
                "tools": state.tools if state else None,
                "runs": runs(config),
                "approval": config.approval or "ask",
                "is_yours": config.is_yours,
                "origin": config.origin,
            }

    def draw(self, console: Console) -> None:
        """Draw each with what it runs and the file that says so."""
        for config, state in self._known:
            at = _at(config, state)
            tools = f", {counted(state.tools, 'tool')}" if state and state.tools else ""
            why = f": {visible(state.reason)}" if state and state.reason else ""
            _print(console, Text.assemble(revealed(config.name), "  ", (at, STATES.get(at, "dim")), f"{tools}{why}"))
            _print(console, Text(f"  {runs(config)}", "dim"))
            if at == "untrusted" and (unasked := unasked_in_words(config)):
                _print(console, Text(f"  {unasked}", "yellow"))
            _print(console, Text(f"  from {visible(config.origin)}", "dim"))


def _at(config: "ServerConfig", state: "ServerStatus | None") -> str:
    return "off" if not config.enabled else state.state if state else "stopped"


def runs(config: "ServerConfig", *, whole: bool = False) -> str:
    """The server's command or address; `whole` includes all values as written, for a user who has to judge it."""
    if not whole:
        return revealed(config.runs)
    if config.url:
        headers = ", ".join(f"{name}: {value}" for name, value in config.headers.items())
        return revealed(f"{config.url}{' with the headers ' if headers else ''}{headers}")
    env = (f"{name}={shlex.quote(value)}" for name, value in config.env.items())
    line = [*env, shlex.join((config.command, *config.args))]
    return revealed(" ".join((*line, *(("in", config.cwd) if config.cwd else ()))))


def unasked_in_words(config: "ServerConfig") -> str:
    """The tools that would run without asking; empty if there are none."""
    asked = [name for name in config.tools if config.approval_of(name) != "allow"]
    if config.approval == "allow":
        return "its tools run without asking" + (f", but for {revealed(', '.join(asked))}" if asked else "")
    unasked = [name for name in config.tools if name not in asked]
    return f"these run without asking: {revealed(', '.join(unasked))}" if unasked else ""


def server_facts(config: "ServerConfig") -> dict[str, str]:
    """Everything that a user trusts, by name."""
    facts = {"runs": runs(config, whole=True), "asks": unasked_in_words(config), "said in": config.origin}
    return {name: value for name, value in facts.items() if value}


# -- use statistics


def stats_to_json(stat: "SourceStats", advice: Sequence["Advice"]) -> dict[str, Any]:
    given = [{"because": each.because, "mode": each.mode, "command": each.command(with_agent=True)} for each in advice]
    return {"source": str(stat.id), **to_builtins(stat), "used": stat.used, "advice": given}


def draw_source_report(console: Console, report: "SourceReport") -> None:
    several = len({stat.agent for stat in report.stats}) > 1
    for stat in report.stats:
        signs = ((stat.called, "called"), (stat.quoted, "quoted"), (stat.paraphrased, "paraphrased"))
        used = ", ".join(f"{count:,} {sign}" for count, sign in signs if count)
        replies = f"in {stat.replies:,} {'reply' if stat.replies == 1 else 'replies'}"
        last = f"last {when(stat.last_used)[:10]}" if stat.last_used else ""
        told = (stat.mode, replies, used or ("no signs" if stat.looked else "not looked at"), f"{stat.tokens:,} tokens")
        _print(console, Text(visible(str(stat.id) + (f" · {stat.agent}" if several else ""))))
        _print(console, Text(f"  {' · '.join(filter(None, (*told, last)))}", "dim"))
    if report.advice:
        console.print("\nSuggestions", style="bold")
    for each in report.advice:
        command = each.command(with_agent=several or each.agent != DEFAULT_AGENT)
        _print(console, Text(f"· {visible(each.because)}"))
        _print(console, Text(f"  {visible(command)}", "cyan"))


def include_in_words(change: "IncludeChange") -> str:
    how = {"always": "always", "manual": "by hand", "agent": "when a message needs it"}[change.include]
    return f"{change.name} comes in {how} from now on: {change.file} says so for agent {change.agent}"


def approval_in_words(change: "ApprovalChange") -> str:
    if change.asks:
        return f"{revealed(change.tool)} asks again before it runs"
    file = revealed(change.allowed_by)
    return f"{revealed(change.tool)} still runs without asking, as `approval` in {file} says"
