"""Revisions: changes by the user that need no model: undo, fork, pin, unpin, edit, clear, uncompact."""

from collections.abc import Awaitable, Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from recto.base.text import clean
from recto.chat.blocks import Compaction
from recto.chat.message import Message
from recto.errors import Invalid, NotFound
from recto.store.store import Store
from recto.turn.context import LARGEST_SUMMARY, ResolvedModel, longest_summary
from recto.turn.messages import pending_reply
from recto.turn.session import ChatSession, SessionChanges, moved
from recto.window.compaction_block import (
    NO_COMPACTION,
    SetAside,
    WrittenSummary,
    all_set_aside,
    cleared_at,
    compaction_message,
    next_block,
    revised_block,
)

# How many compactions are searched for the previous one.
LOOKED_THROUGH = 200


Revised = tuple[Compaction, SessionChanges]


class BlockRevision(Struct, frozen=True):
    """The user's changes to what is sent at a head: each appends a Compaction. Runs inside a transaction."""

    store: Store
    conversation: str
    head: str | None

    def clear(self) -> Revised:
        """Nothing covered is recalled, and pins end."""
        head = self._head("there is nothing to clear: the conversation has no message yet")
        message = self.store.tree.message(head)
        before, after = self._sizes()
        block = next_block(
            self._block,
            WrittenSummary(made_by="clear"),
            action="clear",
            because="the user cleared the context",
            last=head,
            cleared=head,
            pinned=(),
            messages_archived=message.said,
            context_size_before=before,
            context_size_after=after,
        )
        return self._append(block)

    def pin(self, id: str) -> Revised:
        message, block = self._on_path(id), self._block
        if block and id in block.pinned:
            raise Invalid(f"message #{message.said} is pinned already", id=id)
        pinned = (*(block.pinned if block else ()), id)
        lifted = block.lifted if block else ()
        if self._is_covered(message, block):
            lifted = self._in_order({*lifted, *self._unit(message)})
        return self._append(revised_block(block, "pin", f"the user pinned message {id}", pinned=pinned, lifted=lifted))

    def unpin(self, id: str) -> Revised:
        message, block = self.store.tree.message(id), self._block
        if block is None or id not in block.pinned:
            raise Invalid(f"message #{message.said} is not pinned", id=id)
        pinned = tuple(each for each in block.pinned if each != id)
        unit = set(self._unit(message))
        # the rest of its round may be pinned too, and calls and results stay together
        gone = unit - {*block.unsummarized} if not unit & set(pinned) else set()
        lifted = tuple(each for each in block.lifted if each not in gone)
        return self._append(
            revised_block(block, "unpin", f"the user unpinned message {id}", pinned=pinned, lifted=lifted)
        )

    def edit(self, text: str, tokens: int | None = None) -> Revised:
        if self._block is None or self._block.last is None:
            raise Invalid("there is no summary to edit: nothing is compacted yet")
        if not text:
            raise Invalid("the summary is empty: `recto context clear` starts over without one")
        from recto.summary.verification import recount_statements  # compiles many patterns: a tenth of a second
        from recto.summary.work_log import whole_log

        checks = recount_statements(text, self._block)
        block = self._block
        by_user = WrittenSummary(text, "user", checks=checks, ledger=block.ledger, places=block.places, tokens=tokens)
        by_user = replace(by_user, work_log=whole_log(text, block.summary, block.work_log))
        return self._append(revised_block(self._block, "edit", "the user edited the summary", written=by_user))

    def uncompact(self) -> Revised:
        """Restores the view before the newest compaction that covered more than the previous one."""
        newest = self._block
        if newest is None or not (newest.last or newest.excerpts):
            raise Invalid("there is no compaction to take back")
        depth = self._depth(newest.last)
        found = self.store.tree.compactions(self._head(""), limit=LOOKED_THROUGH)
        blocks = [message.compaction for message in found if message.compaction]
        former = next((block for block in blocks if self._depth(block.last) < depth), None)
        same = [block for block in blocks if block.last == newest.last and block.action in ("compact", "clear")]
        taken = same[-1] if same else newest
        restored = former or NO_COMPACTION
        pinned = tuple(dict.fromkeys((*restored.pinned, *newest.pinned))) if taken.action == "clear" else newest.pinned
        lifted = self._in_order({*restored.lifted, *self._covered_units(pinned, restored)})
        block = revised_block(
            restored,
            "undo",
            f"the user took compaction {taken.compaction_number} back",
            follows=newest,
            pinned=pinned,
            lifted=lifted,
        )
        size, _ = self._sizes()
        grown = max(0, size - taken.context_size_after) if size else 0
        block = replace(block, restored_size=taken.context_size_before + grown)
        return self._append(replace(block, takes_back=blocks.index(former) if former else len(blocks)))

    def forked(self, left: str | None) -> Compaction | None:
        """The Compaction to append after a fork to this head from `left`, to keep the pins and summaries that apply in
        force; None if they already are.

        They come from the path that was left if it runs through here, else from the newest one that does."""
        tree, head = self.store.tree, self._head("")
        end = left if left and tree.is_on(left, head) else tree.newest_compaction_below(head)
        depth, force = tree.message(head).depth, self._block
        beyond = [each.compaction for each in tree.compactions(end, after=depth) if each.compaction] if end else []
        if not beyond:
            return None
        here = [block for block in beyond if self._depth(block.last) <= depth]
        # a Compaction that a later clear ended is still in force before it
        uncleared = [block for block in beyond if self._depth(cleared_at(block)) <= depth]
        pinned = self._up_to(depth, (*(uncleared or [force or NO_COMPACTION])[0].pinned, *beyond[0].pinned))
        base = here[0] if here else revised_block(force, "pin", "the pins of the branch that was left")
        unpinned = tree.messages([id for id in base.pinned if id not in pinned])
        lifted = {*base.lifted} - {id for message in unpinned for id in self._unit(message)}
        lifted |= {*base.unsummarized, *self._covered_units(pinned, base)}
        owners = {key: key.partition("/")[0] for key in base.excerpts}
        near = self._up_to(depth, owners.values())
        block = replace(
            base,
            pinned=pinned,
            lifted=self._in_order(lifted),
            messages_archived=base.messages_archived + len(base.lifted) - len(lifted),
            set_aside=all_set_aside(SetAside(block.set_aside, block.takes_back) for block in here),
            takes_back=0,
            excerpts={key: text for key, text in base.excerpts.items() if owners[key] in near},
        )
        return block if _effect(block) != _effect(force or NO_COMPACTION) else None

    def _up_to(self, depth: int, ids: Iterable[str]) -> tuple[str, ...]:
        """The messages up to this depth, each once."""
        unique = tuple(dict.fromkeys(ids))
        near = {message.id for message in self.store.tree.messages(unique) if message.depth <= depth}
        return tuple(id for id in unique if id in near)

    # -- on the path

    @property
    def _block(self) -> Compaction | None:
        newest = self.store.tree.compaction(self.head) if self.head else None
        return newest.compaction if newest else None

    def _head(self, otherwise: str) -> str:
        if self.head is None:
            raise Invalid(otherwise)
        return self.head

    def _on_path(self, id: str) -> Message:
        message = self.store.tree.message(id)
        if self.head is None or not self.store.tree.is_on(self.head, id):
            raise NotFound(f"message #{message.said} is not on this branch of the conversation", id=id)
        if message.compaction:
            raise Invalid("this message is a compaction, which is never sent itself", id=id)
        return message

    def _is_covered(self, message: Message, block: Compaction | None) -> bool:
        return block is not None and block.last is not None and message.depth <= self._depth(block.last)

    def _depth(self, id: str | None) -> int:
        return self.store.tree.message(id).depth if id else 0

    def _unit(self, message: Message) -> list[str]:
        """The message with its tool results, or the result with its call."""
        call = message
        if message.role == "tool" and message.parent:
            call = self.store.tree.message(message.parent)
        if not call.calls or self.head is None:
            return [message.id]
        results = self.store.tree.children(call.id, role="tool")
        return [call.id, *(each for each in results if self.store.tree.is_on(self.head, each))]

    def _covered_units(self, pinned: tuple[str, ...], block: Compaction | None) -> list[str]:
        messages = [self.store.tree.message(id) for id in pinned]
        return [id for message in messages if self._is_covered(message, block) for id in self._unit(message)]

    def _in_order(self, ids: set[str]) -> tuple[str, ...]:
        return tuple(message.id for message in self.store.tree.messages(list(ids))) if ids else ()

    def _sizes(self) -> tuple[int, int]:
        """Tokens of the last window, and of its part outside the conversation."""
        last = self.store.records.latest(self.conversation)
        sections = (self.store.records.record(last).account.sections if last else None) or ()
        fixed = sum(section.tokens for section in sections if section.name in ("system", "tools"))
        return sum(section.tokens for section in sections), fixed

    def _append(self, block: Compaction) -> Revised:
        head = self._head("the conversation has no message yet")
        placed = self.store.tree.append(self.conversation, compaction_message(block, head))
        return block, {**moved(placed), "loaded": {}}


def _effect(block: Compaction) -> tuple[object, ...]:
    """How a Compaction changes the view."""
    told = block.last, block.summary, block.ledger, block.contents
    return *told, block.lifted, block.pinned, block.excerpts, cleared_at(block)


def fork_to(store: Store, session: ChatSession, target: str | None) -> SessionChanges:
    """Moves the head, with the pins and the summary that apply there. Runs inside a transaction."""
    store.tree.move(session.conversation, target)
    head = target
    if target and (block := BlockRevision(store, session.conversation, target).forked(session.head)):
        head = store.tree.append(session.conversation, compaction_message(block, target)).message.id
    return {"head": head, "branch": None, "pending": pending_reply(store, head)}


class Revisions:
    """Moves a session within its conversation, and makes the user's changes to what is sent there. Calls no model."""

    def __init__(self, store: Store, resolve: Callable[[ChatSession], Awaitable[ResolvedModel]]) -> None:
        self._store, self._resolve = store, resolve

    async def undo(self, session: ChatSession) -> Message:
        """Returns the last clear or user message, whichever is newer, after moving the head before it."""
        return await self._store.do(session.commit, self._store, lambda: self._undo(session))

    def _undo(self, session: ChatSession) -> tuple[Message, SessionChanges]:
        tree, at = self._store.tree, session.head
        head = tree.message(at) if at else None
        if head and head.compaction and "clear" in (head.compaction.action, head.compaction.made_by):
            tree.move(session.conversation, head.parent)
            return head, {"head": head.parent, "pending": pending_reply(self._store, head.parent)}
        while at:
            page = tree.page(at, most=64)
            if last := next((message for message in page if message.role == "user"), None):
                return last, fork_to(self._store, session, last.parent)
            at = page[-1].parent
        raise NotFound("there is nothing to undo: the conversation has no message yet")

    async def fork(self, session: ChatSession, message: str | None) -> None:
        """Makes this message the parent of the next one; None goes before the first."""
        await self._store.do(session.commit, self._store, lambda: (None, fork_to(self._store, session, message)))

    async def return_to(self, session: ChatSession, head: str | None) -> None:
        """Returns from a fork that came to nothing. What applies at the old place is already stored."""

        def step() -> tuple[None, SessionChanges]:
            self._store.tree.move(session.conversation, head)
            return None, {"head": head, "branch": None, "pending": pending_reply(self._store, head)}

        await self._store.do(session.commit, self._store, step)

    async def clear(self, session: ChatSession) -> Compaction:
        """All messages stay in the store, in search and in show."""
        return await self._revise(session, BlockRevision.clear)

    async def pin(self, session: ChatSession, message: str) -> Compaction:
        return await self._revise(session, lambda revision: revision.pin(message))

    async def unpin(self, session: ChatSession, message: str) -> Compaction:
        return await self._revise(session, lambda revision: revision.unpin(message))

    async def uncompact(self, session: ChatSession) -> Compaction:
        """Takes back the newest compaction; later messages stay."""
        return await self._revise(session, BlockRevision.uncompact)

    async def edit_summary(self, session: ChatSession, text: str) -> Compaction:
        """The old summary stays in its own block."""
        resolved = await self._resolve(session)
        summary = clean(text)[0].strip()
        tokens = await resolved.token_cache.tokens_of(summary)
        has_writer = resolved.has_summary_writer
        usual = longest_summary(resolved.limit, resolved.room, resolved.settings, has_writer=has_writer)
        most = max(int(resolved.room * LARGEST_SUMMARY), usual)
        if tokens > most:
            share = round(100 * most / resolved.room)
            raise Invalid(
                f"the summary takes {tokens} tokens; at most {most} are allowed, {share} % of the window's room"
            )
        return await self._revise(session, lambda revision: revision.edit(summary, tokens))

    async def _revise(self, session: ChatSession, change: Callable[[BlockRevision], Revised]) -> Compaction:
        """Runs in one transaction, because other processes may revise the same conversation."""

        def step() -> Revised:
            return change(BlockRevision(self._store, session.conversation, session.head))

        return await self._store.do(session.commit, self._store, step)
