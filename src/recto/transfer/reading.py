"""A conversation as people read it: its messages in order, each reply with its context, then the other branches.

Words only; `markdown_form.py` and `html_page.py` give them their form.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from recto.chat.blocks import Compaction, DocumentReference
from recto.chat.compaction_words import archived_in_words, writer_in_words
from recto.chat.conversation import Conversation
from recto.chat.message import Message
from recto.errors import Altered, NotFound
from recto.sources.source import Pick
from recto.store.records import Record
from recto.store.store import Store

PAGE = 200
_ID = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")
_ALONE = ("pin", "unpin")
"""Actions that leave the summary as it was."""
ROLES = {"user": "You", "assistant": "Assistant", "system": "System", "tool": "Tools"}


class ReadPick(Struct, frozen=True):
    name: str
    about: str
    """How it came in, why, and how large it is."""
    is_chosen: bool
    """Whether it came in for this message, or by hand: the others are there always."""


class ReadSection(Struct, frozen=True):
    name: str
    tokens: int
    picks: tuple[ReadPick, ...]


class ReadContext(Struct, frozen=True):
    """What was in the window of a reply."""

    line: str
    sections: tuple[ReadSection, ...] = ()
    notes: tuple[str, ...] = ()


class ReadMessage(Struct, frozen=True):
    message: Message
    context: ReadContext | None = None


class ReadBranch(Struct, frozen=True):
    after: int
    """The number of the message that it follows; 0 for the beginning."""
    messages: tuple[ReadMessage, ...]


class ConversationText:
    def __init__(self, store: Store, id: str) -> None:
        self._store = store
        self.conversation: Conversation = store.tree.conversation(id)

    def messages(self) -> Iterator[ReadMessage]:
        """The path of the conversation, oldest first."""
        head = self.conversation.head
        ids = [message.id for message in self._up(head)][::-1] if head else []
        for start in range(0, len(ids), PAGE):
            for message in self._store.tree.messages(ids[start : start + PAGE]):
                yield self._read(message)

    def branches(self) -> Iterator[ReadBranch]:
        """What was said besides, the newest branch first. Compactions at the end of one are no branch of their own."""
        head = self.conversation.head
        if head is None:
            return
        for leaf in self._store.tree.leaves(self.conversation.id):
            if leaf.id == head:
                continue
            beside: list[Message] = []
            after = 0
            for message in self._up(leaf.id):
                if self._store.tree.is_on(head, message.id):
                    after = message.said
                    break
                beside.append(self._store.tree.message(message.id))
            if any(message.compaction is None for message in beside):
                yield ReadBranch(after, tuple(self._read(message) for message in reversed(beside)))

    def _up(self, start: str) -> Iterator[Message]:
        at: str | None = start
        while at is not None:
            page = self._store.tree.bare_page(at, most=PAGE)
            yield from page
            at = page[-1].parent if page else None

    def _read(self, message: Message) -> ReadMessage:
        return ReadMessage(message, self._context(message) if message.request else None)

    # -- the context of a reply

    def _context(self, message: Message) -> ReadContext | None:
        assert message.request is not None
        try:
            record = self._store.records.record(message.request)
        except (Altered, NotFound) as why:
            return ReadContext(f"Its context can no longer be read: {why.message}")
        account = record.account
        names = self._numbers(record)
        sections = tuple(
            ReadSection(section.name, section.tokens, tuple(_pick(pick, names) for pick in section.picks))
            for section in account.sections or ()
        )
        notes = tuple(_numbered(note, names) for note in account.notes or ())
        return ReadContext(_line(record, message), sections, notes)

    def _numbers(self, record: Record) -> dict[str, str]:
        ids: set[str] = set()
        for pick in record.account.picks():
            ids.update(_ID.findall(f"{pick.name} {pick.because}"))
        for note in record.account.notes or ():
            ids.update(_ID.findall(note))
        return {id: f"#{number}" for id, number in self._store.tree.numbers(ids, self.conversation.head).items()}


def _line(record: Record, message: Message) -> str:
    account, usage = record.account, message.usage
    counted = "" if account.exact else "about "
    size = f"{counted}{account.total:,} of {account.limit:,} tokens" if account.total and account.limit else ""
    made = f"compaction {account.compaction}" if account.compaction else ""
    cached = f", {usage.cache_read:,} from caches" if usage and usage.cache_read else ""
    reported = f"{usage.input:,} in{cached}, {usage.output:,} out" if usage and usage.reported else ""
    return " · ".join(part for part in (size, account.model or "", account.strategy or "", made, reported) if part)


def _pick(pick: Pick, names: dict[str, str]) -> ReadPick:
    name = f"{pick.server}:{pick.name}" if pick.server else pick.name
    score = f" {pick.score:.2f}" if pick.score is not None and pick.mode == "agent" else ""
    parts = (f"{pick.mode}{score}", _numbered(pick.because, names), f"{pick.tokens:,} tokens" if pick.tokens else "")
    return ReadPick(_numbered(name, names), "; ".join(part for part in parts if part), pick.mode != "always")


def _numbered(text: str, names: dict[str, str]) -> str:
    return _ID.sub(lambda found: names.get(found[0], found[0]), text)


# -- words for both forms


def ended_in_words(message: Message) -> str:
    """How a message ended that has an error."""
    return "Stopped" if message.status == "stopped" else "Failed"


def headline(message: Message) -> str:
    """Who and when: `#12 Assistant · 2026-01-31 12:00 UTC · openai:gpt-5`."""
    when = f"{message.time[:16].replace('T', ' ')} UTC" if message.time else ""
    marks = [message.status if message.status in ("unfinished", "stopped", "error") else "", message.model or ""]
    tokens = f"{message.tokens.own:,} tokens" if message.tokens.own is not None else ""
    return " · ".join(part for part in (f"#{message.said} {ROLES[message.role]}", when, *marks, tokens) if part)


def compaction_line(block: Compaction) -> str:
    archived = archived_in_words(block.messages_archived, block.context_size_before, block.context_size_after)
    parts = (f"Compaction {block.compaction_number}: {archived}", writer_in_words(block), block.because)
    return " · ".join(part for part in parts if part)


def shown_summary(block: Compaction) -> str:
    """The summary, where this block wrote one."""
    return "" if block.action in _ALONE else block.summary


def reference_words(reference: DocumentReference) -> str:
    if reference.relative_path is None:
        return f"{reference.wikilink} {reference.problem}"
    how = " (found)" if reference.reference_type == "search" else ""
    about = f": {reference.summary}" if reference.summary else ""
    return f"{reference.wikilink} {reference.relative_path}{how}{about}"


def one_line(text: object) -> str:
    return " ".join(str(text).split())


def facts(conversation: Conversation) -> Iterator[tuple[str, str]]:
    yield "Conversation", conversation.id
    yield "Begun", f"{conversation.created[:16].replace('T', ' ')} UTC"
    yield "Last used", f"{conversation.updated[:16].replace('T', ' ')} UTC"
    yield "Agent", conversation.agent
    for name in ("model", "strategy", "vault"):
        if value := conversation.details.get(name):
            yield name.capitalize(), one_line(value)
