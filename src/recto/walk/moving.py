"""Moving: where a front end goes in a conversation, and what it changes about what is sent there. No model is asked."""

from collections.abc import Awaitable, Callable

from recto.chat.blocks import Compaction, Text
from recto.chat.message import Message
from recto.errors import Invalid, NotFound
from recto.store.clerk import Clerk
from recto.store.store import Store
from recto.text import clean
from recto.walk.revising import Revising
from recto.walk.setup import LARGEST_SUMMARY, Footing
from recto.walk.standing import Standing
from recto.window.request import Entry


class Moving:
    def __init__(self, store: Store, clerk: Clerk, footing: Callable[[Standing], Awaitable[Footing]]) -> None:
        self._store, self._clerk, self._footing = store, clerk, footing

    async def undo(self, standing: Standing) -> Message:
        """The head goes back to before what was done last, a clear or a message of the user, which is given back."""
        at = standing.head
        head = await self._clerk.do(self._store.tree.message, at) if at else None
        if head and head.compaction and "clear" in (head.compaction.action, head.compaction.made_by):
            standing.head = await self._clerk.do(self._store.tree.move, standing.conversation, head.parent, again=False)
            return head
        while at:
            page = await self._clerk.do(self._store.tree.page, at, most=64)
            if last := next((message for message in page if message.role == "user"), None):
                await self._move(standing, last.parent)
                return last
            at = page[-1].parent
        raise NotFound("there is nothing to undo: the conversation has no message yet")

    async def fork(self, standing: Standing, message: str) -> None:
        """The next message becomes a child of this one."""
        await self._move(standing, message)

    async def _move(self, standing: Standing, target: str | None) -> None:
        standing.head = await self._clerk.do(self._store.tree.move, standing.conversation, target)
        standing.branched = False

    async def clear(self, standing: Standing) -> Compaction:
        """Starts the view anew. Everything said stays in the store, in search and in show."""
        return await self._clerk.do(self._revising(standing).clear)

    async def pin(self, standing: Standing, message: str) -> Compaction:
        """The message is in every window from now on."""
        return await self._clerk.do(self._revising(standing).pin, message)

    async def unpin(self, standing: Standing, message: str) -> Compaction:
        return await self._clerk.do(self._revising(standing).unpin, message)

    async def uncompact(self, standing: Standing) -> Compaction:
        """Takes back what the newest compaction covers; what was said since stays."""
        return await self._clerk.do(self._revising(standing).uncompact)

    async def edit_summary(self, standing: Standing, text: str) -> Compaction:
        """Another summary in place of the one in force, whose text stays in its own block."""
        footing = await self._footing(standing)
        said = clean(text)[0].strip()
        tokens = (await footing.scale.weigh([Entry("user", (Text(said),))]))[0].count.tokens
        most = int(footing.room * LARGEST_SUMMARY)
        if tokens > most:
            raise Invalid(f"the summary takes {tokens} tokens; at most {most} are allowed, 30 % of the window's room")
        return await self._clerk.do(self._revising(standing).edit, said)

    def _revising(self, standing: Standing) -> Revising:
        standing.loaded = {}
        return Revising(self._store, standing)
