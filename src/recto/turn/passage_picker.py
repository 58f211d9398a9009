"""PassagePicker: inserts passages of the vault that answer a message, for models that cannot search.

A message that refers to earlier ones is looked up together with the last question and the notes in use. If no note is
near enough, the model and the user see a note about that. Inserted passages are quoted with the reply."""

import asyncio
import hashlib
import logging
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from msgspec.structs import replace

from recto.chat.blocks import Quote
from recto.chat.message import Message
from recto.errors import RectoError
from recto.events import NotesQuoted, Working
from recto.providers.model import Model
from recto.search.passages import split_sentences
from recto.search.terms import COMMON_WORDS
from recto.sentences.priority import is_small_talk
from recto.settings.settings import Settings
from recto.sources.documents import fenced_document, may_name_documents
from recto.sources.source import Insert, Pick
from recto.store.store import Store
from recto.turn.citations import Citations
from recto.turn.context import TurnContext
from recto.turn.messages import StartedTurn
from recto.turn.session import ChatSession
from recto.turn.token_cache import TokenCache
from recto.turn.turn import Picker, Room, Turn, VolatilePicks
from recto.vault.answers import AnswerPassage, FoundPassages, Lookup, answering, asks_itself, part_around
from recto.vault.document import note_name
from recto.vault.note_statements import NoteStatement, note_statements
from recto.vault.question import (
    VaultQuestion,
    asks_for_overview,
    is_arithmetic,
    language_of,
    leans_on_earlier,
    parse_question,
)
from recto.vault.vault import Vault
from recto.vault.vault_answers import find_passages, unread_notes, vault_overview, why_nothing
from recto.vault.vault_search import OpenVaults, VaultSearch

log = logging.getLogger(__name__)

MOST_QUOTES = 3
# How many passages that did not fit are recorded.
MOST_PASSED = 5
# A longer message brings its own text along.
LONGEST = 2_000
# How many user messages a message can refer back to, and how many notes are in use at a time.
EARLIER, LOOKED_BACK, MOST_IN_USE = 3, 12, 3
_NAMES = re.compile(r"\[\[[^\[\]\n]*+\]\]|@(?:\"[^\"\n]*\"|\S+)")
NOTHING = "[The notes of the user do not speak of this.]"
NOTHING_NEAR, NOT_FROM_NOTES = "found nothing near enough", ". The reply is not from your notes"
MOST_TERMS = 6
OVERVIEW = "[The notes of the user are not quoted here. There are {overview}]"
OVERVIEW_TOLD = "you have {overview}. The model has not read them: ask about one, or link it with [[…]]"


# The share of the unused room for passages, their number, and the share for a small model.
SHARE, MOST_PASSAGES, SMALL_SHARE = 0.2, 4, 0.15
QUOTES_ALONE, NOTHING_FOUND = "Your notes are quoted above.", "Nothing near enough was found in your notes."
TOO_SMALL = (
    "{model} is too small to answer from notes. `recto models pull standard`, then `recto models use standard`, gives "
    "you a better model."
)


class FoundAhead(NamedTuple):
    found: FoundPassages
    is_quoted: bool


class PassageSearch:
    """Finds passages for messages, even before a slow model has started."""

    def __init__(self, store: Store, vaults: OpenVaults, settings: Settings) -> None:
        self._store, self._vaults = store, vaults
        self._references, self._tools = settings.references, settings.tools
        self.ahead: dict[str, FoundAhead] = {}
        """The passages found before the model was ready, by message."""

    def finds(self, model: Model) -> bool:
        """True if messages are looked up for the model."""
        return self._is_wanted(self._references.auto, model)

    def quotes(self, model: Model) -> bool:
        return self._is_wanted(self._references.quotes, model)

    def searches(self, model: Model) -> bool:
        """True if messages are looked up, for the model or only for quotes."""
        return self.finds(model) or self._references.quotes == "always"

    def _is_wanted(self, setting: str, model: Model) -> bool:
        return setting == "always" or (setting == "auto" and not (model.tools and self._tools.enabled))

    def working(self, session: ChatSession) -> Working:
        """The slow part of choosing sources: indexing notes, or the choice itself."""
        status = self._vaults.search(session.vault).status if session.vault else None
        left = status.left if status else 0
        return Working("notes", notes=left) if left else Working("sources")

    async def quote_ahead(self, session: ChatSession, started: StartedTurn, model: Model | None) -> NotesQuoted | None:
        """The quotes that come before the model's reply, if Recto searches the notes."""
        vault, message, text = session.vault, started.message, started.message.text
        if vault is None or model is None or model.summarizes or not (self.searches(model) and self.quotes(model)):
            return None
        if started.is_continued or not may_be_answered(text) or may_name_documents(text):
            return None
        found = await self.find(session, message)
        quotes = await asyncio.to_thread(note_quotes, vault, found.passages, found.question)
        self.ahead[message.id] = FoundAhead(found, bool(quotes))
        return NotesQuoted(quotes, str(vault.root), model.name if model.answers_from_notes else "") if quotes else None

    async def find(self, session: ChatSession, message: Message) -> FoundPassages:
        """Searches with the last question and the notes used there too, if the message refers to them."""
        lookup = Lookup(message.text)
        if message.parent and leans_on_earlier(message.text):
            newest = await self._store.do(self._store.tree.page, message.parent, most=LOOKED_BACK)
            lookup = _lookup(message.text, newest)
        return await self.look_up(session, lookup)

    async def look_up(self, session: ChatSession, lookup: Lookup, *, is_named: bool = False) -> FoundPassages:
        """Searches the notes. A failure is reported, and the turn goes on."""
        vault = session.vault
        assert vault is not None
        search = self._vaults.search(vault)
        try:
            return await asyncio.to_thread(_found, vault, search, lookup, is_named)
        except RectoError as why:
            return FoundPassages(warning=f"your notes could not be searched: {why.message}")
        except Exception as why:  # a chat must not fail because of the notes
            log.exception("searching the notes for a message failed")
            return FoundPassages(warning=f"your notes could not be searched ({type(why).__name__}: {why})")


def _found(vault: Vault, search: VaultSearch, lookup: Lookup, is_named: bool) -> FoundPassages:
    """The passages, or why there are none."""
    is_overview = not is_named and asks_for_overview(lookup.text)
    found = find_passages(search, vault.read, lookup, is_named=is_named)
    if found.passages:
        return found
    if why := why_nothing(vault):
        return replace(found, warning=why)
    return replace(found, unread=unread_notes(vault), overview=vault_overview(vault) if is_overview else "")


def _lookup(text: str, newest: Sequence[Message]) -> Lookup:
    """`newest`: the messages before it, newest first, back to a clear."""
    said = list(takewhile(lambda each: not (each.compaction and each.compaction.action == "clear"), newest))[::-1]
    asked = [each for each in said if each.role == "user" and each.text][-EARLIER:]
    first = said.index(asked[0]) if asked else 0
    used = [each.relative_path for message in reversed(said[first:]) for each in message.references]
    in_use = tuple(dict.fromkeys(path for path in used if path))[:MOST_IN_USE]
    return Lookup(text, asked[-1].text[:LONGEST] if asked else "", in_use)


def note_quotes(
    vault: Vault, passages: Sequence[AnswerPassage], question: VaultQuestion | None = None
) -> tuple[Quote, ...]:
    """The sentences that answer, with links to their notes."""
    return tuple(
        Quote(vault.shortest_link(path := passage.document.path), path, each.heading, each.line, each.text, each.more)
        for passage, each in answering(passages, MOST_QUOTES)
    )


class PassagePicker(Picker):
    def __init__(self, turn: Turn, citations: Citations, search: PassageSearch) -> None:
        super().__init__()
        self._turn, self._citations, self._search = turn, citations, search
        model = turn.resolved.model
        model = model if turn.resolved.runs_tools else replace(model, tools=False)
        self._finds, self._quotes, self._searches = search.finds(model), search.quotes(model), search.searches(model)

    @property
    def wants_room(self) -> bool:
        message = self._turn.asked
        return (self._finds or self._quotes) and message is not None and may_be_answered(message.text)

    async def volatile(self, message: Message, context: TurnContext, room: Room) -> VolatilePicks:
        named = {pick.name for insert in room.inserts for pick in insert.picks if pick.kind == "document"}
        picks, model = await self._passages(message, context, room, named), context.model
        if self._quotes and not model.answers_from_notes and (picks.inserts or named or self._citations.quotes):
            said = QUOTES_ALONE if self._citations.quotes else NOTHING_FOUND
            self._citations.instead = f"{said} {TOO_SMALL.format(model=model.name)}"
        return picks

    async def _passages(
        self, message: Message, context: TurnContext, room: Room, named: Collection[str]
    ) -> VolatilePicks:
        session, search = self._turn.session, self._search
        self._citations.are_notes_asked = self._quotes
        if named and may_name_documents(message.text):
            lookup = Lookup(_NAMES.sub(" ", message.text), in_use=tuple(named))
            found = await search.look_up(session, lookup, is_named=True)
            await self._quote(found.passages, found.question)
            return VolatilePicks()
        if not self._searches:
            return VolatilePicks()
        ahead = search.ahead.pop(message.id, None)
        self._citations.are_quotes_told = ahead is not None and ahead.is_quoted
        found = ahead.found if ahead else await search.find(session, message)
        if found.warning:
            self.notes.append(found.warning)
        if not self._finds:
            await self._quote(found.passages, found.question)
            return VolatilePicks()
        if not found.passages:
            return self._nothing(message, found)
        if context.model.summarizes:
            return await self._fitting(found, context.token_cache, int(room.unused * SHARE))
        return await self._brief(found, context.token_cache, int(room.unused * SMALL_SHARE))

    def _nothing(self, message: Message, found: FoundPassages) -> VolatilePicks:
        passed = tuple(replace(_pick(each), because=f"not near enough; {each.because}") for each in found.far)
        if found.overview:
            self.notes.append(OVERVIEW_TOLD.format(overview=found.overview))
            pick = Pick("passage", "overview", "the message is about all notes", mode="agent")
            return VolatilePicks((Insert("documents", OVERVIEW.format(overview=found.overview), (pick,)),), passed)
        question = parse_question(message.text)
        if not (question.asks and question.terms) or found.warning:
            return VolatilePicks(passed=passed)
        note = f"searched your notes for “{', '.join(question.terms[:MOST_TERMS])}” and {NOTHING_NEAR}"
        note += f" ({found.unread})" if found.unread else ""
        if found.far:
            note += f"; the nearest is [[{found.far[0].document.path.removesuffix('.md')}]]"
        # an earlier message may hold the answer
        if message.parent is None and self._quotes and not self._turn.resolved.model.summarizes:
            self._citations.instead = told_orders(question, found.far).nothing
        else:
            note += NOT_FROM_NOTES
        self.notes.append(note)
        pick = Pick("passage", "none", "no note is near enough to the message", mode="agent")
        return VolatilePicks((Insert("documents", NOTHING, (pick,)),), passed)

    async def _fitting(self, found: FoundPassages, cache: TokenCache, left: int) -> VolatilePicks:
        inserts, passed, brought = list[Insert](), list[Pick](), list[AnswerPassage]()
        for each in found.passages[: MOST_PASSAGES + MOST_PASSED]:
            if len(inserts) == MOST_PASSAGES:
                passed.append(replace(_pick(each), because=f"others are nearer; {each.because}"))
                continue
            place = f"{each.document.path} › {each.heading}" if each.heading else each.document.path
            text = fenced_document(place, each.text)
            tokens = await cache.tokens_of(text)
            if tokens <= left:
                inserts.append(Insert("documents", text, (_pick(each, text),)))
                brought.append(each)
                left -= tokens
            else:
                why = f"takes {tokens} tokens, and {left} are left"
                passed.append(replace(_pick(each, text), because=f"{why}; {each.because}"))
        self._citations.add_passages(brought)
        await self._quote(brought, found.question)
        return VolatilePicks(tuple(inserts), tuple(passed))

    async def _brief(self, found: FoundPassages, cache: TokenCache, left: int) -> VolatilePicks:
        """Inserts as much of the best note as fits, and the other quoted sentences: a small model reads slowly. The
        quotes are shown to the user anyway."""
        await self._quote(found.passages, found.question)
        lines, brought = list[str](), list[AnswerPassage]()
        others = [(each, each.statements[0].statement) for each in found.passages[:MOST_PASSAGES] if each.statements]
        for passage, statement in (*answering(found.passages, MOST_QUOTES), *others):
            for line in () if passage in brought[:1] else told_lines(passage, statement, is_first=not lines):
                if line not in lines and (tokens := await cache.tokens_of(line)) <= left:
                    lines.append(line)
                    brought += [] if passage in brought else [passage]
                    left -= tokens
        passed = tuple(_pick(each) for each in found.passages[: MOST_PASSAGES + MOST_PASSED] if each not in brought)
        if not lines:
            return VolatilePicks(passed=passed)
        self._citations.add_passages(brought)
        order = told_orders(found.question or parse_question(""), brought).answer
        text = "\n".join((NOTES, *lines, "", order))
        return VolatilePicks((Insert("documents", text, tuple(_pick(each, text) for each in brought)),), passed)

    async def _quote(self, passages: Sequence[AnswerPassage], question: VaultQuestion | None) -> None:
        vault = self._turn.session.vault
        if self._quotes and vault is not None:
            self._citations.quotes = await asyncio.to_thread(note_quotes, vault, passages, question)


def may_be_answered(text: str) -> bool:
    """False for a greeting, thanks, a calculation, or a long text."""
    if len(text) > LONGEST or is_arithmetic(text):
        return False
    return any(map(_asks_something, split_sentences(text[:LONGEST])))


def _asks_something(sentence: str) -> bool:
    """True if it names a topic: "How can I reach Priya?" is polite, and still does."""
    if not is_small_talk(sentence):
        return True
    named = set(parse_question(sentence).terms) - COMMON_WORDS
    return len(named) >= (1 if sentence.endswith("?") else 2)


def _pick(each: AnswerPassage, text: str = "") -> Pick:
    place = f"{each.heading}, line {each.line}" if each.heading else f"line {each.line}"
    sha256, score = hashlib.sha256(text.encode()).hexdigest() if text else None, round(min(each.score, 1.0), 2)
    because = f"found for this message: {place}; {each.because}"
    return Pick("passage", each.document.path, because, mode="agent", score=score, sha256=sha256)


# A note up to this length is inserted whole; otherwise this much of the section around the answer.
NOTE_CHARS, AROUND_CHARS = 1_200, 500
NOTES = "Notes:"


class Orders(NamedTuple):
    answer: str
    nothing: str


# A small model follows an order right before the question, in the language of the answer. If nothing is found it
# invents an answer whatever the order, so this replaces its reply. By language, with one for all others.
ORDERS = {
    "en": Orders("Answer:", "I don't know: your notes do not say it."),
    "de": Orders("Antworte auf Deutsch:", "Das weiß ich nicht: Deine Notizen sagen es nicht."),
    "es": Orders("Responde en español:", "No lo sé: tus notas no lo dicen."),
    "fr": Orders("Réponds en français :", "Je ne sais pas : vos notes ne le disent pas."),
}
ANY_LANGUAGE = Orders("Answer in the language of the question:", ORDERS["en"].nothing)


def told_orders(question: VaultQuestion, passages: Sequence[AnswerPassage]) -> Orders:
    """The orders in the language of the question, or of the notes if it is too short to tell."""
    language = question.language or language_of(" ".join(each.text for each in passages))
    return ORDERS.get(language, ANY_LANGUAGE)


def told_lines(passage: AnswerPassage, statement: NoteStatement, *, is_first: bool) -> Iterator[str]:
    """The first passage brings its section, or the whole note if that is short, one line per section."""
    document, body = passage.document, passage.document.parsed.body_start
    is_short = len(document.text) - body <= NOTE_CHARS
    if not is_first or statement.start < body or not (is_short or _is_small_table(passage, statement)):
        yield _line(passage, statement.heading, [statement], statement.more)
        return
    start, end = part_around(document, statement.start, statement.end, AROUND_CHARS)
    start, end = (body, len(document.text)) if is_short else (start, end)
    starts = [each.start for each in document.parsed.headings if start < each.start < end]
    parts = list(zip((start, *starts), (*starts, end), strict=True))
    parts.sort(key=lambda part: not part[0] <= statement.start < part[1])  # the answer first, in case it is cut
    for first, last in parts:
        told = [each for each in note_statements(document, first, last) if first <= each.start < last and _tells(each)]
        if told:
            yield _line(passage, told[0].heading, told)


def _is_small_table(passage: AnswerPassage, statement: NoteStatement) -> bool:
    """True if the statement is in no table, or in one that a small model reads whole."""
    around = note_statements(passage.document, statement.start, statement.end)
    rows = [each.text for each in around if each.kind == "row" and each.table == statement.table]
    return statement.table is None or sum(map(len, rows)) <= AROUND_CHARS


def _tells(statement: NoteStatement) -> bool:
    return statement.kind not in ("table", "list") and not (statement.is_link or asks_itself(statement.text))


def _line(passage: AnswerPassage, heading: str, told: Sequence[NoteStatement], more: str = "") -> str:
    name = note_name(passage.document.path)
    place = name if heading in ("", name) else f"{name} › {heading}"
    return f"- {place}: {' '.join(map(_sentence, told))} {more}".rstrip()


def _sentence(statement: NoteStatement) -> str:
    """A row as a sentence about its first cell: a small model reads `Fuse: 5, Size: 10 A` as a fuse of 5 A."""
    first, *cells = statement.text.split(" · ")
    text = statement.text
    if statement.kind == "row" and cells:
        text = f"{first.replace(': ', ' ', 1)}: {', '.join(each.replace(': ', ' ', 1) for each in cells)}"
    return text if statement.kind == "sentence" or text.endswith((".", "!", "?", ":")) else f"{text};"
