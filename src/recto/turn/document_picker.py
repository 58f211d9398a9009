"""DocumentPicker: the documents that a message names and the one that is open beside the chat.

Small documents are inserted whole, larger ones in part; a model with a reading tool fetches large ones itself."""

import asyncio
import hashlib
from pathlib import Path

from recto.chat.message import Message
from recto.errors import RectoError
from recto.settings.settings import ReferenceSettings
from recto.sources.documents import (
    UNREADABLE_TEXT,
    ImportRoots,
    NamedDocument,
    fenced_document,
    may_name_documents,
    resolve_documents,
)
from recto.sources.source import Insert, Pick
from recto.sources.vault_tools import READ_DOCUMENT
from recto.turn.citations import Citations
from recto.turn.context import TurnContext
from recto.turn.planned_request import count_current
from recto.turn.token_cache import TokenCache
from recto.turn.turn import Picker, Room, Turn, VolatilePicks
from recto.vault.document import Document
from recto.vault.note_chunks import parts_text, relevant_parts

# Shares of the unused room. A model with a reading tool fetches larger documents itself.
SHARE_WITH_TOOLS, SHARE_WITHOUT_TOOLS = 0.20, 0.60
# Rough tokens per letter, for choosing sections; the chosen ones are counted.
PER_LETTER = 0.3
LEAST = 60
OPEN = "the document that is open"


class DocumentPicker(Picker):
    def __init__(self, turn: Turn, citations: Citations, settings: ReferenceSettings, project: Path) -> None:
        super().__init__()
        self._session, self._citations, self._settings, self._project = turn.session, citations, settings, project
        self._named: list[NamedDocument] = []
        self._opened: Document | None = None

    async def annotate(self, message: Message, context: TurnContext) -> Message:
        """Adds the documents that the message names. If the vault fails, that is noted, and the turn goes on."""
        if self._session.is_guest or (self._session.document is None and not may_name_documents(message.text)):
            return message
        return await asyncio.to_thread(self._annotate, message, context.reader)

    def _annotate(self, message: Message, reader: str | None) -> Message:
        vault, path = self._session.vault, self._session.document
        roots = ImportRoots(self._project, vault.root if vault else None, self._settings.outside)
        try:
            self._named = resolve_documents(message.text, vault, roots)
            if vault and path:  # open beside the chat
                try:
                    self._opened = vault.read(path)
                except RectoError as why:
                    self.notes.append(f"{path} could not be read: {why.message}")
            return self._citations.with_references(message, self._named, reader, self._opened)
        except (RectoError, OSError) as why:
            self.notes.append(f"the linked documents could not be read: {why}")
            return message

    @property
    def wants_room(self) -> bool:
        return bool(self._named or self._opened)

    async def volatile(self, message: Message, context: TurnContext, room: Room) -> VolatilePicks:
        inserts = await self._documents(message, context, room.unused)
        opened = self._opened
        if opened and not any(pick.name == opened.path for each in inserts for pick in each.picks):
            counted = await count_current(context.token_cache, message, [*room.inserts, *inserts])
            free = max(0, room.free - counted.counted.count.tokens)
            if insert := await _open_insert(context.token_cache, opened, free):
                inserts.append(insert)
            else:
                self.notes.append(f"{opened.path} does not fit in the window and was left out")
        return VolatilePicks(tuple(inserts))

    async def _documents(self, message: Message, context: TurnContext, unused: int) -> list[Insert]:
        token_cache, inserts = context.token_cache, list[Insert]()
        self.notes += [each.problem for each in self._named if each.problem]
        left = int(unused * (SHARE_WITH_TOOLS if context.reader else SHARE_WITHOUT_TOOLS))
        for each in self._named:
            if each.path is None:
                continue
            how = "named as" if each.wikilink.startswith("@") else "linked as"
            because = f"{how} {each.wikilink}" + (", that part of it" if each.part is not None else "")
            whole = fenced_document(each.path, each.text)
            tokens = await token_cache.tokens_of(whole)
            if tokens <= left or each.text == UNREADABLE_TEXT:
                inserts.append(_insert(each.path, whole, because))
                left -= tokens
            elif context.reader:
                large = f"{each.path} takes {tokens} tokens, more than documents may"
                self.notes.append(f"{large}: the model can read it with {READ_DOCUMENT}")
            elif part := await _relevant(token_cache, Document(each.path, each.text), message.text, left):
                text, of = part
                inserts.append(_insert(each.path, text, f"{because}; {of}"))
                self.notes.append(f"{each.path} does not fit whole ({tokens} tokens): the model sees {of}")
                left -= await token_cache.tokens_of(text)
            else:
                self.notes.append(f"{each.path} does not fit in the window and was left out")
        return inserts


async def _open_insert(token_cache: TokenCache, document: Document, room: int) -> Insert | None:
    """Inserts as much of the beginning as fits."""
    path, keep, because = document.path, len(document.text), OPEN
    text = fenced_document(path, document.text)
    while (tokens := await token_cache.tokens_of(text)) > room:
        # a tenth less than in proportion: tokens are not spread evenly over a text
        keep = int(keep * room / tokens * 0.9)
        if room < LEAST or keep < LEAST:
            return None
        text, because = fenced_document(path, document.text[:keep] + "\n[cut here]"), f"{OPEN}; cut to fit"
    return _insert(path, text, because)


def _insert(path: str, text: str, because: str) -> Insert:
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return Insert("documents", text, (Pick("document", path, because, mode="manual", sha256=sha256),))


async def _relevant(token_cache: TokenCache, document: Document, question: str, room: int) -> tuple[str, str] | None:
    """The relevant sections that fit, and how much of the document they are."""
    aim = room
    for _ in range(3):
        chosen = relevant_parts(document, question, room=aim, count=lambda text: int(len(text) * PER_LETTER) + 1)
        if not chosen:
            return None
        text = fenced_document(document.path, parts_text(document, chosen))
        tokens = await token_cache.tokens_of(text)
        if tokens <= room:
            return text, f"{len(chosen)} relevant part{'s' * (len(chosen) > 1)} of it"
        aim = int(aim * room / tokens * 0.95)
    return None
