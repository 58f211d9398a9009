"""StoreQueries: reads a store, without models, servers or search. Blocking; opens much faster than a desk.

A desk uses a StoreQueries for the same queries, so both return the same results."""

import base64
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import date
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypedDict, TypeVar, Unpack

from msgspec import Struct

from recto import wire
from recto.api.arguments import checked_door
from recto.base import locations
from recto.base.home_files import private_home
from recto.base.ids import id_start, is_id
from recto.base.text import shown
from recto.chat.blocks import File, Image, ToolResult
from recto.chat.conversation import Conversation, ConversationState
from recto.chat.message import Message, stored_time
from recto.errors import Altered, Invalid, NotFound
from recto.reports.transcript import number_in
from recto.sources.source import Pick, SourceId
from recto.store.document_uses import DocumentTally, Grouping
from recto.store.records import Record
from recto.store.spending import Spent, SpentBy, TokenUse
from recto.store.store import Store
from recto.store.tree import IdKind
from recto.transfer.report import ExportOptions, Place

if TYPE_CHECKING:
    from recto.events import Event
    from recto.reports.source_report import ReplyContext, SourceReport
    from recto.store.comparison import Difference

T = TypeVar("T")
LAST, PREVIOUS = "last", "previous"
"""Requests of the latest conversation."""


class SentText(Struct, frozen=True):
    """The text of a source as it was sent, whatever its file contains today."""

    pick: Pick
    text: str


class SpentWithin(TypedDict, total=False):
    """Filters the requests to sum; by default all."""

    conversation: str | int | None
    since: str | date | None


@checked_door
class StoreQueries:
    def __init__(self, store: Store, home: Path, project: Path | None) -> None:
        self._store, self._tree, self._records = store, store.tree, store.records
        self._home, self._project = home, project

    # -- conversations and messages

    def conversations(self, *, limit: int = 100, state: ConversationState = "active") -> list[Conversation]:
        """The latest first."""
        return self._tree.conversations(limit=limit, state=state)

    def conversation(self, named: str | int | None = None, *, deleted: bool = False) -> Conversation:
        """A conversation by number (`#3`), id or a prefix of it, or title; by default the latest. One in the trash only
        with `deleted`."""
        if named is None:
            found = self._tree.latest()
            if found is None:
                raise NotFound("there is no conversation yet: `recto chat` starts one")
            return found
        return find_conversation(self._store, named, deleted=deleted)

    def titled(self, text: str) -> list[Conversation]:
        """Conversations whose title has all words of a text, including hidden ones; latest first."""
        words = text.casefold().split()
        known = [each for each in self._tree.conversations(limit=None) if not each.deleted]
        return [each for each in known if all(word in each.title.casefold() for word in words)]

    def message(self, named: str, conversation: str | None = None) -> tuple[Conversation, Message]:
        """A message by id or a prefix of it, in any conversation, or by its number on the path of one (`#57`; by
        default the latest).

        Raises NotFound if the message is not part of the named conversation."""
        if (number := number_in(named)) is not None:
            home = self.conversation(conversation)
            return home, message_by_number(self._store, home, home.head, number)
        id = full_id(self._store, "message", named)
        message = self._tree.message(id)
        home = self.conversation(self._tree.owner(id))
        if conversation is not None and (other := self.conversation(conversation)).id != home.id:
            raise NotFound(f"message {named} is not part of conversation #{other.number}", id=named)
        return home, message

    def playback(self, conversation: str | int | None = None) -> "Iterator[Event]":
        """The events of a conversation (by default the latest), as in its turns."""
        from recto.reports.playback import playback_events  # all events: only to play

        return playback_events(self._store, self.conversation(conversation).head)

    def short_names(self, ids: Collection[str], head: str | None = None) -> dict[str, str]:
        """`#3` for conversations, `#12` for messages on their path (or on the one to `head`), and for the requests of
        such replies. Ids without a number are left out."""
        if not ids:
            return {}
        numbers = self._tree.conversation_numbers(ids) | self._tree.numbers(ids, head)
        return {id: f"#{number}" for id, number in numbers.items()}

    def numbered(self, value: T, head: str | None = None) -> T:
        """A JSON value with short names in place of ids."""
        names = self.short_names(wire.ids_in(value), head)
        named: T = wire.with_ids(value, lambda known: names.get(known, known)) if names else value
        return named

    def tool_result(self, results: Message, *, call: int = 1, media: int | None = None) -> bytes:
        """The complete output of a tool: the text of a call, or one of its pictures and files by number."""
        found = _chosen_result(results, call)
        if media is None:
            return self._store.blobs.get(found.whole) if found.whole else found.text.encode()
        if media > len(found.media):
            raise NotFound(f"{found.name} gave {len(found.media)} pictures or files, not {media}")
        return self._store.blobs.get(found.media[media - 1].rpartition(" ")[2])

    def attached(self, message: str, block: int) -> tuple[str, bytes]:
        """The media type and bytes of an image or file in a message, by the number of its block, from 0 on."""
        owner = self.message(message)[1]
        found = owner.blocks[block] if 0 <= block < len(owner.blocks) else None
        if not isinstance(found, Image | File) or not (found.sha256 or found.base64):
            raise NotFound(f"message #{owner.said} has no attachment in block {block}", id=owner.id)
        data = self._store.blobs.get(found.sha256) if found.sha256 else base64.b64decode(found.base64)
        return found.media_type, data

    # -- requests

    def request_id(self, named: str | None = None) -> str:
        """A request by its id, by a message's id (or a prefix of either) or number (`#12`, in the latest conversation),
        as `last` or `previous`; by default the last."""
        if named in (None, LAST, PREVIOUS):
            home = self.conversation()
            if (last := self._records.latest(home.id)) is None:
                raise NotFound(f"nothing was sent yet in conversation #{home.number}")
            return self._records.before(last) if named == PREVIOUS else last
        assert named is not None
        if number_in(named) is not None:
            return self._records.named(self.message(named)[1].id)
        of_request = full_id(self._store, "request", named)
        return self._records.named(full_id(self._store, "message", named) if of_request == named else of_request)

    def record(self, request: str | None = None) -> Record:
        """The record of a request, without its bytes; by default the last one of the latest conversation."""
        return self._records.record(self.request_id(request))

    def rebuild(self, request: str | None = None) -> bytes:
        """The exact bytes that were sent. Raises Altered if they can no longer be rebuilt."""
        return self._records.rebuild(self.request_id(request))

    def compare(self, before: str | None = None, after: str | None = None) -> "Difference":
        """The additions, removals and changes between two requests; a single one is compared with its predecessor."""
        one = self.request_id(before)
        pair = (self._records.before(one), one) if after is None else (one, self.request_id(after))
        return self._records.compare(*pair)

    def verify(self, requests: Sequence[str] | None = None) -> Iterator[tuple[str, str | None]]:
        """For each request (all by default): None if it rebuilds, else the difference."""
        ids = self._records.ids() if requests is None else [self.request_id(each) for each in requests]
        return self._records.differences(ids)

    def unsent(self, requests: Sequence[str] | None = None) -> set[str]:
        """The ids of the requests that were never sent, among these (all by default)."""
        return self._records.unsent(None if requests is None else [self.request_id(each) for each in requests])

    def sent_source(self, request: str | None, source: str) -> SentText:
        """The text of `rule:NAME`, `ref:NAME` or `tool:SERVER/NAME` as it was sent with a request."""
        record, wanted = self.record(request), SourceId.parse(source)
        sent = next((pick for pick in record.account.picks() if pick.source == wanted), None)
        if sent is None:
            raise NotFound(f"{wanted} was not sent with this request", source=source, request=record.id)
        if not sent.sha256:
            raise NotFound(f"the text of {wanted} is not kept: the request names it without a hash")
        return SentText(sent, self._store.blobs.get(sent.sha256).decode(errors="replace"))

    def sent_pick(self, request: str | None, section: str, place: int) -> SentText:
        """The text of anything in a request as it was sent: the pick at this position of a section, from 0 on."""
        record = self.record(request)
        picks = tuple(record.account.picks(section))
        if not 0 <= place < len(picks):
            raise NotFound(f"the {section} of this request hold {len(picks)} parts, not {place + 1}", request=record.id)
        pick = picks[place]
        if not pick.sha256:
            raise NotFound(f"the text of {pick.name} is not kept alone: the exact request holds it", request=record.id)
        return SentText(pick, self._store.blobs.get(pick.sha256).decode(errors="replace"))

    # -- exports

    def export(self, conversation: str | int | None = None, **options: Unpack[ExportOptions]) -> Iterator[bytes]:
        """A conversation (by default the latest), in chunks."""
        from recto.transfer.exporter import export_chunks  # checks of all lines: a twentieth of a second

        ids = self._store.copies.ids() if options.get("everything") else [self.conversation(conversation).id]
        return export_chunks(self._store, ids, options.get("format") or "json")

    def export_file(self, file: Place, conversation: str | int | None = None, **options: Unpack[ExportOptions]) -> Path:
        """Writes a conversation (by default the latest) into a file, whole or not at all."""
        from recto.transfer.exporter import write_chunks  # as above

        place = Path(file).expanduser()
        write_chunks(place, self.export(conversation, **options))
        return place

    # -- statistics

    def source_report(self, agent: str | None = None, since: str | None = None) -> "SourceReport":
        """How replies used their sources, with suggestions."""
        from recto.agents.agents import Agents  # front matter, links, encodings: a twentieth of a second
        from recto.reports.source_report import source_report

        return source_report(self._store, Agents(self._home, self._project), agent, since)

    def reply_contexts(self, agent: str | None = None, since: str | None = None) -> "Iterator[ReplyContext | Altered]":
        """Oldest first; an error in place of an unreadable one."""
        from recto.agents.agents import Agents  # as above
        from recto.reports.source_report import check_agent, reply_contexts

        check_agent(self._store, Agents(self._home, self._project), agent)
        return reply_contexts(self._store, agent, since)

    def spending(self, by: SpentBy = "day", **within: Unpack[SpentWithin]) -> list[Spent]:
        """The cost of requests, including summaries: in total, or by day, model, conversation or purpose."""
        return self._store.spending.by(by, *self._calls(within))

    def token_use(self, by: SpentBy = "day", **within: Unpack[SpentWithin]) -> list[TokenUse]:
        """Tokens that requests read and wrote, as reported, and their cost, summed as in `spending`."""
        return self._store.spending.tokens(by, *self._calls(within))

    def _calls(self, within: SpentWithin) -> tuple[str | None, str | None]:
        named = within.get("conversation")
        return self.conversation(named).id if named is not None else None, _stored_start(within.get("since"))

    def document_stats(self, vault: Path, by: Grouping = "document") -> list[DocumentTally]:
        """The documents of a vault (its folder) that conversations use, the most used first."""
        return self._store.document_uses.tally(str(vault), by)

    def unnamed_documents(self, vault: Path, notes: Collection[str]) -> list[DocumentTally]:
        """Of these notes, those never named: first those found by tools, then those never used."""
        used = self.document_stats(vault)
        names = {each.name for each in used}
        return [
            *(each for each in used if not each.direct),
            *(DocumentTally(each) for each in notes if each not in names),
        ]

    # -- the end

    def close(self) -> None:
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def open_queries(home: str | Path | None = None, project: str | Path | None = None) -> StoreQueries:
    """A reader on `home` (default: RECTO_HOME or ~/.recto)."""
    place = Path(home).expanduser() if home else locations.find_home()
    root = Path(project) if project else locations.find_project(Path.cwd(), place)
    with private_home(place):
        return StoreQueries(Store(locations.find_store(place)), place, root)


# Candidates listed for an ambiguous name.
MOST_TOLD = 5


def find_conversation(store: Store, named: str | int, *, deleted: bool = False) -> Conversation:
    """A conversation by number, id, prefix of an id, or title. Raises NotFound if there is none, Invalid if it is
    ambiguous. One in the trash is found by number and id, and returned only with `deleted`."""
    number, id = number_in(named), full_id(store, "conversation", str(named))
    if number is None and not is_id(id):
        return _titled(store, str(named), deleted=deleted)
    found = store.tree.conversation(id) if number is None else store.tree.conversation_numbered(number)
    if found.deleted and not deleted:
        how = f"`recto conversations restore {found.number}` brings it back"
        raise NotFound(f"conversation #{found.number} is in the trash; {how}", id=found.id)
    return found


def full_id(store: Store, kind: IdKind, named: str, home: str | None = None) -> str:
    """The id with this prefix; the name unchanged if there is none. Raises Invalid if there are several."""
    start = None if is_id(named) else id_start(named)
    found = store.tree.ids_beginning(kind, start, most=MOST_TOLD + 1, home=home) if start else []
    if len(found) > 1:
        raise Invalid(f"{shown(named)} matches several ids: {_listed(found)}; give more characters")
    return found[0] if found else named


def _titled(store: Store, title: str, *, deleted: bool) -> Conversation:
    """Looks for the exact title, then for one that differs only in case, then for one that contains it."""
    known, wanted = store.tree.conversations(limit=None), " ".join(title.split())
    part = wanted.casefold()
    fits: list[Callable[[str], bool]] = [
        lambda title: title == wanted,
        lambda title: title.casefold() == part,
        lambda title: part in title.casefold(),
    ]
    named = [each for each in known if part and (deleted or not each.deleted)]
    found = next((fitting for fit in fits if (fitting := [each for each in named if fit(each.title)])), [])
    if not found:
        raise NotFound(f"there is no conversation {title}; `recto conversations list` shows all of them", id=title)
    if len(found) > 1:
        meant = _listed([f"#{each.number} {each.title}" for each in found])
        raise Invalid(f"{shown(title)} may mean {meant}; name one by its number")
    return found[0]


def _listed(names: Sequence[str]) -> str:
    more = ["…"] if len(names) > MOST_TOLD else []
    return ", ".join([*names[:MOST_TOLD], *more])


def message_by_number(store: Store, home: Conversation, head: str | None, number: int) -> Message:
    """The message of this number on the path to `head`."""
    found = store.tree.numbered(head, [number]) if head else {}
    if number not in found:
        raise NotFound(f"conversation #{home.number} has no message #{number}", id=f"#{number}")
    return store.tree.message(found[number].id)


def _stored_start(since: str | date | None) -> str | None:
    try:
        return None if since is None else stored_time(str(since))
    except (ValueError, OverflowError) as why:
        raise Invalid(f"{since} is not a time; write 2026-01-31 or 2026-01-31T18:00", time=str(since)) from why


def _chosen_result(message: Message, call: int) -> ToolResult:
    results = message.results
    if call > len(results):
        noun = "tool result" if len(results) == 1 else "tool results"
        raise NotFound(f"message #{message.said} holds {len(results)} {noun}, not {call}", id=message.id)
    return results[call - 1]
