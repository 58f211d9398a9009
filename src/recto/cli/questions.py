"""Questions to the user during a turn: may this tool run, and should this compaction be made.

The prompt of the chat: history, several lines, completion, and the toolbar below. Knows no engine.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from signal import default_int_handler
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from prompt_toolkit import PromptSession
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer, merge_completers
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Always, has_focus
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.styles import Style
from rich.console import Console
from rich.text import Text

from recto.base.home_files import HISTORY_FILE, create_private_file
from recto.chat.blocks import Compaction
from recto.cli.drawing.sources import runs, unasked_in_words
from recto.cli.drawing.transcripts import block_in_words, remarks
from recto.cli.drawing.windows import rule
from recto.cli.markdown import Page
from recto.cli.show import counted, shortened, visible
from recto.cli.terminal import edited, forget_keys, on_interrupt, revealed
from recto.cli.word_wrap import WordWrap
from recto.errors import Invalid
from recto.events import Answer, ApprovalAsked, FactProposed

if TYPE_CHECKING:
    from recto.sources.server_config import ServerConfig
    from recto.sources.tool_definition import ToolChange

# Rows for the question and the lines around the arguments, and the fewest rows that the arguments get.
AROUND, LEAST_ROWS = 8, 6
# A text within the arguments is shortened to this first, so that it cannot push the other values off the screen.
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


# -- may this tool run?


class ShownArguments(Struct, frozen=True):
    """Arguments of a tool call as the user reads them."""

    text: str
    is_cut: bool = False


def ask_approval(console: Console, event: ApprovalAsked) -> Answer:
    """The user's answer; the end of input means no. Ctrl-C raises KeyboardInterrupt."""
    raw = event.call.arguments
    shown, changed = fitted(console, raw), _fitted_change(console, event.change)
    _show_call(console, event, shown, changed)
    forget_keys()
    while True:
        is_cut = shown.is_cut or changed.is_cut
        try:
            said = console.input(_approval_question(is_cut, is_changed=event.change is not None)).strip().lower()
        except EOFError:
            console.print()
            return "denied"
        if said in APPROVAL_ANSWERS:
            return APPROVAL_ANSWERS[said]
        if said in SHOW_ALL and is_cut:
            shown, changed = ShownArguments(pretty(raw)), ShownArguments(_diff_text(event.change))
            console.print(Text("\n".join(filter(None, (changed.text, shown.text)))))


def _approval_question(is_cut: bool, *, is_changed: bool) -> Text:
    always, more = "as it is now" if is_changed else "in this conversation", "[s]how all / " if is_cut else ""
    return Text(f"run it? [y]es / [a]lways {always} / {more}[N]o ", "bold")


def _diff_text(change: "ToolChange | None") -> str:
    return revealed("\n".join(change.lines), "\n") if change else ""


def _fitted_change(console: Console, change: "ToolChange | None") -> ShownArguments:
    most = max(LEAST_ROWS, console.size.height - AROUND)
    rows = _rows(console, _diff_text(change))
    return ShownArguments("\n".join(rows[:most]), is_cut=len(rows) > most)


def _show_call(console: Console, event: ApprovalAsked, shown: ShownArguments, changed: ShownArguments) -> None:
    tool = event.tool
    console.print(rule(revealed(f"{tool.server} wants to run {tool.own_name or tool.name}"), console.width))
    if described := shortened(revealed(tool.description, "\n\t"), console.width):
        console.print(Text(described, "dim"))
    if event.change:
        console.print(Text(revealed(event.change.text), "yellow"))
        console.print(Text(changed.text))
        if changed.is_cut:
            console.print(Text(f"… cut: {counted(len(event.change.lines), 'line')} in all", "yellow"))
        console.print(Text("it would run with", "dim"))
    console.print(Text(shown.text))
    if shown.is_cut:
        console.print(Text(f"… cut: {counted(len(event.call.arguments), 'character')} in all", "yellow"))


def fitted(console: Console, raw: str) -> ShownArguments:
    """As much of the arguments as leaves the question on the screen. Long texts are shortened before a value is
    dropped."""
    most, width = max(LEAST_ROWS, console.size.height - AROUND), console.width
    said = pretty(raw)
    if len(said) <= most * width and len(_rows(console, said)) <= most:
        return ShownArguments(said)
    rows = _rows(console, pretty(raw, LONGEST)[: most * width])
    return ShownArguments("\n".join(rows[:most]), is_cut=True)


def _rows(console: Console, said: str) -> list[str]:
    return [row.plain for row in Text(said).wrap(console, console.width, overflow="fold")]


def pretty(raw: str, longest: int | None = None) -> str:
    """Arguments as indented JSON, or unchanged when they are not JSON; texts in them are cut at `longest`."""
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
    """All that a user trusts."""
    console.print(rule(revealed(f"{config.name} is an MCP server of this project"), console.width))
    facts = {"runs": runs(config, whole=True), "asks": unasked_in_words(config), "said in": revealed(config.origin)}
    for name, value in facts.items():
        if value:
            console.print(Text(f"  {name:<8} {value}"), soft_wrap=not console.is_terminal)


def ask_changes(console: Console, changes: "Sequence[ToolChange]", *, is_at_terminal: bool) -> bool:
    """Whether the user accepts tools as they are now. Who cannot be asked has said so with the command."""
    for change in changes:
        console.print(Text(revealed(change.text), "yellow"), soft_wrap=not console.is_terminal)
        console.print(Text(_diff_text(change)), soft_wrap=not console.is_terminal)
    return not is_at_terminal or said_yes(console, "accept them as they are now? [y]es / [N]o ")


def ask_fact(console: Console, event: FactProposed) -> bool:
    return said_yes(console, f"remember “{shortened(event.text, 80)}”? [y]es / [N]o ")


def said_yes(console: Console, question: str) -> bool:
    """Ctrl-C and the end of input mean no."""
    forget_keys()
    try:
        return console.input(Text(visible(question), "bold")).strip().lower() in ("y", "yes")
    except (KeyboardInterrupt, EOFError):
        console.print()
        return False


# -- should this compaction be made?


def ask_compaction(console: Console, block: Compaction) -> str | None:
    """The summary to use, as proposed or as edited; None for not now, which Ctrl-C and the end of input mean too."""
    _show_compaction(console, block)
    forget_keys()
    try:
        while (answer := _compaction_answer(console)) != "no":
            if answer == "yes":
                return block.summary
            if answer == "edit" and (changed := _edited_summary(console, block.summary)):
                return changed
    except (KeyboardInterrupt, EOFError):
        console.print()
    return None


def _show_compaction(console: Console, block: Compaction) -> None:
    console.print(rule(f"to be compacted: {block.because}", console.width))
    console.print(Page(visible(block.summary) or "(no summary: the messages are only archived)"))
    console.print(Text(visible(block_in_words(block)), "dim"))
    for line in remarks(block.notes, len(block.excerpts), block.checks):
        console.print(Text(f"· {visible(line)}", "dim"))


def _compaction_answer(console: Console) -> str:
    said = console.input(Text(COMPACTION_QUESTION, "bold"))
    return COMPACTION_ANSWERS.get(said.strip().lower(), "")


def _edited_summary(console: Console, summary: str) -> str | None:
    """The edited summary; None or empty when it cannot be used, which the user is told."""
    try:
        changed = edited(summary)
    except Invalid as why:
        console.print(Text(visible(why.message), "red"))
        return None
    if not changed:
        console.print(Text("it is unchanged" if changed is None else "an empty summary says nothing", "dim"))
    return changed


MARK, PLAIN_MARK = "› ", "> "
STYLE = Style.from_dict(
    {
        "mark": "bold ansicyan",
        "bottom-toolbar": "noreverse ansibrightblack",
        "full": "ansiyellow",
        "due": "ansired",
    }
)


class HistoryFile(FileHistory):
    """Typed lines, kept in a file that only the user can read. When the file cannot be used, there is no history."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with suppress(OSError):
            create_private_file(path)

    def load_history_strings(self) -> Iterable[str]:
        try:
            return super().load_history_strings()
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        with suppress(OSError):
            super().store_string(string)


class PlainPrompt:
    """A prompt for screen readers: whole lines, nothing redrawn. A backslash at the end of a line adds a line."""

    def __init__(self, home: Path) -> None:
        self.history = HistoryFile(home / HISTORY_FILE)

    def prompt(self, default: str = "") -> str:
        """Raises KeyboardInterrupt and EOFError as the other prompt does. `default` goes before what is typed."""
        lines = [default] if default else []
        with on_interrupt(default_int_handler):
            while (line := input(PLAIN_MARK)).endswith("\\"):
                lines.append(line[:-1])
        said = "\n".join((*lines, line))
        if said.strip():
            self.history.append_string(said)
        return said


def open_prompt(
    home: Path, completers: Sequence[Completer], toolbar: Callable[[], FormattedText]
) -> PromptSession[str]:
    session: PromptSession[str] = PromptSession(
        FormattedText([("class:mark", MARK)]),
        multiline=True,
        prompt_continuation=FormattedText([("", " " * len(MARK))]),
        history=HistoryFile(home / HISTORY_FILE),
        completer=merge_completers(completers),
        complete_while_typing=True,
        complete_in_thread=True,
        reserve_space_for_menu=5,
        key_bindings=_keys(),
        bottom_toolbar=toolbar,
        style=STYLE,
        input_processors=[WordWrap(len(MARK))],
    )
    # as an option of the session it would turn completion while typing off
    session.default_buffer.enable_history_search = Always()
    return session


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=has_focus(DEFAULT_BUFFER))
    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if _is_choosing(buffer):
            buffer.complete_state = None
        elif buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter", filter=has_focus(DEFAULT_BUFFER))
    def add_line(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    @keys.add("up", filter=has_focus(DEFAULT_BUFFER))
    def up(event: KeyPressEvent) -> None:
        _close_empty_menu(event.current_buffer)
        event.current_buffer.auto_up(count=event.arg)

    @keys.add("down", filter=has_focus(DEFAULT_BUFFER))
    def down(event: KeyPressEvent) -> None:
        _close_empty_menu(event.current_buffer)
        event.current_buffer.auto_down(count=event.arg)

    return keys


def _close_empty_menu(buffer: Buffer) -> None:
    """While names are still looked up there is a menu without any, in which the arrows would do nothing."""
    if buffer.complete_state and not buffer.complete_state.completions:
        buffer.complete_state = None


def _is_choosing(buffer: Buffer) -> bool:
    """Whether Enter takes a name from the menu into a message. A slash command from the menu runs at once."""
    state = buffer.complete_state
    return state is not None and state.current_completion is not None and not buffer.text.startswith("/")
