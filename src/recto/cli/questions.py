"""Questions to the user about tools, servers and compactions; and the listener for screen readers, which asks them
between whole lines. Knows no engine."""

import json
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console
from rich.text import Text

from recto.chat.blocks import Compaction
from recto.chat.compaction_words import block_in_words
from recto.cli.drawing.sources import server_facts
from recto.cli.drawing.transcripts import remarks, work_in_words
from recto.cli.drawing.windows import rule
from recto.cli.listener import KEPT, Lines, Numbered, tool_named
from recto.cli.markdown import Page
from recto.cli.options import has_keyboard
from recto.cli.show import counted, say, shortened, visible
from recto.cli.terminal import edited, forget_keys, revealed
from recto.errors import Invalid
from recto.events import Answer, ApprovalAsked, CompactionProposed, Event, FactProposed, Sent, ToolStarted, Working

if TYPE_CHECKING:
    from recto.sources.server_config import ServerConfig
    from recto.sources.tool_definition import ToolChange

# Rows for the question and its frame, and the minimum for the arguments.
AROUND, LEAST_ROWS = 8, 6
# Texts in the arguments are shortened to this first, so that they cannot push other values off the screen.
LONGEST = 300
APPROVAL_ANSWERS: dict[str, Answer] = {
    "y": "allowed",
    "yes": "allowed",
    "a": "always",
    "always": "always",
    "": "denied",
    "n": "denied",
    "no": "denied",
}
SHOW_ALL = ("s", "show", "show all")
COMPACTION_QUESTION = "use it? [Y]es / [e]dit / [n]ot now "
COMPACTION_ANSWERS = {
    "": "yes",
    "y": "yes",
    "yes": "yes",
    "e": "edit",
    "edit": "edit",
    "n": "no",
    "no": "no",
    "not now": "no",
}
# Shorter waits are not reported to screen readers.
PATIENCE_S = 0.5


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


class ShownArguments(NamedTuple):
    """A tool call's arguments as shown to the user."""

    text: str
    is_cut: bool = False


def ask_approval(console: Console, event: ApprovalAsked) -> Answer:
    """Ask for approval; end of input means no. Ctrl-C raises KeyboardInterrupt."""
    raw, diff = event.call.arguments, _diff_text(event.change)
    shown, changed = fitted(console, raw), _fitted_rows(console, _rows(console, diff))
    _show_call(console, event, shown, changed)
    forget_keys()
    always = "as it is now" if event.change else "in this conversation"
    while True:
        is_cut = shown.is_cut or changed.is_cut
        more = "[s]how all / " if is_cut else ""
        try:
            said = console.input(Text(f"run it? [y]es / [a]lways {always} / {more}[N]o ", "bold")).strip().lower()
        except EOFError:
            console.print()
            return "denied"
        if said in APPROVAL_ANSWERS:
            return APPROVAL_ANSWERS[said]
        if said in SHOW_ALL and is_cut:
            shown, changed = ShownArguments(pretty(raw)), ShownArguments(diff)
            console.print(Text("\n".join(filter(None, (diff, shown.text)))))


def _diff_text(change: "ToolChange | None") -> str:
    return revealed("\n".join(change.lines), "\n") if change else ""


def _show_call(console: Console, event: ApprovalAsked, shown: ShownArguments, changed: ShownArguments) -> None:
    tool = event.tool
    console.print(rule(revealed(f"{tool.server} wants to run {tool.own_name or tool.name}"), console.width))
    if described := shortened(revealed(tool.description, "\n\t"), console.width):
        console.print(Text(described, "dim"))
    if event.change:
        console.print(Text(revealed(event.change.text), "yellow"))
        _print_cut(console, changed, counted(len(event.change.lines), "line"))
        console.print(Text("it would run with", "dim"))
    _print_cut(console, shown, counted(len(event.call.arguments), "character"))


def _print_cut(console: Console, shown: ShownArguments, size: str) -> None:
    console.print(Text(shown.text))
    if shown.is_cut:
        console.print(Text(f"… cut: {size} in all", "yellow"))


def fitted(console: Console, raw: str) -> ShownArguments:
    """The arguments, cut to keep the question on the screen. Long texts are shortened before a value is dropped."""
    most = max(LEAST_ROWS, console.size.height - AROUND)
    said, room = pretty(raw), most * console.width
    if len(said) <= room and len(_rows(console, said)) <= most:
        return ShownArguments(said)
    rows = _rows(console, pretty(raw, LONGEST)[:room])
    return ShownArguments("\n".join(rows[:most]), is_cut=True)


def _fitted_rows(console: Console, rows: list[str]) -> ShownArguments:
    most = max(LEAST_ROWS, console.size.height - AROUND)
    return ShownArguments("\n".join(rows[:most]), len(rows) > most)


def _rows(console: Console, said: str) -> list[str]:
    return [row.plain for row in Text(said).wrap(console, console.width, overflow="fold")]


def pretty(raw: str, longest: int | None = None) -> str:
    """Arguments as indented JSON with texts cut at `longest`; unchanged if they are not JSON."""
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
        while (said := COMPACTION_ANSWERS.get(_asked(console), "")) != "no":
            if said == "yes":
                return block.summary
            if said == "edit" and (changed := _edited_summary(console, block.summary)):
                return changed
    except (KeyboardInterrupt, EOFError):
        console.print()
    return None


def _asked(console: Console) -> str:
    return console.input(Text(COMPACTION_QUESTION, "bold")).strip().lower()


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


class PlainLines(Lines):
    """The listener for screen readers: whole lines, a sentence for each wait, nothing redrawn."""

    def __init__(self, console: Console, *, context: Numbered | None = None) -> None:
        super().__init__(context=context)
        self._console = console
        self._wait: threading.Timer | None = None
        self.answers = has_keyboard()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end_wait()
        super().__exit__(kind, error, at)
        if kind is KeyboardInterrupt:
            say(KEPT)

    def hear(self, event: Event) -> None:
        self._end_wait()
        super().hear(event)
        match event:
            case Working():
                say(f"{work_in_words(event)}.", err=True)
            case Sent():
                self._begin_wait(f"waiting for {event.window.model}.")
            case ToolStarted():
                self._begin_wait(f"calling {tool_named(event.call.name)}.")
            case _ if self.answers:
                answer(self._console, event)

    def _begin_wait(self, sentence: str) -> None:
        self._wait = threading.Timer(PATIENCE_S, say, (sentence,), {"err": True})
        self._wait.daemon = True
        self._wait.start()

    def _end_wait(self) -> None:
        if self._wait:
            self._wait.cancel()
        self._wait = None
