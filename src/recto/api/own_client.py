"""AsyncOwnClient: a conversation whose requests the caller sends itself: extend, prepare, record. Part of AsyncTalk."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Unpack

from msgspec import Struct
from msgspec.structs import replace

from recto.api.arguments import checked_door
from recto.api.ask_options import AskOptions, Reply, call_options, reply_of, with_attachments
from recto.api.client_turn import (
    ClientTurn,
    ExtendedPath,
    GivenReply,
    answer_turn,
    extend_path,
    plain_reply,
    prepare_turn,
)
from recto.api.event_log import log_event
from recto.api.talk_reports import AsyncTalkReports
from recto.base.ids import new_id
from recto.base.text import shown
from recto.errors import Invalid, RectoError
from recto.events import ContextCompacted, Event, Noticed
from recto.providers.client_formats import client_format_of, read_client_reply
from recto.providers.model import Done, ReplyPart, TextPart
from recto.turn.context import Summarizer
from recto.turn.emitting import told
from recto.turn.messages import AnswerAgain, Given, user_message
from recto.turn.session import PROJECT, SETTINGS, ChatSession, NewConversation, SessionChanges
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
        block = self.turn.turn.loaded.view.compaction
        return block.because if block else self.window.plan.because

    @property
    def archived(self) -> int:
        """How many earlier messages are not sent word for word."""
        block = self.turn.turn.loaded.view.compaction
        return block.messages_archived if block else 0


class PrepareOptions(AskOptions, total=False):
    """Options of one request; `tools` are those that the caller runs."""

    system: str | None
    """Instructions in place of those of agent and settings, and of system messages that were given."""
    summarizer: Summarizer | None
    """An asynchronous function that writes summaries: it gets the messages of the request for one."""


@checked_door
class AsyncOwnClient(AsyncTalkReports):
    _system: str | None = None
    _extended: tuple[str, ...] = ()

    async def _keep(self, **details: Any) -> None:
        if self.id is not None:
            await self._engine.store_thread.do(self._tree.change, self.id, details=details)

    def _begun(self) -> ChatSession:
        """The session; a new conversation is stored with its first message."""
        session = self.session
        if self.id is None and session.creation is None:
            session.apply(creation=NewConversation(new_id(), self._create))
        return session

    async def _stored(self) -> ChatSession:
        """The session of a conversation that is in the store, for what is set before its first message."""
        session = self._begun()
        if session.creation is not None:
            await self._engine.store_thread.do(session.commit, self._engine.store, _no_step)
        return session

    def _create(self, id: str) -> None:
        session = self.session
        details: dict[str, Any] = {"model": session.model} if session.model else {}
        if session.vault and self._settings.origin("vault") == "option":
            details["vault"] = str(session.vault.root)
        if session.project:
            details[PROJECT] = str(session.project)
        if session.chosen:
            details[SETTINGS] = dict(session.chosen)
        self._number = self._tree.create(id=id, details=details, agent=session.agent).number

    # -- your own client

    async def extend(self, messages: Sequence[Json]) -> ExtendedPath:
        """Stores messages as OpenAI's or Anthropic's API takes them: those that are new. A list that was given before
        changes nothing, and one that differs goes on as a branch. System messages are kept for `prepare`."""
        system, entries = read_given(messages)
        session = self._begun()
        async with session.turn_lock():
            extended = await extend_path(self._engine, session, entries)
        self._system = system if system is not None else self._system
        self._extended = (*self._extended, *extended.notes)
        return extended

    async def prepare(self, given: Given | None = None, **options: Unpack[PrepareOptions]) -> PreparedRequest:
        """The request for a message, or for what was given to `extend`: stored, compacted where it is due, with what
        is recalled, and recorded. Nothing is sent, and no model is asked."""
        system, summarizer = options.pop("system", None), options.pop("summarizer", None)
        if summarizer is not None and not callable(summarizer):
            raise Invalid(f"summarizer must be a function, not {shown(summarizer)}", option="summarizer")
        asked: AskOptions = options
        chosen = replace(
            call_options(**asked),
            system=system if system is not None else self._system,
            runs_tools=False,
            may_send=False,
            summarizer=summarizer,
            notes=self._extended,
        )
        start = AnswerAgain() if given is None else await with_attachments(given, asked.get("attachments", ()))
        user_message(start)  # refused before a conversation is made for it
        session = self._begun()
        notes: list[str] = []

        async def note(event: Event) -> None:
            log_event(event)
            notes.extend(_noted(event))

        async with session.turn_lock():
            try:
                turn = await prepare_turn(self._engine, session, start, note, chosen)
            except RectoError as why:
                why.add(f"your message is kept in {self.name}")
                raise
        self._extended = ()
        return prepared_request(turn, notes)

    async def record(self, prepared: PreparedRequest, reply: Any) -> Reply:
        """Stores the reply to a prepared request: the object or the dict that the provider's API gave, or a text. Its
        tool calls wait for their results, which the next message carries."""
        if not isinstance(prepared, PreparedRequest):
            raise Invalid(f"prepared is what prepare gave, not {shown(prepared)}", argument="prepared")
        parts, session = reply_parts(reply), await self._stored()
        async with session.turn_lock():
            provider = GivenReply(prepared.turn.turn.context.provider, parts)
            answering = partial(answer_turn, self._engine, session, prepared.turn, provider)
            answered = await reply_of(told(answering))
        pending = tuple(call for call in answered.message.calls if answered.message.status == "pending")
        return replace(answered, pending_calls=pending)


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
    window = waiting.turn.window
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


def _noted(event: Event) -> Sequence[str]:
    if isinstance(event, Noticed):
        return (event.text,)
    return event.notes if isinstance(event, ContextCompacted) else ()


def _no_step() -> tuple[None, SessionChanges]:
    return None, {}
