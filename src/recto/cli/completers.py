"""Completers for the chat: slash commands, [[links]] to notes and their headings, @paths and @agents, the note of
`/document`, and names of sources.

They complete nothing if a vault or an agent cannot be read.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from recto.api.suggestions import (
    NEEDS_QUOTES,
    UNTYPED_SOURCE,
    CachedSuggestions,
    Suggestion,
    Suggestions,
    file_paths,
    note_headings,
    note_names,
    note_paths,
)
from recto.cli.show import shortened, visible
from recto.cli.slash import NAMED
from recto.errors import RectoError
from recto.sources.documents import mentioned_sources
from recto.sources.source import INCLUDES, Reference, Rule, SourceKind
from recto.vault.link_resolver import fold_name

if TYPE_CHECKING:
    from recto.sources.overrides import SourceStatus
    from recto.vault.vault import Vault

MENTIONS: dict[str, SourceKind] = {"rule": "rule", "ref": "reference", "reference": "reference"}
# Completions of the beginning of a mention.
BEGINNINGS = ("rule", "ref")
# Longest wait for a server that is starting.
PATIENCE_S = 0.5
META_WIDTH = 40

_LINK = re.compile(r"\[\[((?:(?!\]\]|\[\[)[^\n])*)$")
_PATH = re.compile(r"(?:^|(?<=[\s(]))@(?:\"([^\"\n]*)|((?:[^\W\d_][^\s\"`<>|@]*)?))$")
_SOURCE_COMMAND = re.compile(r"/(rules|references|tools) +(add|remove|mode) +(\S[^\n]*)?")
_SOURCE_MENTION = re.compile(r'(?<![\w@/.\\])@(rule|ref|reference):("[^"\n]*|[^\s"`<>|@]*)$', re.IGNORECASE)
_MENTION_BEGUN = re.compile(r"(?<![\w@/.\\])@(r[a-z]*)$", re.IGNORECASE)
_PLAIN = re.compile(r"\w[\w -]*\w|\w")

OpenVault = Callable[[], "Vault | None"]
LookUp = Callable[["Vault"], Iterable[Suggestion]]
SlashWords = Mapping[str, tuple[str, tuple[str, ...]]]
"""Name of a slash command -> its help and its arguments."""

log = logging.getLogger(__name__)


def completion(suggestion: Suggestion, typed: str, closing: str = "") -> Completion:
    """A completion that replaces `typed`."""
    return Completion(
        suggestion.insert + closing,
        start_position=-len(typed),
        display=visible(suggestion.shown),
        display_meta=shortened(suggestion.meta, META_WIDTH),
    )


def _words(words: Iterable[str], typed: str, meta: str = "") -> Iterator[Completion]:
    """The words that begin with `typed`."""
    for word in words:
        if word.startswith(typed):
            yield Completion(word, start_position=-len(typed), display_meta=meta)


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


# -- [[links]], /document


class LinkCompleter(Completer):
    """Names of notes in links, and paths of notes after `/document`."""

    def __init__(self, vault: OpenVault) -> None:
        self._vault = vault
        self._cached: dict[tuple[Path, LookUp], CachedSuggestions] = {}

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        link = _LINK.search(document.current_line_before_cursor)
        command, space, opened = document.text_before_cursor.partition(" ")
        is_opened = link is None and command == "/document" and bool(space) and "\n" not in opened
        vault = self._vault() if is_opened or (link is not None and "|" not in link[1]) else None
        if vault and link is None:
            opened = opened.lstrip(" ")
            yield from (completion(each, opened) for each in self._best(note_paths, vault, opened))
        elif vault and link:
            # the closing brackets that are still missing
            after = document.text_after_cursor[:2]
            yield from self._linked(vault, link[1], "]]"[len(after) - len(after.lstrip("]")) :])

    def _linked(self, vault: "Vault", typed: str, closing: str) -> Iterator[Completion]:
        name, sign, heading = typed.rpartition("#")
        for each in self._best(note_names, vault, typed.lstrip()):
            if not sign or "#" in each.key:
                yield completion(each, typed, closing)
        for each in note_headings(vault, name, heading) if sign else ():
            yield completion(each, heading, closing)

    def _best(self, look_up: LookUp, vault: "Vault", typed: str) -> list[Suggestion]:
        key = (vault.root, look_up)
        if key not in self._cached:
            self._cached[key] = CachedSuggestions(lambda: look_up(vault))
        return self._cached[key].best(typed)


# -- @paths, @agents


class FileCompleter(Completer):
    """Files of the project and the vault after an `@`."""

    def __init__(self, vault: OpenVault, project: Path | None) -> None:
        self._vault, self._project = vault, project
        self._cached: dict[tuple[Path, ...], CachedSuggestions] = {}

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        typed = _PATH.search(document.current_line_before_cursor)
        if typed is None or typed[0][1:].partition(":")[0].lower() in (MENTIONS if ":" in typed[0] else ()):
            return
        quoted, bare = typed.groups()
        said = quoted if bare is None else bare
        is_begun = said[:1].isalpha() or typed[0] == "@"
        for each in self._suggestions().best(said) if is_begun else ():
            yield completion(each, typed[0][1:])

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
        # an agent can only be the first word of a message
        if not typed.startswith("@") or not all(sign.isalnum() or sign in "_.-" for sign in typed[1:]):
            return
        try:
            yield from _words(list(self._names()), typed[1:], "agent")
        except RectoError:
            log.debug("the agents could not be listed", exc_info=True)


# -- sources


class SourceCompleter(Completer):
    """Names of sources after `/rules`, `/references` and `/tools`, and after `@rule:` and `@ref:` in a message.

    `written` returns the agent's rules and references; `listed` the sources of a kind, which may ask servers.
    """

    def __init__(
        self,
        written: Callable[[], Iterable[Rule | Reference]],
        listed: Callable[[SourceKind], Iterable["SourceStatus"]],
    ) -> None:
        self._written, self._listed = written, listed
        self._cached: dict[tuple[SourceKind, str], CachedSuggestions] = {}

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        line = document.current_line_before_cursor
        if found := _SOURCE_COMMAND.fullmatch(document.text_before_cursor):
            yield from self._after_command(NAMED[found[1]], found[2], found[3] or "")
        elif found := _SOURCE_MENTION.search(line):
            after = document.text_after_cursor[:1] if found[2].startswith('"') else ""
            yield from self._mentioned(MENTIONS[found[1].lower()], found[2], after)
        elif found := _MENTION_BEGUN.search(line):
            kinds = {each.kind for each in self._mentionable()}
            fitting = [each for each in BEGINNINGS if MENTIONS[each] in kinds and each.startswith(found[1].lower())]
            yield from (Completion(f"{each}:", start_position=-len(found[1])) for each in fitting)

    def _after_command(self, kind: SourceKind, verb: str, typed: str) -> Iterator[Completion]:
        key = (kind, verb)
        if key not in self._cached:
            self._cached[key] = CachedSuggestions(lambda: source_names(self._listed(kind), verb), PATIENCE_S)
        name, _, mode = typed.rpartition(" ")
        best = self._cached[key].best
        if verb == "mode" and any(each.insert == name.strip() for each in best(name.strip())):
            yield from _words(INCLUDES, mode)
        else:
            yield from (completion(each, typed) for each in best(typed))

    def _mentioned(self, kind: SourceKind, typed: str, after: str) -> Iterator[Completion]:
        found = [
            Suggestion(fold_name(each.name), _quoted(each.name, typed), each.name, each.description)
            for each in self._mentionable()
            if each.kind == kind and _can_be_mentioned(each)
        ]
        for each in Suggestions(found).best(typed.removeprefix('"')):
            # no second closing quote
            yield completion(replace(each, insert=each.insert[:-1]) if after == '"' else each, typed)

    def _mentionable(self) -> list[Rule | Reference]:
        try:
            return list(self._written())
        except RectoError:
            log.debug("the agent's sources could not be read", exc_info=True)
            return []


def source_names(listed: Iterable["SourceStatus"], verb: str) -> Iterator[Suggestion]:
    """Sources that can be added, removed or set to another mode. `mode` also takes a server, for all its tools."""
    some = list(listed)
    servers = dict.fromkeys(each.source.id.server for each in some if each.source.id.server)
    for server in servers if verb == "mode" else ():
        yield Suggestion(fold_name(server), server, server, "all its tools")
    for each in some:
        id = each.source.id
        fits = {"add": each.mode is None and each.source.enabled, "remove": each.mode is not None}.get(verb, True)
        name = f"{id.server}/{id.name}" if id.server else id.name
        if fits and not UNTYPED_SOURCE.search(name):
            yield Suggestion(fold_name(name), name, name, each.source.description)


def _quoted(name: str, typed: str) -> str:
    return f'"{name}"' if typed.startswith('"') or NEEDS_QUOTES.search(name) else name


def _can_be_mentioned(source: Rule | Reference) -> bool:
    """False for names with characters that end a mention."""
    if _PLAIN.fullmatch(source.name):
        return True
    kind = "ref" if source.kind == "reference" else source.kind
    return mentioned_sources(f"@{kind}:{_quoted(source.name, '')}", [source]) == ([source], [])
