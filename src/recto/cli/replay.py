"""Plays a stored conversation as the chat showed it, at reading speed."""

import re
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING

from recto.chat.blocks import Text
from recto.cli import show
from recto.cli.ask import open_listener
from recto.cli.listener import follow
from recto.events import Appended, Event, TextDelta, ThinkingDelta

if TYPE_CHECKING:
    from recto.api.store_queries import StoreQueries

MAX_PAUSE_S = 4.0
PROMPT = "› "
STOPPED = "playback stopped"
_WORD = re.compile(r"\S*\s*")


def play(reader: "StoreQueries", id: str | None, *, rate: float | None, thinking: bool, shows_context: bool) -> None:
    """Play a conversation at `rate` words per second, None without pauses. Ctrl-C ends it."""
    try:
        for said, events in turns(reader.playback(id)):
            if said is not None:
                _tell_message(said)
                if rate is not None:
                    time.sleep(min(MAX_PAUSE_S, len(said.message.text.split()) / rate))
            context = reader.numbered if shows_context else None
            listener = open_listener(thinking=thinking, context=context, stopped=STOPPED)
            follow(paced(events, rate), listener)
    except KeyboardInterrupt:
        return


def turns(events: Iterable[Event]) -> Iterator[tuple[Appended | None, list[Event]]]:
    """The user's messages, each with the events up to the next."""
    said: Appended | None = None
    following: list[Event] = []
    for event in events:
        if not isinstance(event, Appended):
            following.append(event)
            continue
        if said or following:
            yield said, following
        said, following = event, []
    if said or following:
        yield said, following


def paced(events: Iterable[Event], rate: float | None, sleep: Callable[[float], None] = time.sleep) -> Generator[Event]:
    """The events, with texts word by word at this rate; None without pauses."""
    for event in events:
        if rate is None or not isinstance(event, TextDelta | ThinkingDelta):
            yield event
            continue
        for word in filter(None, _WORD.findall(event.text)):
            yield type(event)(word)
            sleep(1 / rate)


def _tell_message(said: Appended) -> None:
    message = said.message
    attached = [f"[{block.type}]" for block in message.blocks if block.type in ("file", "image")]
    sign = f"({message.role}) " if message.role != "user" else PROMPT
    # an import may split a message where its file lacks something
    words = "\n".join(block.text for block in message.blocks if isinstance(block, Text))
    show.say_words(f"\n{sign}{' '.join((words, *attached))}", bold=True)
