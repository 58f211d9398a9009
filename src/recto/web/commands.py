"""Commands that are typed on the page: `/compact`, `/model NAME` and others, each one deed of the talk."""

import re
from collections.abc import Awaitable, Callable

from msgspec import Struct

from recto.errors import Invalid
from recto.providers.embedded import NAME as EMBEDDED
from recto.web.live import LiveConversation
from recto.web.page_desk import PageDesk
from recto.weights import chat_models

_COMMAND = re.compile(r"/([a-z-]+)(?:\s+(.*))?\Z", re.DOTALL)
Run = Callable[[PageDesk, LiveConversation, str], Awaitable[str]]


class PageCommand(Struct, frozen=True):
    help: str
    run: Run
    """Does it, and gives what to tell about it; empty where the page shows it anyway."""


def command_in(text: str) -> tuple[str, str] | None:
    """The name and the words of a command; None for a message, even one that begins with a path."""
    found = _COMMAND.match(text.strip())
    return (found[1], (found[2] or "").strip()) if found else None


async def run_command(desk: PageDesk, live: LiveConversation, name: str, words: str) -> str:
    if name not in COMMANDS:
        raise Invalid(f"there is no command /{name} on the page; it has: {', '.join(f'/{each}' for each in COMMANDS)}")
    told = await COMMANDS[name].run(desk, live, words)
    live.refresh()
    return told


async def _compact(desk: PageDesk, live: LiveConversation, words: str) -> str:
    live.compact(words)
    return ""


async def _uncompact(desk: PageDesk, live: LiveConversation, words: str) -> str:
    live.check_idle()
    await live.talk.uncompact()
    return ""


async def _clear(desk: PageDesk, live: LiveConversation, words: str) -> str:
    live.check_idle()
    await live.talk.clear()
    return ""


async def _undo(desk: PageDesk, live: LiveConversation, words: str) -> str:
    live.check_idle()
    await live.talk.undo()
    return "Your last message and its reply are taken back; both stay in the store."


async def _regenerate(desk: PageDesk, live: LiveConversation, words: str) -> str:
    live.retry()
    return ""


async def _model(desk: PageDesk, live: LiveConversation, words: str) -> str:
    if not words:
        return f"{live.talk.model} answers here; /model NAME changes it."
    own = next((each for each in chat_models() if words in (each.name, each.size)), None)
    await live.talk.use(f"{EMBEDDED}:{own.name}" if own else words)
    return f"{live.talk.model} answers from the next message on."


async def _strategy(desk: PageDesk, live: LiveConversation, words: str) -> str:
    await live.talk.use_strategy(None if words in ("", "default") else words)
    return f"The strategy is {await live.talk.strategy_in_force() or 'unknown'}."


async def _rename(desk: PageDesk, live: LiveConversation, words: str) -> str:
    if live.talk.id is None:
        raise Invalid("a new conversation has no title yet: send a message first")
    await desk.rename(live.talk.id, words)
    return ""


async def _document(desk: PageDesk, live: LiveConversation, words: str) -> str:
    opened = await live.talk.open_document(words or None)
    return f"{opened} goes with every message." if opened else "No document goes with every message any more."


async def _remember(desk: PageDesk, live: LiveConversation, words: str) -> str:
    place = await live.talk.remember_in_project(words)
    return f"Written into {place}."


COMMANDS: dict[str, PageCommand] = {
    "compact": PageCommand("Sum up all but the latest messages now; words say what to keep.", _compact),
    "uncompact": PageCommand("Take the newest compaction back.", _uncompact),
    "clear": PageCommand("Start over for the model; every message stays in the store.", _clear),
    "undo": PageCommand("Take your last message and its reply back.", _undo),
    "regenerate": PageCommand("Another reply to your last message.", _regenerate),
    "model": PageCommand("Who answers, as provider:model, or standard, small or tiny.", _model),
    "strategy": PageCommand("What happens when the window is full; default follows the settings.", _strategy),
    "rename": PageCommand("Another title for this conversation.", _rename),
    "document": PageCommand("A note that goes with every message; nothing closes it.", _document),
    "remember": PageCommand("Add a line to the project's memory file.", _remember),
}
