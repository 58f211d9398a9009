"""The chat's prompt: history, several lines, toolbar; completion of `/commands`, `[[links]]`, `@paths` and `@agents`.
Completes nothing if a vault or an agent cannot be read. Knows no engine.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, merge_completers
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Always, has_focus
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.styles import Style

from recto.api.suggestions import (
    CachedSuggestions,
    Suggestion,
    file_paths,
    note_headings,
    note_names,
)
from recto.base.home_files import HISTORY_FILE, create_private_file
from recto.cli.show import shortened, visible
from recto.errors import RectoError

if TYPE_CHECKING:
    from recto.vault.vault import Vault

MARK = "› "
STYLE = Style.from_dict(
    {"mark": "bold ansicyan", "bottom-toolbar": "noreverse ansibrightblack", "full": "ansiyellow", "due": "ansired"}
)
# Longest wait for the files of a large project.
PATIENCE_S = 0.5
META_WIDTH = 40

_LINK = re.compile(r"\[\[((?:(?!\]\]|\[\[)[^\n|])*)$")
_PATH = re.compile(r"(?:^|(?<=[\s(]))@(?:\"([^\"\n]*)|((?:[^\W\d_][^\s\"`<>|@]*)?))$")
_MENTION = re.compile("@(rule|ref|reference):", re.IGNORECASE)

OpenVault = Callable[[], "Vault | None"]
SlashWords = Mapping[str, tuple[str, tuple[str, ...]]]
"""Name of a slash command -> its help and its arguments."""

# -- what is typed


def open_history(path: Path) -> History:
    """Typed lines in a file that only the user can read. If it cannot be used, they are forgotten with the chat."""
    try:
        create_private_file(path)
        path.read_bytes()
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)


def open_prompt(
    home: Path, completers: Sequence[Completer], toolbar: Callable[[], FormattedText]
) -> PromptSession[str]:
    session: PromptSession[str] = PromptSession(
        FormattedText([("class:mark", MARK)]),
        multiline=True,
        prompt_continuation=FormattedText([("", " " * len(MARK))]),
        history=open_history(home / HISTORY_FILE),
        completer=merge_completers(completers),
        complete_while_typing=True,
        complete_in_thread=True,
        reserve_space_for_menu=5,
        key_bindings=_chat_keys(),
        bottom_toolbar=toolbar,
        style=STYLE,
    )
    # as an option of the session it would turn off completion while typing
    session.default_buffer.enable_history_search = Always()
    return session


def _chat_keys() -> KeyBindings:
    keys = KeyBindings()
    at_prompt = has_focus(DEFAULT_BUFFER)

    @keys.add("enter", filter=at_prompt)
    def send(event: KeyPressEvent) -> None:
        buffer, state = event.current_buffer, event.current_buffer.complete_state
        # Enter inserts a name from the menu into a message, but runs a slash command
        if state is not None and state.current_completion is not None and not buffer.text.startswith("/"):
            buffer.complete_state = None
        elif buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter", filter=at_prompt)
    def add_line(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    @keys.add("up", filter=at_prompt)
    @keys.add("down", filter=at_prompt)
    def move(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        # the empty menu that is open while names are looked up would swallow the key
        if buffer.complete_state and not buffer.complete_state.completions:
            buffer.complete_state = None
        is_up = event.key_sequence[0].key == "up"
        (buffer.auto_up if is_up else buffer.auto_down)(count=event.arg)

    return keys


# -- completion


class SlashCompleter(Completer):
    """Names of slash commands, and the words that follow them."""

    def __init__(self, commands: SlashWords) -> None:
        self._commands = commands

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        typed = document.text_before_cursor
        if not typed.startswith("/") or "\n" in typed:
            return
        name, space, word = typed[1:].partition(" ")
        if space:
            yield from _words(self._commands[name][1] if name in self._commands else (), word)
            return
        for known, (help, _) in self._commands.items():
            yield from _words((f"/{known}",), typed, help)


class LinkCompleter(Completer):
    """Names of notes and their headings in `[[links]]`."""

    def __init__(self, vault: OpenVault) -> None:
        self._vault = vault
        self._cached: dict[Path, CachedSuggestions] = {}

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        link = _LINK.search(document.current_line_before_cursor)
        if link is None or (vault := self._vault()) is None:
            return
        # the closing brackets that are still missing
        after = document.text_after_cursor[:2]
        closing = "]]"[len(after) - len(after.lstrip("]")) :]
        name, sign, heading = link[1].rpartition("#")
        if vault.root not in self._cached:
            self._cached[vault.root] = CachedSuggestions(lambda: note_names(vault))
        for each in self._cached[vault.root].best(link[1].lstrip()):
            if not sign or "#" in each.key:
                yield _completion(each, link[1], closing)
        for each in note_headings(vault, name, heading) if sign else ():
            yield _completion(each, heading, closing)


class FileCompleter(Completer):
    """Files of the project and the vault after an `@`."""

    def __init__(self, vault: OpenVault, project: Path | None) -> None:
        self._vault, self._project = vault, project
        self._cached: dict[tuple[Path, ...], CachedSuggestions] = {}

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        typed = _PATH.search(document.current_line_before_cursor)
        if typed is None or _MENTION.match(typed[0]):
            return
        quoted, bare = typed.groups()
        said = quoted if bare is None else bare
        for each in self._suggestions().best(said) if said[:1].isalpha() or typed[0] == "@" else ():
            yield _completion(each, typed[0][1:])

    def start(self) -> None:
        """Start reading the folders before the first `@`."""
        self._suggestions().start()

    def _suggestions(self) -> CachedSuggestions:
        vault = self._vault()
        roots = tuple(dict.fromkeys(root.resolve() for root in (self._project, vault and vault.root) if root))
        if roots not in self._cached:
            self._cached[roots] = CachedSuggestions(lambda: file_paths(roots), PATIENCE_S)
        return self._cached[roots]


class AgentCompleter(Completer):
    """Names of agents after an `@` that begins a message; `names` returns none if the agent is fixed."""

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        typed = document.text_before_cursor
        if typed.startswith("@") and all(sign.isalnum() or sign in "_.-" for sign in typed[1:]):
            with suppress(RectoError):
                yield from _words(list(self._names()), typed[1:], "agent")


def _completion(suggestion: Suggestion, typed: str, closing: str = "") -> Completion:
    """A completion that replaces `typed`."""
    shown, meta = visible(suggestion.shown), shortened(suggestion.meta, META_WIDTH)
    return Completion(suggestion.insert + closing, -len(typed), display=shown, display_meta=meta)


def _words(words: Iterable[str], typed: str, meta: str = "") -> Iterator[Completion]:
    """The words that begin with `typed`."""
    for word in words:
        if word.startswith(typed):
            yield Completion(word, start_position=-len(typed), display_meta=meta)
