"""The beginning of a conversation: the rules and references that its agent always included then.

They are read from the record of its first request, which names each by the hash of its text, and the text is kept.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import TypeVar

from msgspec.structs import replace

from recto.agents.agent import Agent
from recto.errors import NotFound, StoreError
from recto.sources.source import Pick, Reference, Rule, SourceId
from recto.store.store import Store
from recto.tasks.plan import FOR_A_RUN

TEXTS: dict[str, type[Rule] | type[Reference]] = {"rule": Rule, "reference": Reference}
S = TypeVar("S", Rule, Reference)


def as_it_began(store: Store, conversation: str, agent: Agent) -> Agent:
    """The agent with the `always` rules and references of the conversation's first request, in place of those that its
    files have now. Before the first request they are the same."""
    if (first := store.records.first(conversation)) is None:
        return agent
    recorded = store.records.record(first).account.picks()
    picks = [pick for pick in recorded if pick.mode == "always" and pick.because != FOR_A_RUN]
    then = list(_texts(store, picks))
    known, named = {source.id for source in then}, {pick.source for pick in picks}
    rules, references = _since(agent.rules, known, named), _since(agent.references, known, named)
    return replace(
        agent,
        rules=(*(each for each in then if isinstance(each, Rule)), *rules),
        references=(*(each for each in then if isinstance(each, Reference)), *references),
    )


def _texts(store: Store, picks: Sequence[Pick]) -> Iterator[Rule | Reference]:
    for pick in picks:
        if pick.kind in TEXTS and pick.sha256:
            with suppress(StoreError, NotFound):  # what is lost is read from its file
                yield TEXTS[pick.kind](pick.name, store.blobs.get(pick.sha256).decode(), include="always")


def _since(sources: Sequence[S], known: Collection[SourceId], named: Collection[SourceId]) -> Iterator[S]:
    """The other sources of the agent's files. What came to be always included since can be added by hand."""
    for each in sources:
        if each.id not in known:
            is_new = each.include == "always" and each.id not in named
            yield replace(each, include="manual") if is_new else each
