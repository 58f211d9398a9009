"""Questions to the user about tools, servers, facts and compactions. Knows no engine."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from recto.chat.blocks import Compaction
from recto.chat.compaction_words import block_in_words
from recto.cli.drawing.sources import server_facts
from recto.cli.drawing.transcripts import remarks
from recto.cli.drawing.windows import rule
from recto.cli.screen import Page
from recto.cli.show import counted, shortened, visible
from recto.cli.terminal import edited, forget_keys, revealed
from recto.errors import Invalid
from recto.events import Answer, ApprovalAsked, CompactionProposed, Event, FactProposed

if TYPE_CHECKING:
    from recto.sources.server_config import ServerConfig
    from recto.sources.tool_definition import ToolChange

# Rows for the question and its frame, and the minimum for the arguments. Texts in them are cut at LONGEST.
AROUND, LEAST_ROWS, LONGEST = 8, 6, 300
APPROVAL_ANSWERS: dict[str, Answer] = {
    **dict.fromkeys(("y", "yes"), "allowed"),
    **dict.fromkeys(("a", "always"), "always"),
    **dict.fromkeys(("", "n", "no"), "denied"),
}
SHOW_ALL = ("s", "show", "show all")


def answer(console: Console, event: Event) -> None:
    """Ask the user an event's question, if it has one."""
    match event:
        case ApprovalAsked():
            {"allowed": event.allow, "always": event.allow_always, "denied": event.deny}[ask_approval(console, event)]()
        case FactProposed():
            wanted = said_yes(console, f"remember “{shortened(event.text, 80)}”? [y]es / [N]o ")
            event.accept() if wanted else event.refuse()
        case CompactionProposed():
            summary = ask_compaction(console, event.block)
            event.refuse() if summary is None else event.accept(summary)


# -- may this tool run?


def ask_approval(console: Console, event: ApprovalAsked) -> Answer:
    """Ask for approval; end of input means no. Ctrl-C raises KeyboardInterrupt."""
    raw, diff = event.call.arguments, _diff_text(event.change)
    is_cut = _show_call(console, event, pretty(raw, LONGEST), diff, pretty(raw))
    forget_keys()
    always = "as it is now" if event.change else "in this conversation"
    while True:
        more = "[s]how all / " if is_cut else ""
        try:
            said = console.input(Text(f"run it? [y]es / [a]lways {always} / {more}[N]o ", "bold")).strip().lower()
        except EOFError:
            console.print()
            return "denied"
        if said in APPROVAL_ANSWERS:
            return APPROVAL_ANSWERS[said]
        if said in SHOW_ALL and is_cut:
            is_cut = False
            console.print(Text("\n".join(filter(None, (diff, pretty(raw))))))


def _diff_text(change: "ToolChange | None") -> str:
    return revealed("\n".join(change.lines), "\n") if change else ""


def _show_call(console: Console, event: ApprovalAsked, shown: str, diff: str, whole: str) -> bool:
    """Show what would run, cut to what a screen holds. True if something is cut."""
    tool, most = event.tool, max(LEAST_ROWS, console.size.height - AROUND)
    console.print(rule(revealed(f"{tool.server} wants to run {tool.own_name or tool.name}"), console.width))
    if described := shortened(revealed(tool.description, "\n\t"), console.width):
        console.print(Text(described, "dim"))
    if event.change:
        console.print(Text(revealed(event.change.text), "yellow"))
    is_cut = False
    for text, complete in ((diff, diff), (shown, whole)):
        rows = [row.plain for row in Text(text).wrap(console, console.width, overflow="fold")] if text else []
        console.print(Text("\n".join(rows[:most])), end="\n" if rows else "")
        if len(rows) > most or text != complete:
            console.print(Text(f"… cut: {counted(len(complete), 'character')} in all", "yellow"))
            is_cut = True
    return is_cut


def pretty(raw: str, longest: int | None = None) -> str:
    """Arguments as indented JSON with texts cut at `longest`, so that they cannot push other values off the screen;
    unchanged if they are not JSON."""
    try:
        said = json.dumps(_cut(json.loads(raw or "{}"), longest), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        said = _cut(raw, longest)
    return revealed(said, "\n")


def _cut(value: Any, longest: int | None) -> Any:
    if isinstance(value, str) and longest is not None and len(value) > longest:
        return f"{value[:longest]}… ({len(value) - longest:,} more)"
    if isinstance(value, list):
        return [_cut(each, longest) for each in value]
    if isinstance(value, dict):
        return {key: _cut(each, longest) for key, each in value.items()}
    return value


# -- may this server run?


def ask_trust(console: Console, config: "ServerConfig") -> bool:
    show_server(console, config)
    return said_yes(console, "let it run? [y]es / [N]o ")


def show_server(console: Console, config: "ServerConfig") -> None:
    """Show everything that the user would trust."""
    console.print(rule(revealed(f"{config.name} is an MCP server of this project"), console.width))
    for name, value in server_facts(config).items():
        console.print(Text(f"  {name:<8} {revealed(value)}"), soft_wrap=not console.is_terminal)


def ask_changes(console: Console, changes: "Sequence[ToolChange]", *, is_at_terminal: bool) -> bool:
    """True if the user accepts the changed tools, or there is no terminal: then running the command is the consent."""
    for change in changes:
        console.print(Text(revealed(change.text), "yellow"), soft_wrap=not console.is_terminal)
        console.print(Text(_diff_text(change)), soft_wrap=not console.is_terminal)
    return not is_at_terminal or said_yes(console, "accept them as they are now? [y]es / [N]o ")


def said_yes(console: Console, question: str) -> bool:
    """Ask; Ctrl-C and end of input mean no."""
    forget_keys()
    try:
        return console.input(Text(visible(question), "bold")).strip().lower() in ("y", "yes")
    except (KeyboardInterrupt, EOFError):
        console.print()
        return False


# -- should this compaction be made?


def ask_compaction(console: Console, block: Compaction) -> str | None:
    """The summary to use, as proposed or edited; None for not now, as for Ctrl-C and end of input."""
    console.print(rule(f"to be compacted: {block.because}", console.width))
    console.print(Page(visible(block.summary) or "(no summary: the messages are only archived)"))
    console.print(Text(visible(block_in_words(block)), "dim"))
    for line in remarks(block.notes, len(block.excerpts), block.checks):
        console.print(Text(f"· {visible(line)}", "dim"))
    forget_keys()
    try:
        while (said := console.input(Text("use it? [Y]es / [e]dit / [n]ot now ", "bold")).strip().lower()[:1]) != "n":
            if said in ("", "y"):
                return block.summary
            if said == "e" and (changed := _edited_summary(console, block.summary)):
                return changed
    except (KeyboardInterrupt, EOFError):
        console.print()
    return None


def _edited_summary(console: Console, summary: str) -> str | None:
    """The edited summary; None or empty, with a note to the user, if it cannot be used."""
    try:
        changed = edited(summary)
    except Invalid as why:
        console.print(Text(visible(why.message), "red"))
        return None
    if not changed:
        console.print(Text("it is unchanged" if changed is None else "an empty summary says nothing", "dim"))
    return changed
