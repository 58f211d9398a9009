"""Using: which sources went out with a request, kept with it to be counted; and what its reply shows of them."""

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from recto.errors import RectoError
from recto.search.embedder import Embedder
from recto.store.clerk import Clerk
from recto.store.sourced import Sourced
from recto.store.store import Store
from recto.uses.meant import by_meaning
from recto.uses.used import Given, Use, uses_of
from recto.walk.errands import Errands
from recto.walk.standing import Before, before
from recto.walk.turn import Turn

KINDS = ("rule", "reference", "tool")
# So many characters of what was said before are looked through for what a reply may have from there.
LOOKED_AT = 20_000


def note_sources(store: Store, request: str, turn: Turn, known: set[str]) -> None:
    """Keeps the texts that were sent, by their hash, and a row for each source. `known` are hashes kept before."""
    texts = [turn.opening.instructed.prompt, *(each.text for each in _given(turn))]
    fresh = {text for text in texts if hashlib.sha256(text.encode()).hexdigest() not in known}
    if fresh:
        known.update(store.kept.put_all([text.encode() for text in sorted(fresh)]))
    picks = [pick for section in turn.window.sections for pick in section.picks if pick.kind in KINDS]
    if picks:
        rows = [Sourced(pick.source, pick.mode, pick.tokens, pick.score) for pick in picks]
        store.sourced.note(request, rows)


def offered_with(turn: Turn) -> Before:
    """The tools of a request, for the next one to begin with."""
    block = turn.loaded.view.compaction
    tools = [(pick.source, pick.mode) for section, pick in turn.opening.picks if section == "tools"]
    return before(block.compaction_number if block else None, tools)


def _given(turn: Turn) -> Iterator[Given]:
    """Every source with the text of it that went in."""
    instructed = turn.opening.instructed
    for each in (*instructed.rules, *instructed.references):
        yield Given(each.id, each.text)
    for tool, _ in turn.opening.tools:
        yield Given(tool.id, tool.text, tool.name)
    for item, _ in turn.current.picked:
        for pick, text in zip(item.picks, item.texts, strict=False):
            yield Given(pick.source, text)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a reply is held against."""

    reply: str
    given: tuple[Given, ...]
    called: frozenset[str]
    known: str
    """What it may have from elsewhere: the conversation, documents, what tools gave."""

    @property
    def uses(self) -> list[Use]:
        return uses_of(self.reply, self.called, self.given, self.known)


def evidence(turn: Turn, reply: str) -> Evidence | None:
    """For the last reply of a turn; None where no source went in, as in most chats."""
    if not (given := tuple(_given(turn))):
        return None
    view = turn.loaded.view
    # not the replies before: what they have from a source does not make it known from elsewhere
    said = [message.text for message in (*view.still_sent, *view.history) if message.role == "user"]
    brought = [item.text for item, _ in turn.current.picked if not item.texts]
    gave = [result.text for message in view.rounds for result in message.results]
    known = "\n".join((*said, *gave, *brought, turn.current.message.text))[-LOOKED_AT:]
    called = frozenset(call.name for message in view.rounds for call in message.calls)
    return Evidence(reply, given, called, known)


class Retracing:
    """What a reply took from its sources in other words: looked for behind it, since meaning takes its time.

    Never waited for; one that fails has seen nothing.
    """

    def __init__(self, store: Store, clerk: Clerk, embedder: Callable[[], Embedder | None]) -> None:
        self._store, self._clerk, self._embedder = store, clerk, embedder
        self._errands = Errands()

    def begin(self, request: str, found: Evidence, uses: Sequence[Use]) -> None:
        """Only for texts that show no sign by their words."""
        bare = {use.id for use in uses if not use.sign}
        given = tuple(each for each in found.given if each.id in bare and not each.call_name)
        if given:
            self._errands.begin(self._look(request, replace(found, given=given)))

    async def _look(self, request: str, found: Evidence) -> None:
        with suppress(RectoError):
            seen = await asyncio.to_thread(self._seen, found)
            if signs := {use.id: use.sign for use in seen if use.sign}:
                await self._clerk.do(self._store.sourced.signs, request, signs)

    def _seen(self, found: Evidence) -> list[Use]:
        embedder = self._embedder()
        return by_meaning(found.reply, found.given, found.known, embedder) if embedder else []

    async def close(self) -> None:
        await self._errands.close()
