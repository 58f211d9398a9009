"""The recall tool: a model retrieves archived messages, by a question or by their numbers."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from recto.chat.message import Message
from recto.errors import NotFound, RectoError
from recto.recall.indexed_message import searchable_text
from recto.recall.message_index import WAIT_FOR_USER, IndexScope, MessageIndex
from recto.recall.message_search import passages_for, searchable_scope, snippet_of, with_neighbours
from recto.recall.snippets import Snippet, pack_snippets, snippets_text
from recto.sources.tools import RECALL_TOOL, LocalTool
from recto.store.store import Store
from recto.turn.session import ChatSession

# The approximate size of one answer to a question, in tokens, and of messages by number, in characters. `offset`
# retrieves the rest of a long one.
ROOM, PAGE = 1_500, 6_000
MOST_NUMBERS = 50
_NUMBER = re.compile(r"#?(\d{1,9})(?:\s*[-–]\s*#?(\d{1,9}))?")


def recall_tool(archive: MessageIndex, store: Store, session: ChatSession) -> LocalTool:
    """Like recall, it reaches everything covered on this path since the last clear, and the originals of excerpts."""

    def run(arguments: Mapping[str, Any]) -> str:
        query, wanted = arguments.get("query"), arguments.get("messages")
        scope = searchable_scope(store, session)
        if scope is None:
            raise RectoError("nothing is archived in this conversation yet: everything is in the window")
        wanted = [wanted] if isinstance(wanted, str | int) and wanted else wanted
        if isinstance(wanted, list) and wanted:
            return _by_number(store, session, scope, [str(each) for each in wanted], _offset(arguments))
        if isinstance(query, str) and query.strip():
            return _by_question(archive, store, session, scope, query)
        raise RectoError('give `query`, or `messages` as a list of their numbers, such as ["#57"]')

    return LocalTool(RECALL_TOOL, run)


def _offset(arguments: Mapping[str, Any]) -> int:
    try:
        return max(0, int(arguments.get("offset") or 0))
    except (TypeError, ValueError):
        raise RectoError("offset must be a whole number") from None


def _by_question(archive: MessageIndex, store: Store, session: ChatSession, scope: IndexScope, query: str) -> str:
    hits, note = archive.recall(query, scope, most=passages_for(ROOM), patience=WAIT_FOR_USER)
    # a model that asks wants an answer, even a weak one
    found = with_neighbours(
        store, session, [each for each in hits if each.hit.word_score > 0 or each.hit.similarity], scope
    )
    chosen, passed = pack_snippets([snippet_of(each) for each in found], ROOM)
    if not chosen:
        return "Nothing archived bears on this." + (f" ({note})" if note else "")
    more = f"\n[{len(passed)} more were found: ask for something narrower.]" if passed else ""
    return snippets_text(chosen) + more


def _by_number(store: Store, session: ChatSession, scope: IndexScope, wanted: Sequence[str], offset: int) -> str:
    named = _named(store, session, wanted)
    found = [message for message in named if scope.reaches(message.depth)]
    if not found and any(message.depth > scope.last for message in named):
        raise NotFound(f"{', '.join(wanted[:10])} is not archived: it is in the window")
    if not found:
        raise NotFound(f"no archived message of this conversation is {', '.join(wanted[:10])}")
    if len(found) == 1 and offset >= len(searchable_text(found[0])) > 0:
        raise NotFound(f"#{found[0].said} has only {len(searchable_text(found[0]))} characters")
    room = PAGE // len(found)
    return snippets_text([_page(message, offset if len(found) == 1 else 0, max(200, room)) for message in found])


def _named(store: Store, session: ChatSession, wanted: Sequence[str]) -> list[Message]:
    """Messages by number, range, or id on this path, in order of time."""
    assert session.head is not None
    numbers: set[int] = set()
    ids = []
    for each in wanted:
        if match := _NUMBER.fullmatch(each.strip()):
            first, last = int(match[1]), int(match[2] or match[1])
            numbers |= set(range(first, min(last, first + MOST_NUMBERS) + 1))
        else:
            ids.append(each.strip())
    found = store.tree.numbered(session.head, sorted(numbers)[:MOST_NUMBERS])
    by_id = [
        message for message in store.tree.messages(ids[:MOST_NUMBERS]) if store.tree.is_on(session.head, message.id)
    ]
    return sorted({each.said: each for each in (*found.values(), *by_id)}.values(), key=lambda each: each.said)


def _page(message: Message, offset: int, room: int) -> Snippet:
    text = searchable_text(message)
    end = min(len(text), offset + room)
    cut = f"\n[{len(text) - end} more characters; go on with offset {end}]" if end < len(text) else ""
    return replace(snippet_of(message), text=text[offset:end] + cut, start=0, end=0, size=0)
