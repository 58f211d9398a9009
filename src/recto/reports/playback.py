"""Playback: the events of a stored conversation's turns, without an engine: nothing is sent, stored or compacted."""

from collections.abc import Iterator

from recto.chat.blocks import Compaction, References, Text, Thinking, ToolCall
from recto.chat.message import Message
from recto.errors import Altered, NotFound
from recto.events import (
    Appended,
    ContextCompacted,
    Event,
    NotesQuoted,
    Noticed,
    Referenced,
    Replied,
    Sent,
    SummaryRequested,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolStarted,
)
from recto.store.store import Store
from recto.window.plan import NOTHING, Plan
from recto.window.window import Window

PAGE = 200


def playback_events(store: Store, head: str | None) -> Iterator[Event]:
    """Oldest first. If a record can no longer be read, its window is empty."""
    player = _Player(store)
    for message in _path(store, head):
        yield from player.events(message)


def _path(store: Store, head: str | None) -> Iterator[Message]:
    """Only the ids of a long path are in memory."""
    ids: list[str] = []
    at = head
    while at is not None:
        page = store.tree.bare_page(at, most=PAGE)
        ids += [message.id for message in page]
        at = page[-1].parent if page else None
    ids.reverse()
    for start in range(0, len(ids), PAGE):
        yield from store.tree.messages(ids[start : start + PAGE])


class _Player:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._calls: dict[str, ToolCall] = {}

    def events(self, message: Message) -> Iterator[Event]:
        if block := message.compaction:
            yield from _compaction(block)
        elif message.role == "assistant":
            yield from self._reply(message)
        elif message.role == "tool":
            for result in message.results:
                call = self._calls.get(result.call_id) or ToolCall(result.call_id, result.name, "")
                yield ToolFinished(call, result)
        else:
            yield Appended(message)
            if message.references:
                yield Referenced(message)

    def _reply(self, message: Message) -> Iterator[Event]:
        window = self._window(message)
        if message.request:
            yield Sent(message.request, window)
        for block in message.blocks:
            match block:
                case Thinking(text=text) if text:
                    yield ThinkingDelta(text)
                case Text(text=text):
                    yield TextDelta(text)
                case ToolCall():
                    self._calls[block.id] = block
                    yield ToolStarted(block)
                case References(quotes=quotes, vault=vault) if quotes:
                    yield NotesQuoted(quotes, vault)
                case _:
                    pass
        yield Replied(message, window, message.request or "")
        if message.status in ("stopped", "error", "unfinished"):
            yield Noticed(f"this reply was not finished: {message.error or message.status}")

    def _window(self, message: Message) -> Window:
        """The window in the message's record."""
        try:
            account = self._store.records.record(message.request).account if message.request else None
        except (Altered, NotFound):
            account = None
        model, strategy = (account.model, account.strategy) if account else (message.model, None)
        return Window(
            conversation="",
            model=model or "",
            strategy=strategy or "",
            limit=account.limit or 0 if account else 0,
            reserve=account.reserve or 0 if account else 0,
            exact=bool(account and account.exact),
            sections=account.sections or () if account else (),
            plan=Plan(strategy or "", NOTHING, ""),
        )


def _compaction(block: Compaction) -> Iterator[Event]:
    if block.action != "compact":
        yield Noticed(f"{block.action}: {block.because}" if block.because else block.action)
        return
    if block.made and block.made_by == "model":
        yield SummaryRequested(block.context_size_before, block.context_size_before, block.made.model)
    yield ContextCompacted.of(block)
