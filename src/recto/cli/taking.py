"""Sources taken into a conversation, or out of it, several at once: all of them or none."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from recto.chat.message import now
from recto.errors import NotFound
from recto.sources.session import Listed, Session, found
from recto.sources.source import Source, SourceId

if TYPE_CHECKING:
    from recto.desk import Desk
    from recto.talk import Talk

Change = Callable[[Session, Source], Session]


def take_in(desk: "Desk", talk: "Talk", ids: Sequence[str]) -> list[Listed]:
    _try(desk, talk, ids, lambda session, source: session.add(source, now()))
    return [talk.add_source(id) for id in ids]


def take_out(desk: "Desk", talk: "Talk", ids: Sequence[str]) -> list[Listed]:
    _try(desk, talk, ids, lambda session, source: session.remove(source, now()))
    return [talk.remove_source(id) for id in ids]


def _try(desk: "Desk", talk: "Talk", ids: Sequence[str], change: Change) -> None:
    """Refuses what cannot be done before anything is done: on a session that nobody keeps."""
    if len(ids) < 2:
        return
    listing = talk.sources(list({SourceId.parse(id).kind for id in ids}))
    session = desk.engine.sourcing.session(talk.id or "")
    for id in ids:
        try:
            session = change(session, found(listing, id).source)
        except NotFound:
            if (gone := session.forget(id)) is None:
                raise
            session = gone
