"""The beginning of a conversation: the rules and references that its agent always included then.

They are read from the record of its first request, which names each by the hash of its text, and the text is kept.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import TypeVar

from msgspec.structs import replace

from recto.agents.agent import Agent
from recto.errors import NotFound, StoreError
from recto.sources.source import Reference, Rule
from recto.store.store import Store

TEXTS: dict[str, type[Rule] | type[Reference]] = {"rule": Rule, "reference": Reference}
S = TypeVar("S", Rule, Reference)


def as_it_began(store: Store, conversation: str, agent: Agent) -> Agent:
    """The agent with the `always` rules and references of the conversation's first request, in place of those that its
    files have now. Before the first request they are the same."""
    if (first := store.records.first(conversation)) is None:
        return agent
    then = list(_then(store, first))
    known = {source.id for source in then}
    rules = [_since(each) for each in agent.rules if each.id not in known]
    references = [_since(each) for each in agent.references if each.id not in known]
    return replace(
        agent,
        rules=(*(each for each in then if isinstance(each, Rule)), *rules),
        references=(*(each for each in then if isinstance(each, Reference)), *references),
    )


def _then(store: Store, request: str) -> Iterator[Rule | Reference]:
    for pick in store.records.record(request).account.picks():
        if pick.mode == "always" and pick.kind in TEXTS and pick.sha256:
            with suppress(StoreError, NotFound):  # a text that is lost is that of the file
                yield TEXTS[pick.kind](pick.name, store.blobs.get(pick.sha256).decode(), include="always")


def _since(source: S) -> S:
    """What came to be included since can be added by hand."""
    return replace(source, include="manual") if source.include == "always" else source
