"""What of a conversation can be recalled, and messages found there as snippets: for the picker and the recall tool."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from recto.chat.blocks import Compaction
from recto.chat.message import Message
from recto.recall.archive import ArchivedHit, ArchiveScope
from recto.recall.indexed_message import searchable_text, speaker
from recto.recall.snippets import Snippet, estimate_tokens
from recto.store.store import Store
from recto.turn.session import ChatSession
from recto.window.compaction_block import cleared_at

# How many passages are looked at: by the room, as if all were short.
FEWEST_PASSAGES, MOST_PASSAGES, SHORT_PASSAGE = 40, 400, 16
# So many of the best hits bring along the message that makes them understandable.
WITH_NEIGHBOURS = 8
FEW_WORDS = 6
LONGEST_NEIGHBOUR = 600


def passages_for(room: int) -> int:
    """How many passages are worth reading for so many tokens of room."""
    return min(max(FEWEST_PASSAGES, room // SHORT_PASSAGE), MOST_PASSAGES)


def scope_of(store: Store, session: ChatSession, block: Compaction | None = None) -> ArchiveScope | None:
    """What the Compaction in force covers after the last clear; None if that is nothing."""
    tree, head = store.tree, session.head
    if head is None:
        return None
    if block is None:
        newest = tree.compaction(head)
        block = newest.compaction if newest else None
    if block is None or block.last is None:
        return None
    cleared = cleared_at(block)
    first = tree.message(cleared).depth + 1 if cleared else 1
    last = tree.message(block.last).depth
    return ArchiveScope(session.conversation, tree.trail(head), first, last) if first <= last else None


def with_neighbours(
    store: Store, session: ChatSession, found: Sequence[ArchivedHit], scope: ArchiveScope
) -> list[ArchivedHit]:
    """Adds to the best hits the message that explains them: the question before a short answer, or the answer."""
    out: list[ArchivedHit] = []
    for place, each in enumerate(found):
        out.append(each)
        passage = each.hit.passage
        if place < WITH_NEIGHBOURS and each.message.role in ("user", "assistant"):
            step = -1 if passage.words < FEW_WORDS else 1 if passage.is_question else 0
            out += _neighbour(store, session, each, step, scope) if step else []
    return list({(each.message.id, each.hit.passage.start): each for each in reversed(out)}.values())[::-1]


def _neighbour(
    store: Store, session: ChatSession, each: ArchivedHit, step: int, scope: ArchiveScope
) -> list[ArchivedHit]:
    depth = each.message.depth + step
    if session.head is None or not scope.first <= depth <= scope.last:
        return []
    near = store.tree.stretch(session.head, depth, depth)
    if not near or near[0].role not in ("user", "assistant") or len(searchable_text(near[0])) > LONGEST_NEIGHBOUR:
        return []
    whole = replace(each.hit.passage, start=0, end=len(searchable_text(near[0])))
    because = f"{'follows' if step > 0 else 'precedes'} #{each.message.said}, which says little alone"
    return [ArchivedHit(replace(each.hit, passage=whole, because=because), near[0], each.home)]


def snippet_of(each: ArchivedHit | Message) -> Snippet:
    """A hit, or a whole message, as a snippet."""
    message = each if isinstance(each, Message) else each.message
    whole = searchable_text(message)
    start, end = (0, len(whole)) if isinstance(each, Message) else (each.hit.passage.start, each.hit.passage.end)
    role = "" if start == 0 and speaker(whole) else message.role
    at, recent = _when(message.created)
    text = whole[start:end]
    snippet = Snippet(
        message.id, message.said, role, at, text, start, end, len(whole), estimate_tokens(text), is_recent=recent
    )
    if isinstance(each, Message):
        return snippet
    return replace(snippet, score=each.hit.score, because=each.hit.because)


def _when(created: str) -> tuple[str, bool]:
    """The day and time on the user's clock, and whether that was today or yesterday."""
    try:
        at = datetime.fromisoformat(created).astimezone()
    except ValueError:
        return created, False
    return at.strftime("%Y-%m-%d %H:%M"), (datetime.now(at.tzinfo).date() - at.date()).days <= 1
