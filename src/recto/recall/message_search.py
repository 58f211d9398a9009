"""Message search: for the user over all conversations, for the model (recall) over its own path.

`search_messages` also finds archived messages and branches. `recall_query` decides whether a message needs archived
messages, and which part of it is searched for. A message without a question that is only about what is in the window
recalls nothing: recalled text costs tokens, and the user's message is sent again without it in the next window.
`IndexScope` limits what may be recalled; the results become snippets, for the picker and the recall tool."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Literal, overload

from msgspec import Struct
from msgspec.structs import replace

from recto.base.text import clean
from recto.chat.blocks import Compaction
from recto.chat.message import Message
from recto.errors import Invalid
from recto.recall.indexed_message import searchable_text, speaker
from recto.recall.message_index import IndexScope, MessageHit, MessageIndex
from recto.recall.snippets import Snippet, estimate_tokens
from recto.search.finder import Hit
from recto.search.keyword_index import Filter
from recto.search.passages import QUESTION_MARKS
from recto.search.terms import normalize_text, topic_words
from recto.sentences.priority import is_small_talk
from recto.sentences.segments import segments
from recto.sentences.words import word_class
from recto.store.paths import ConversationPath
from recto.store.store import Store
from recto.summary.agent_steps import is_command_output
from recto.turn.session import ChatSession
from recto.window.compaction_block import cleared_at

MessagePlace = Literal["active", "archived", "branch"]
"""The message is in the view of its conversation, covered by a compaction, or not on the path to the head."""
Time = str | date
# The minimum similarity of a hit without a shared word.
MIN_SIMILARITY = 0.25
# The index stores local time in seconds, and clocks are set back by an hour.
SLACK = timedelta(hours=1, seconds=1)


class FoundMessage(Struct, frozen=True):
    conversation: str
    title: str
    message: Message
    place: MessagePlace
    score: float
    """Between 0 and 1: half for the matching words, half for the rank by words and meaning."""
    because: str
    text: str
    """The passage, verbatim."""
    start: int
    """The offset of the passage in the message's text, including files, tool arguments and tool results."""
    end: int
    conversation_number: int = 0
    """The display number, as in `#3`."""


@dataclass(frozen=True, slots=True)
class FoundMessages(Sequence[FoundMessage]):
    found: tuple[FoundMessage, ...] = ()
    note: str = ""
    """A limit of the result: no vectors, or an index that is still being built."""

    def __len__(self) -> int:
        return len(self.found)

    @overload
    def __getitem__(self, place: int) -> FoundMessage: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[FoundMessage, ...]: ...
    def __getitem__(self, place: int | slice) -> FoundMessage | tuple[FoundMessage, ...]:
        return self.found[place]


class MessageQuery(Struct, frozen=True):
    text: str
    conversation: str | None = None
    role: str | None = None
    since: Time | None = None
    before: Time | None = None
    limit: int = 20
    homes: frozenset[str] | None = None
    """Only in these conversations, by id."""


def search_messages(archive: MessageIndex, store: Store, query: MessageQuery) -> FoundMessages:
    """Raises NotFound for an unknown conversation. Does not wait for the index; a note says what is missing in it."""
    if query.conversation is not None:
        store.tree.conversation(query.conversation)
    since, before = _stored_time(query.since), _stored_time(query.before)
    only = Filter(query.role, _local_time(since, -SLACK), _local_time(before, SLACK))
    text = clean(query.text)[0]
    hits, note = archive.search(text, home=query.conversation, homes=query.homes, only=only, most=query.limit)
    relevant = [hit for hit in hits if hit.word_score > 0 or (hit.similarity or 0.0) >= MIN_SIMILARITY]
    best, size = sorted(relevant, key=_score, reverse=True), max(1, query.limit)
    with store.database.read(shared=True):
        found = (
            _found_message(path, hit)
            for start in range(0, len(best), size)  # the first batch is usually enough
            for path, hit in _with_paths(archive, store, best[start : start + size])
            if (query.homes is None or hit.home in query.homes)
            and (since is None or hit.message.time >= since)
            and (before is None or "" < hit.message.time < before)
        )
        return FoundMessages(tuple(islice(found, query.limit)), note)


def _score(hit: Hit) -> float:
    """Includes the word score: by rank alone, similar passages would precede those with the exact words."""
    return round((hit.word_score + hit.score) / 2, 4)


def _stored_time(time: Time | None) -> str | None:
    """The time in the store's format; a time without a zone is local."""
    if time is None:
        return None
    try:
        moment = datetime.fromisoformat(str(time))
        return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError) as why:
        raise Invalid(f"{time} is not a time; write 2026-01-31 or 2026-01-31T18:00", time=str(time)) from why


def _local_time(stored: str | None, shift: timedelta) -> str | None:
    """The shifted time in the index's format, local; None for a time outside the calendar."""
    if stored is None:
        return None
    try:
        return (datetime.fromisoformat(stored) + shift).astimezone().isoformat(timespec="seconds")[:19]
    except (ValueError, OverflowError):
        return None


def _with_paths(
    archive: MessageIndex, store: Store, hits: Sequence[Hit]
) -> Iterator[tuple[ConversationPath, MessageHit]]:
    """Keeps their order, and adds the path of each conversation; omits those in the trash."""
    read = archive.read(hits)
    paths = store.tree.paths({each.home for each in read})
    for each in read:
        path = paths.get(each.home)
        if path is not None and path.conversation.deleted is None:
            yield path, each


def _found_message(path: ConversationPath, found: MessageHit) -> FoundMessage:
    conversation, hit, passage = path.conversation, found.hit, found.hit.passage
    lifted = path.compaction.lifted if path.compaction else ()
    is_archived = passage.position <= path.covered and found.message.id not in lifted
    place: MessagePlace = "archived" if is_archived else "active"
    return FoundMessage(
        found.home,
        conversation.title,
        found.message,
        place if path.trail.holds(passage.branch, passage.position) else "branch",
        _score(hit),
        hit.because,
        found.text,
        passage.start,
        passage.end,
        conversation.number,
    )


# A message with at least this many characters or lines may be a paste; at most MAX_EXAMINED characters of it are
# examined.
MIN_PASTE_CHARACTERS, MIN_PASTE_LINES, MAX_EXAMINED = 300, 3, 20_000
# Characters of the latest messages that count as present; words farther back may as well be recalled.
RECENT_CHARACTERS = 200_000
# A message this long carries its own context; whether it asks is judged by its start and end.
SELF_CONTAINED, ENDS = 1000, 200
# Words match by this many first letters, so that inflected forms match too.
STEM_LETTERS = 5


class RecallQuery(Struct, frozen=True):
    text: str
    asks: bool


def recall_query(message: Message, history: Sequence[Message], *, always: bool = False) -> RecallQuery | None:
    """The query for a message: its text written by people, preceded by the previous user message if it is too short.
    None for chatter, and for a pasted log or listing. `always` searches even without a question."""
    text = written_by_people(message.text)
    if not text or is_small_talk(text):
        return None
    topics = topic_words(text)
    if len(topics) < 2:
        before = [earlier.text for earlier in history if earlier.role == "user" and earlier.text]
        return RecallQuery("\n".join((text, *before[-1:])), asks=True)
    asks = any(map(_asks, (text[:ENDS], text[-ENDS:]) if len(text) > SELF_CONTAINED else (text,)))
    if always or asks or not (len(text) > SELF_CONTAINED or _covers(history, topics)):
        return RecallQuery(text, asks)
    return None


def _asks(text: str) -> bool:
    """True if a text has a question mark, or a line that begins with a question word."""
    if any(mark in text for mark in QUESTION_MARKS):
        return True
    firsts = frozenset(line.split(maxsplit=1)[0].lower() for line in text.splitlines() if line.strip())
    return word_class("questions").is_in(firsts, text)


def _covers(history: Sequence[Message], topics: Collection[str]) -> bool:
    """True if the latest messages contain at least four of five topic words."""
    missing, left = [word[:STEM_LETTERS] for word in topics], RECENT_CHARACTERS
    for message in reversed(history):
        if left <= 0 or len(missing) * 5 <= len(topics):
            break
        text = searchable_text(message)[:left]
        left -= len(text)
        recent = _normalized(text)  # every turn looks at the same messages, and at two more
        missing = [stem for stem in missing if stem not in recent]
    return len(missing) * 5 <= len(topics)


_normalized = lru_cache(maxsize=1024)(normalize_text)


def written_by_people(text: str) -> str:
    """Empty if most of a text is machine output."""
    if "\n" in text and is_command_output(text):
        return ""
    if len(text) < MIN_PASTE_CHARACTERS and text.count("\n") + 1 < MIN_PASTE_LINES:
        return text
    found = segments(text[:MAX_EXAMINED])
    people = "\n".join(each.text for each in found if each.kind in ("prose", "item", "quote", "heading"))
    return people if len(people) * 2 > min(len(text), MAX_EXAMINED) else ""


# The number of passages to read depends on the room, as if all were short.
FEWEST_PASSAGES, MOST_PASSAGES, SHORT_PASSAGE = 40, 400, 16
# How many of the best hits bring along the message that makes them understandable.
WITH_NEIGHBOURS = 8
FEW_WORDS = 6
LONGEST_NEIGHBOUR = 600


def passages_for(room: int) -> int:
    return min(max(FEWEST_PASSAGES, room // SHORT_PASSAGE), MOST_PASSAGES)


def _covered_scope(store: Store, session: ChatSession, head: str, block: Compaction) -> IndexScope | None:
    """The messages covered after the last clear; None if there are none."""
    tree = store.tree
    if block.last is None:
        return None
    cleared = cleared_at(block)
    first = tree.place(cleared)[1] + 1 if cleared else 1
    number, last = tree.place(block.last)
    return IndexScope(session.conversation, tree.trail(head), first, last, number) if first <= last else None


def searchable_scope(store: Store, session: ChatSession) -> IndexScope | None:
    """Archived messages, and the originals of excerpts: for a model that asks."""
    newest = store.tree.compaction(session.head) if session.head else None
    return recalled_scope(store, session, newest.compaction if newest else None)


def recalled_scope(store: Store, session: ChatSession, block: Compaction | None, asking: str = "") -> IndexScope | None:
    """Messages archived by the Compaction in force, and the originals of excerpts in the window, except for the message
    that asks: its own question chooses its excerpt."""
    head = session.head
    if head is None or block is None:
        return None
    scope = _covered_scope(store, session, head, block)
    ids = {key.partition("/")[0] for key in block.excerpts if key != asking}
    if not ids:
        return scope
    places = [store.tree.place(id) for id in ids]
    found = scope or IndexScope(session.conversation, store.tree.trail(head), 1, 0, 0)
    newest = max(found.number, *(number for number, _ in places))
    return replace(found, condensed=frozenset(position for _, position in places), number=newest)


def with_neighbours(
    store: Store, session: ChatSession, found: Sequence[MessageHit], scope: IndexScope
) -> list[MessageHit]:
    """Adds to the best hits the message that explains them: the question before a short answer, or the answer. Each
    appears once, at its best rank, and as a hit if it is one."""
    own = {_passage_key(each): each for each in reversed(found)}
    once: dict[tuple[str, int], MessageHit] = {}
    for place, each in enumerate(found):
        once.setdefault(_passage_key(each), each)
        near = _neighbour(store, session, each, scope) if place < WITH_NEIGHBOURS else None
        if near:
            once.setdefault(_passage_key(near), own.get(_passage_key(near), near))
    return list(once.values())


def _passage_key(each: MessageHit) -> tuple[str, int]:
    return each.message.id, each.hit.passage.start


def _neighbour(store: Store, session: ChatSession, each: MessageHit, scope: IndexScope) -> MessageHit | None:
    passage, talk = each.hit.passage, ("user", "assistant")
    step = -1 if passage.words < FEW_WORDS else 1 if passage.is_question else 0
    depth = each.message.depth + step
    if not step or each.message.role not in talk or session.head is None or not scope.reaches(depth):
        return None
    near = store.tree.stretch(session.head, depth, depth)
    if not near or near[0].role not in talk or (size := len(searchable_text(near[0]))) > LONGEST_NEIGHBOUR:
        return None
    because = f"{'follows' if step > 0 else 'precedes'} #{each.message.said}, which says little alone"
    whole = replace(each.hit, passage=replace(passage, start=0, end=size), because=because)
    return MessageHit(whole, near[0], each.home)


def snippet_of(each: MessageHit | Message) -> Snippet:
    message, hit = (each, None) if isinstance(each, Message) else (each.message, each.hit)
    whole = searchable_text(message)
    start, end = (hit.passage.start, hit.passage.end) if hit else (0, len(whole))
    role, text = "" if start == 0 and speaker(whole) else message.role, whole[start:end]
    score, because = (hit.score, hit.because) if hit else (0.0, "")
    try:
        said = datetime.fromisoformat(message.time).astimezone()
        at, is_recent = f"{said:%Y-%m-%d %H:%M}", (date.today() - said.date()).days <= 1
    except ValueError:
        at, is_recent = message.time, False
    size, tokens = len(whole), estimate_tokens(text)
    return Snippet(message.id, message.said, role, at, text, start, end, size, tokens, score, because, is_recent)
