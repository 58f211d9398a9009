"""The menu of the page and its commands, as data; completions while the user types.

A command is typed (`/compact keep the prices`), or has a button in a template (`data-do="compact"`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from string import ascii_lowercase
from textwrap import shorten
from typing import NamedTuple

from msgspec import Struct

from recto.api.actions import Action, offered
from recto.api.suggestions import CachedSuggestions, Suggestion, note_headings, note_names
from recto.api.talk import AsyncTalk
from recto.chat.message import Message
from recto.errors import Invalid
from recto.providers.embedded import NAME as EMBEDDED
from recto.web.live import LiveConversation, PageDesk
from recto.weights import chat_models

SIGN_OUT = "/sign-out"
LETTERS = {*ascii_lowercase, "-"}
MOST_OFFERED = 12
# Characters of a message in a sentence about it.
SHOWN = 70
REMEMBER = "add a line to the project's memory file"
# Longest wait for folders that are being read.
PATIENCE_S = 0.3


class MenuPage(Struct, frozen=True):
    title: str
    in_whole: bool = True
    """Available to the owner of a home."""
    in_shared: bool = False
    """Available to guests of a shared server."""


PAGES = {
    "/stats": MenuPage("Statistics", in_shared=True),
    "/graph": MenuPage("Graph"),
    "/memory": MenuPage("Memory"),
    "/settings": MenuPage("Settings"),
    SIGN_OUT: MenuPage("Sign out", in_whole=False, in_shared=True),
}
"""The other pages, by address, in the order of the menu."""


def menu(*, is_whole: bool) -> Mapping[str, str]:
    """Titles by address."""
    return {at: page.title for at, page in PAGES.items() if (page.in_whole if is_whole else page.in_shared)}


class Command(NamedTuple):
    help: str
    run: Callable[[PageDesk, LiveConversation, str], Awaitable[str | None]]


def command_in(text: str) -> tuple[str, str] | None:
    """The name and arguments of a command; None for a message, even one that begins with a path."""
    name, *words = text.split(maxsplit=1) or [""]
    if not name.startswith("/") or name == "/" or not set(name[1:]) <= LETTERS:
        return None
    return name[1:], words[0].strip() if words else ""


async def run_command(desk: PageDesk, live: LiveConversation, name: str, words: str = "") -> str:
    if (command := COMMANDS.get(name)) is None:
        raise Invalid(f"Unknown command /{name}. The page has {', '.join(f'/{each}' for each in COMMANDS)}.")
    told = await command.run(desk, live, words)
    live.refresh()
    return told or ""


def _made(action: Action) -> Command:
    """A command of the page from an entry of the table."""

    async def run(desk: PageDesk, live: LiveConversation, words: str) -> str:
        live.check_idle()
        done = action.perform(desk, live.talk, action.typed(words))
        done.result = await done.result
        named = done.given.get("message")
        about = done.result if isinstance(done.result, Message) else await live.talk.message(named) if named else None
        return done.sentence(about, lambda text: shorten(text, SHOWN, placeholder="…"))

    assert action.slash
    return Command(action.slash.help, run)


async def _compact(desk: PageDesk, live: LiveConversation, words: str) -> None:
    live.run(live.talk.stream_compaction(words))


async def _regenerate(desk: PageDesk, live: LiveConversation, words: str) -> None:
    live.run(live.talk.stream_regenerate())


async def _model(desk: PageDesk, live: LiveConversation, words: str) -> str:
    if not words:
        return f"{live.talk.model} answers here; /model NAME changes it."
    own = next((each for each in chat_models() if words in (each.name, each.size)), None)
    await live.talk.use(f"{EMBEDDED}:{own.name}" if own else words)
    return f"{live.talk.model} answers from the next message on."


async def _strategy(desk: PageDesk, live: LiveConversation, words: str) -> str:
    await live.talk.use_strategy(None if words in ("", "default") else words)
    return f"The strategy is {await live.talk.strategy_in_force() or 'unknown'}."


async def _rename(desk: PageDesk, live: LiveConversation, words: str) -> None:
    if live.talk.id is None:
        raise Invalid("a new conversation has no title yet: send a message first")
    await desk.rename(live.talk.id, words)


async def _document(desk: PageDesk, live: LiveConversation, words: str) -> str:
    opened = await live.talk.open_document(words or None)
    return f"{opened} goes with every message." if opened else "No document goes with every message any more."


async def _remember(desk: PageDesk, live: LiveConversation, words: str) -> str:
    return f"Written into {await live.talk.remember_in_project(words)}."


OWN = {
    "compact": _compact,
    "regenerate": _regenerate,
    "model": _model,
    "strategy": _strategy,
    "rename": _rename,
    "document": _document,
    "remember": _remember,
}
"""Commands with a function of their own on the page."""
SLASH = {action.word: action.slash.help for action in offered("slash") if action.slash}
COMMANDS = {name: Command(SLASH.get(name, REMEMBER), run) for name, run in OWN.items()} | {
    action.word: _made(action) for action in offered("page")
}


class Completions:
    """`[[` offers notes and headings, `/` commands."""

    def __init__(self, talk: Callable[[], AsyncTalk]) -> None:
        self._talk = talk
        self._cached: dict[Path, CachedSuggestions] = {}

    async def find(self, token: str, following: str) -> list[dict[str, str]]:
        """Completions of the word before the cursor; `following` is the text after it."""
        if token.startswith("[["):
            before, after = "[[", "" if following.startswith("]]") else "]]"
            found = await asyncio.to_thread(self._notes, token[2:])
        else:
            before, after = "/", " "
            names = [name for name in COMMANDS if name.startswith(token[1:])]
            found = [Suggestion(name, name, f"/{name}", COMMANDS[name].help) for name in names]
        return [
            {"insert": f"{before}{each.insert}{after}", "shown": each.shown, "about": each.meta}
            for each in found[:MOST_OFFERED]
        ]

    def _notes(self, typed: str) -> list[Suggestion]:
        vault = self._talk().vault
        if vault is None or "|" in typed:
            return []
        name, sign, heading = typed.rpartition("#")
        if sign:
            found = note_headings(vault, name, heading)
            return [Suggestion(each.key, f"{name}#{each.insert}", each.shown, each.meta) for each in found]
        if vault.root not in self._cached:
            self._cached[vault.root] = CachedSuggestions(lambda: note_names(vault), PATIENCE_S)
        return self._cached[vault.root].best(typed.lstrip())
