"""The complete form of conversations: JSON lines that give the same store again. Written and read line by line.

A conversation is the same bytes in every export that holds it, whatever else does.
"""

import hashlib
import json
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from recto.base.text import clean
from recto.chat.blocks import Compaction
from recto.chat.conversation import Conversation
from recto.chat.message import Message
from recto.errors import Invalid, TooNew
from recto.store.conversation_copy import ConversationCopies, StoredBytes, StoredItem, StoredRequest
from recto.transfer.incoming import IncomingConversation
from recto.transfer.lines import (
    FORMAT,
    VERSION,
    AnyLine,
    ConversationLine,
    EndLine,
    HeaderLine,
    conversation_of_line,
    decode_line,
    encode_line,
    item_of,
    line_of,
)
from recto.transfer.report import ImportFormat

MAX_LINE_BYTES = 1 << 28
"""Of one line: a larger attachment could not be sent either."""


# -- writing


def json_lines(copies: ConversationCopies, ids: Sequence[str]) -> Iterator[bytes]:
    yield encode_line(HeaderLine(VERSION, len(ids)))
    for id in ids:
        yield from conversation_lines(copies, id)


def conversation_lines(copies: ConversationCopies, id: str) -> Iterator[bytes]:
    found = copies.find(id)
    if found is None:
        raise Invalid(f"conversation {id} was deleted meanwhile", id=id)
    yield from ended(found, copies.read(id))


def ended(conversation: Conversation, items: Iterable[StoredItem]) -> Iterator[bytes]:
    """The lines of a conversation with their end."""
    messages = requests = 0
    digest = hashlib.sha256()
    for each in chain((conversation,), items):
        messages += isinstance(each, Message)
        requests += isinstance(each, StoredRequest)
        data = encode_line(line_of(each))
        digest.update(data)
        yield data
    yield encode_line(EndLine(messages, requests, digest.hexdigest()))


# -- reading


class RectoFile:
    """An export of Recto. Everything is checked while it is read: an error names the line."""

    name: ImportFormat = "recto"

    def __init__(self, path: Path) -> None:
        self._path = path
        self.size = path.stat().st_size

    def conversations(self) -> Generator[IncomingConversation, None, None]:
        with self._path.open("rb") as file:
            reader = _LineReader(file, self._path.name)
            header = reader.header()
            for number in range(1, header.conversations + 1):
                yield from self._conversation(reader, f"conversation {number} of {header.conversations}")
            reader.finish()

    def _conversation(self, reader: "_LineReader", place: str) -> Iterator[IncomingConversation]:
        """One, and makes sure that it was read to its end."""
        items = _Items(reader, place)
        found, notes = items.conversation, _rights(items.conversation)
        yield IncomingConversation(found, items, items.place, reader.position, is_complete=True, notes=notes)
        for _ in items:
            pass


def _rights(conversation: Conversation) -> tuple[str, ...]:
    """What a conversation from elsewhere brings along that its next message would use: to be looked at before."""
    sources, vault = conversation.details.get("sources"), conversation.details.get("vault")
    allowed = sources.get("allowed") if isinstance(sources, dict) else None
    named = ", ".join(map(str, allowed)) if isinstance(allowed, dict) else ""
    return tuple(
        note
        for note in (
            f"these tools run in it without asking, if they are what was allowed there: {named}" if named else "",
            f"its messages are sent with notes of {vault}" if vault else "",
        )
        if note
    )


class _LineReader:
    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self.name = file, name
        self.number = 0
        self.position = 0
        self.ids: set[str] = set()
        """Of everything that was read."""

    def read(self, expected: str) -> tuple[bytes, AnyLine]:
        """The next line. `expected` is told where the file ends before it."""
        data = self._file.readline(MAX_LINE_BYTES + 1)
        if not data:
            raise self.error(f"the file ends here; {expected} is missing, so it was cut off", after=True)
        self.number += 1
        self.position += len(data)
        if len(data) > MAX_LINE_BYTES:
            raise self.error(f"it is longer than {MAX_LINE_BYTES:,} bytes")
        if not data.endswith(b"\n"):
            raise self.error("it has no end, so the file was cut off")
        try:
            line = decode_line(data)
            if rb"\u0000" in data and _has_nul(json.loads(data)):
                raise ValueError("it holds the character NUL, which cannot be stored")
            return data, line
        except RecursionError:
            raise self.error("it is nested too deeply") from None
        except ValueError as why:
            raise self.error(str(why)) from why

    def note_id(self, id: str) -> None:
        if id in self.ids:
            raise ValueError(f"{id} is there twice - at `$.id`")
        self.ids.add(id)

    def header(self) -> HeaderLine:
        """The first line. Its version is read before anything else: a newer one may have other fields."""
        try:
            first = json.loads(self._file.readline(MAX_LINE_BYTES + 1))
        except (ValueError, RecursionError):
            first = None
        self._file.seek(0)
        if not isinstance(first, dict) or first.get("type") != FORMAT:
            self.number = 1
            raise self.error("it is not the first line of an export of Recto")
        version = first.get("version")
        if isinstance(version, int) and version > VERSION:
            newer = f"version {version}, this one knows {VERSION}"
            raise TooNew(f"{self.name} was written by a newer Recto ({newer}); upgrade Recto to import it")
        _, line = self.read("its header")
        assert isinstance(line, HeaderLine)
        if line.version != VERSION:
            raise self.error(f"the version {line.version} is unknown - at `$.version`")
        return line

    def finish(self) -> None:
        if self._file.readline(1):
            self.number += 1
            raise self.error("there are more conversations than the first line says")

    def error(self, why: str, *, after: bool = False) -> Invalid:
        where = f"after line {self.number:,}" if after else f"line {self.number:,}"
        return Invalid(f"{self.name}, {where}: {clean(why)[0]}; nothing was imported", line=self.number)


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_has_nul(key) or _has_nul(each) for key, each in value.items())
    return isinstance(value, list) and any(map(_has_nul, value))


class _Items:
    """The items of a conversation, read from its lines; checks what they refer to, and their end."""

    def __init__(self, reader: _LineReader, place: str) -> None:
        data, line = reader.read(place)
        if not isinstance(line, ConversationLine):
            raise reader.error(f"{place} should begin here")
        self._reader = reader
        self._digest = hashlib.sha256(data)
        self._first = reader.number
        self._messages: set[str] = set()
        self._requests: set[str] = set()
        self._is_over = False
        self.place = f"{reader.name}, line {reader.number:,}"
        try:
            self.conversation = conversation_of_line(line)
            reader.note_id(line.id)
        except ValueError as why:
            raise reader.error(str(why)) from why

    def __iter__(self) -> Iterator[StoredItem]:
        while not self._is_over:
            data, line = self._reader.read(f"the end of the conversation of line {self._first:,}")
            if isinstance(line, EndLine):
                self._end(line)
                return
            if isinstance(line, HeaderLine | ConversationLine):
                raise self._reader.error(f"the conversation of line {self._first:,} has not ended")
            self._digest.update(data)
            try:
                item = item_of(line)
                self._check(item)
            except ValueError as why:
                raise self._reader.error(str(why)) from why
            yield item

    def _check(self, item: StoredItem) -> None:
        """Raises ValueError where it refers to something that did not come before."""
        if isinstance(item, StoredBytes):
            return
        self._reader.note_id(item.id)
        if isinstance(item, Message):
            self._check_named("parent", self._messages, item.parent)
            self._check_named("request", self._requests, item.request)
            if block := item.compaction:
                self._check_compaction(block)
            self._messages.add(item.id)
        elif isinstance(item, StoredRequest):
            self._check_named("message", self._messages, item.message)
            self._check_named("base", self._requests, item.base)
            self._requests.add(item.id)

    @staticmethod
    def _check_named(name: str, known: set[str], *ids: str | None) -> None:
        for id in ids:
            if id is not None and id not in known:
                raise ValueError(f"{id} does not come before it - at `$.{name}`")

    def _check_compaction(self, block: Compaction) -> None:
        self._check_named("blocks[…].last", self._messages, block.last)
        self._check_named("blocks[…].cleared", self._messages, block.cleared)
        self._check_named("blocks[…].lifted", self._messages, *block.lifted)
        self._check_named("blocks[…].pinned", self._messages, *block.pinned)

    def _end(self, line: EndLine) -> None:
        self._is_over = True
        counted, head = (len(self._messages), len(self._requests)), self.conversation.head
        if (line.messages, line.requests) != counted:
            there = f"{counted[0]:,} messages and {counted[1]:,} requests"
            raise self._reader.error(f"there are {there}, and it says {line.messages:,} and {line.requests:,}")
        if head is not None and head not in self._messages:
            raise self._reader.error(f"the head {head} of the conversation of line {self._first:,} is missing")
        if line.sha256 is not None and line.sha256 != self._digest.hexdigest():
            since = f"lines {self._first:,} to {self._reader.number - 1:,} were changed since they were written"
            raise self._reader.error(f"{since} (a file that you changed on purpose leaves out this line's sha256)")
