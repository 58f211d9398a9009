"""AsyncOwnClient: a conversation whose requests the caller sends itself: extend, prepare, record. Part of AsyncTalk."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from recto.api.ask_options import AskOptions
from recto.api.client_turn import (
    ClientTurn,
    plain_reply,
)
from recto.base.text import shown
from recto.errors import Invalid
from recto.events import ContextCompacted, Event, Noticed
from recto.providers.client_formats import client_format_of, read_client_reply
from recto.providers.model import Done, ReplyPart, TextPart
from recto.turn.context import Summarizer
from recto.window.request import Entry
from recto.window.window import Window
from recto.wire import Json, loads


class PreparedRequest(Struct, frozen=True):
    """What to send, as the provider's API takes it. It is recorded: the reply goes to `talk.record`."""

    request_id: str
    messages: list[Json]
    tools: list[Json]
    system: Json
    """Anthropic's, which stands beside the messages; None for OpenAI's."""
    window: Window
    """What is in it, section by section, with reasons."""
    notes: tuple[str, ...]
    turn: ClientTurn

    @property
    def tokens(self) -> int:
        return self.window.total

    @property
    def because(self) -> str:
        """Why messages are left out, or that all are there."""
        block = self.turn.planned.loaded.view.compaction
        return block.because if block else self.window.plan.because

    @property
    def archived(self) -> int:
        """How many earlier messages are not sent word for word."""
        block = self.turn.planned.loaded.view.compaction
        return block.messages_archived if block else 0


class PrepareOptions(AskOptions, total=False):
    """Options of one request; `tools` are those that the caller runs."""

    system: str | None
    """Instructions in place of those of agent and settings, and of system messages that were given."""
    summarizer: Summarizer | None
    """An asynchronous function that writes summaries: it gets the messages of the request for one."""


def read_given(messages: Sequence[Json]) -> tuple[str | None, list[Entry]]:
    """A client's messages as ours: the texts of leading instructions, and the others; results of one round together."""
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):
        raise Invalid(f"messages must be a list, not {shown(messages)}", argument="messages")
    read = client_format_of(messages).read_messages(messages)
    entries = [entry for group in read for entry in group if entry.blocks]
    system = [entry for entry in entries if entry.role == "system"]
    said: list[Entry] = []
    for entry in entries:
        if entry.role == "tool" and said and said[-1].role == "tool":
            said[-1] = Entry("tool", said[-1].blocks + entry.blocks)
        elif entry.role != "system":
            said.append(entry)
    texts = ["".join(getattr(block, "text", "") for block in entry.blocks) for entry in system]
    return "\n\n".join(texts) if texts else None, said


def prepared_request(waiting: ClientTurn, notes: Sequence[str]) -> PreparedRequest:
    body = loads(waiting.request.body)
    window = waiting.planned.window
    return PreparedRequest(
        waiting.request.id,
        body["messages"],
        body.get("tools") or [],
        body.get("system"),
        window,
        tuple(dict.fromkeys((*notes, *window.notes))),
        waiting,
    )


def reply_parts(reply: Any) -> list[ReplyPart]:
    """A reply as the parts that its stream would yield."""
    if isinstance(reply, str):
        return [TextPart(reply), Done("stop")]
    plain = plain_reply(reply)
    if not isinstance(plain, Mapping):
        raise Invalid(f"a reply is a text, or what the provider's API gave, not {shown(reply)}", argument="reply")
    return read_client_reply(dict(plain))


def notes_of(event: Event) -> Sequence[str]:
    if isinstance(event, Noticed):
        return (event.text,)
    return event.notes if isinstance(event, ContextCompacted) else ()
