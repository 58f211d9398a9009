"""Completion of sources while they are typed: names behind `/rules`, `/references` and `/tools`, and behind `@rule:`
and `@ref:` in a message."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from recto.cli.complete import Choice, Kept, Known, completion
from recto.cli.slash_sources import NAMED
from recto.errors import RectoError
from recto.sources.mentions import mentioned
from recto.sources.source import INCLUDES, Kind, Reference, Rule
from recto.vault.names import fold

if TYPE_CHECKING:
    from recto.sources.session import Listed

MENTIONS: dict[str, Kind] = {"rule": "rule", "ref": "reference", "reference": "reference"}
# What is offered for the beginning of a mention.
BEGINNINGS = ("rule", "ref")
# A server that is only just starting is not waited for with the keys.
PATIENCE_S = 0.5

_COMMAND = re.compile(r"/(rules|references|tools) +(add|remove|mode) +(\S[^\n]*)?")
_MENTION = re.compile(r'(?<![\w@/.\\])@(rule|ref|reference):("[^"\n]*|[^\s"`<>|@]*)$', re.IGNORECASE)
_BEGUN = re.compile(r"(?<![\w@/.\\])@(r[a-z]*)$", re.IGNORECASE)
_NEEDS_QUOTES = re.compile(r"[\s`<>|@]")
_PLAIN = re.compile(r"\w[\w -]*\w|\w")
_UNTYPED = re.compile('[\x00-\x1f\x7f-\x9f\u2028\u2029"]')


class SourceCompleter(Completer):
    """`written` are the rules and references of the agent; `listed` gives the sources of a kind, which takes a while
    where servers have to be asked."""

    def __init__(
        self, written: Callable[[], Iterable[Rule | Reference]], listed: Callable[[Kind], Iterable["Listed"]]
    ) -> None:
        self._written, self._listed = written, listed
        self._kept: dict[tuple[Kind, str], Kept] = {}

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        line = document.current_line_before_cursor
        if found := _COMMAND.fullmatch(document.text_before_cursor):
            yield from self._behind_command(NAMED[found[1]], found[2], found[3] or "")
        elif found := _MENTION.search(line):
            after = document.text_after_cursor[:1] if found[2].startswith('"') else ""
            yield from self._mentioned(MENTIONS[found[1].lower()], found[2], after)
        elif found := _BEGUN.search(line):
            kinds = {each.kind for each in self._mentionable()}
            fitting = (each for each in BEGINNINGS if each.startswith(found[1].lower()) and MENTIONS[each] in kinds)
            yield from (Completion(f"{each}:", start_position=-len(found[1])) for each in fitting)

    def _behind_command(self, kind: Kind, verb: str, typed: str) -> Iterator[Completion]:
        key = (kind, verb)
        if key not in self._kept:
            self._kept[key] = Kept(lambda: name_choices(self._listed(kind), verb), PATIENCE_S)
        name, _, mode = typed.rpartition(" ")
        best = self._kept[key].best
        if verb == "mode" and any(choice.insert == name.strip() for choice in best(name.strip())):
            yield from (Completion(each, start_position=-len(mode)) for each in INCLUDES if each.startswith(mode))
        else:
            yield from (completion(choice, typed, "") for choice in best(typed))

    def _mentioned(self, kind: Kind, typed: str, after: str) -> Iterator[Completion]:
        some = (each for each in self._mentionable() if each.kind == kind and _can_be_mentioned(each))
        choices = [Choice(fold(each.name), _quoted(each.name, typed), each.name, each.description) for each in some]
        for choice in Known(choices).best(typed.removeprefix('"')):
            # a quote that stands behind the cursor already is not written again
            yield completion(replace(choice, insert=choice.insert[:-1]) if after == '"' else choice, typed, "")

    def _mentionable(self) -> list[Rule | Reference]:
        try:
            return list(self._written())
        except RectoError:
            return []


def _quoted(name: str, typed: str) -> str:
    return f'"{name}"' if typed.startswith('"') or _NEEDS_QUOTES.search(name) else name


def _can_be_mentioned(source: Rule | Reference) -> bool:
    """A name with signs that mean something in a message may be no part of a mention."""
    if _PLAIN.fullmatch(source.name):
        return True
    kind = "ref" if source.kind == "reference" else source.kind
    return mentioned(f"@{kind}:{_quoted(source.name, '')}", [source]) == ([source], [])


def name_choices(listed: Iterable["Listed"], verb: str) -> Iterator[Choice]:
    """What can be taken in, taken out, or given another mode: a tool with its server, and all tools of one."""
    some = list(listed)
    servers = dict.fromkeys(each.source.id.server for each in some if each.source.id.server)
    for server in servers if verb == "mode" else ():
        yield Choice(fold(server), server, server, "all its tools")
    for each in some:
        id = each.source.id
        fits = {"add": each.mode is None and each.source.enabled, "remove": each.mode is not None}.get(verb, True)
        name = f"{id.server}/{id.name}" if id.server else id.name
        if fits and not _UNTYPED.search(name):
            yield Choice(fold(name), name, name, each.source.description)
