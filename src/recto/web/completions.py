"""Completions while the user writes: `[[` notes and headings, `@` files, agents, rules and references, `/` commands."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

from recto.api.desk import AsyncDesk
from recto.api.suggested_names import file_paths, note_headings, note_names
from recto.api.suggestions import CachedSuggestions, Suggestion, Suggestions
from recto.api.talk import AsyncTalk
from recto.vault.link_resolver import fold_name
from recto.web.menu import COMMANDS

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
            before, after = "[[", "" if behind.startswith("]]") else "]]"
            found = await asyncio.to_thread(self._notes, token[2:])
        elif token.startswith("@"):
            before, after = "@", " "
            found = await asyncio.to_thread(self._sources, self._desk, token[1:]) if self._desk else []
        else:
            before, after = "/", " "
            names = [name for name in COMMANDS if name.startswith(token[1:])]
            found = [Suggestion(name, name, f"/{name}", COMMANDS[name].help) for name in names]
        return [
            {"insert": f"{before}{each.insert}{after}", "shown": each.shown, "about": each.meta}
            for each in found[:MOST]
        ]

    def _notes(self, typed: str) -> list[Suggestion]:
        vault = self._talk().vault
        if vault is None or "|" in typed:
            return []
        name, sign, heading = typed.rpartition("#")
        if sign:
            found = note_headings(vault, name, heading)
            return [Suggestion(each.key, f"{name}#{each.insert}", each.shown, each.meta) for each in found]
        names = self._cache(("notes", str(vault.root)), lambda: note_names(vault))
        return names.best(typed.lstrip())

    def _sources(self, desk: AsyncDesk, typed: str) -> list[Suggestion]:
        vault = self._talk().vault
        found = (desk.project or Path.cwd(), vault.root if vault else None)
        roots = tuple(dict.fromkeys(root.resolve() for root in found if root))
        files = self._cache(("files", *map(str, roots)), lambda: file_paths(roots))
        named = Suggestions(list(self._named(desk))).best(typed)
        return [*named, *files.best(typed.lstrip('"'))]

    def _named(self, desk: AsyncDesk) -> Iterable[Suggestion]:
        """Rules and references of the agent; agents, as long as the conversation belongs to none."""
        talk = self._talk()
        for source in talk.agent.enabled_texts:
            kind = "ref" if source.kind == "reference" else source.kind
            name = f"{kind}:{source.name}"
            shown = f'{kind}:"{source.name}"' if " " in name else name
            yield Suggestion(fold_name(name), shown, name, source.description)
        for agent in desk.agents.names() if talk.id is None else ():
            yield Suggestion(fold_name(agent), agent, agent, "agent")

    def _cache(self, key: tuple[str, ...], look_up: Callable[[], Iterable[Suggestion]]) -> CachedSuggestions:
        if key not in self._cached:
            self._cached[key] = CachedSuggestions(look_up, PATIENCE_S)
        return self._cached[key]
