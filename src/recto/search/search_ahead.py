"""SearchAhead: begins with a search before everything about it is known, in a thread of its own."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from msgspec import Struct

from recto.concurrency import WorkerThread
from recto.search.keyword_index import KeywordIndex
from recto.search.query import ParsedQuery, Query, find_speaker, parse_query

R = TypeVar("R")
Complete = Callable[[Query], Query | None]
"""Adds what will most likely be asked for; None where that cannot be told."""
# Strategies that are compared side by side ask the same one after the other.
_RECENT = 4


class LookedUp(Struct, Generic[R], frozen=True):
    change_id: str
    """The state of the index in which it was looked up."""
    partition: int | None
    query: Query
    parsed: ParsedQuery
    result: R | None = None
    """What was found, if the whole query was known."""


class SearchAhead(Generic[R]):
    """Looks up the words of a query, and finds the passages where the whole query is likely; remembers the last few."""

    def __init__(self, index: KeywordIndex, find: Callable[[Query, int | None, ParsedQuery], R]) -> None:
        self._index, self._find, self._thread = index, find, WorkerThread("recto-words")
        self._begun: tuple[Query, Future[LookedUp[R]]] | None = None
        self._recent: deque[LookedUp[R]] = deque(maxlen=_RECENT)
        self._is_closed = False

    def begin(self, query: Query, complete: Complete | None = None) -> bool:
        """Whether it begins now: another query with the same words may be on its way."""
        if self._is_closed or (self._begun and self._begun[0].has_words_of(query)):
            return False
        if self._begun and not self._begun[1].done():  # others search too: what is found in vain would delay them
            complete = None
        self._begun = query, self._thread.submit(lambda: self._look_up(query, complete))
        return True

    def _look_up(self, query: Query, complete: Complete | None) -> LookedUp[R]:
        index = self._index
        with index.file.in_use():
            change_id = index.file.change_id
            number = index.partition(query.partition) if query.partition is not None else None
            if known := self._known(query, change_id, number):
                return known
            parsed = parse_query(index, query, number, find_speaker(index, query.text, number))
            whole = complete(query) if complete and number is not None else None
            result = self._find(whole, number, parsed) if whole else None
            found = LookedUp(change_id, number, whole or query, parsed, result)
            self._recent.append(found)
            return found

    def _known(self, query: Query, change_id: str, partition: int | None) -> LookedUp[R] | None:
        for known in list(self._recent):
            if (known.change_id, known.partition) == (change_id, partition) and known.query.has_words_of(query):
                return known
        return None

    def take(self, query: Query, partition: int | None) -> LookedUp[R] | None:
        """Waits for what was begun; None where it was another query, or the index has changed since."""
        begun, self._begun = self._begun, None
        if begun is None or not begun[0].has_words_of(query) or begun[1].exception() is not None:
            return None
        found = begun[1].result()
        return found if (found.change_id, found.partition) == (self._index.file.change_id, partition) else None

    def close(self) -> None:
        self._is_closed = True
        self._thread.close()
