"""Completions while the user writes: `[[` notes and headings, `@` files, agents, rules and references, `/` commands."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from recto.api.desk import AsyncDesk
from recto.api.suggestions import CachedSuggestions, Suggestion, Suggestions, file_paths, note_headings, note_names
from recto.api.talk import AsyncTalk
from recto.vault.link_resolver import fold_name
from recto.vault.vault import Vault
from recto.web.commands import COMMANDS

MOST = 12
# Typing does not wait longer for folders that are being read.
PATIENCE_S = 0.3


class Completions:
    def __init__(self, desk: AsyncDesk | None, talk: Callable[[], AsyncTalk]) -> None:
        """Without a desk commands alone are offered: files and agents are the owner's."""
        self._desk, self._talk = desk, talk
        self._cached: dict[tuple[str, ...], CachedSuggestions] = {}

    async def find(self, token: str, behind: str) -> list[dict[str, str]]:
        """What fits the word before the cursor; `behind` is what follows the cursor."""
        if token.startswith("[["):
            found = await asyncio.to_thread(self._notes, token[2:], "" if behind.startswith("]]") else "]]")
        elif token.startswith("@"):
            found = await asyncio.to_thread(self._behind_at, self._desk, token[1:]) if self._desk else []
        else:
            found = [
                Suggestion(name, f"/{name} ", f"/{name}", each.help)
                for name, each in COMMANDS.items()
                if name.startswith(token[1:])
            ]
        return [{"insert": each.insert, "shown": each.shown, "about": each.meta} for each in found[:MOST]]

    def _notes(self, typed: str, closing: str) -> list[Suggestion]:
        vault = self._talk().vault
        if vault is None or "|" in typed:
            return []
        name, sign, heading = typed.rpartition("#")
        if sign:
            return [_inserting(each, f"[[{name}#", closing) for each in note_headings(vault, name, heading)]
        names = self._cache(("notes", str(vault.root)), lambda: note_names(vault))
        return [_inserting(each, "[[", closing) for each in names.best(typed.lstrip())]

    def _behind_at(self, desk: AsyncDesk, typed: str) -> list[Suggestion]:
        roots = self._roots(desk, self._talk().vault)
        files = self._cache(("files", *map(str, roots)), lambda: file_paths(roots))
        named = Suggestions(list(self._named(desk))).best(typed)
        return [_inserting(each, "@", " ") for each in (*named, *files.best(typed.lstrip('"')))]

    def _named(self, desk: AsyncDesk) -> Iterable[Suggestion]:
        """Rules and references of the agent; agents, as long as the conversation belongs to none."""
        talk = self._talk()
        for source in talk.agent.enabled_texts:
            name = f"{'ref' if source.kind == 'reference' else source.kind}:{source.name}"
            shown = f'{name.partition(":")[0]}:"{source.name}"' if " " in source.name else name
            yield Suggestion(fold_name(name), shown, name, source.description)
        for agent in desk.agents.names() if talk.id is None else ():
            yield Suggestion(fold_name(agent), agent, agent, "agent")

    def _roots(self, desk: AsyncDesk, vault: Vault | None) -> Sequence[Path]:
        found = (desk.project or Path.cwd(), vault.root if vault else None)
        return tuple(dict.fromkeys(root.resolve() for root in found if root))

    def _cache(self, key: tuple[str, ...], look_up: Callable[[], Iterable[Suggestion]]) -> CachedSuggestions:
        if key not in self._cached:
            self._cached[key] = CachedSuggestions(look_up, PATIENCE_S)
        return self._cached[key]


def _inserting(suggestion: Suggestion, before: str, after: str) -> Suggestion:
    return Suggestion(suggestion.key, f"{before}{suggestion.insert}{after}", suggestion.shown, suggestion.meta)
