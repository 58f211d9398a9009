"""Revising: what the user changes about what is sent: pin, unpin, edit, clear, take back. Each appends a Compaction.

Runs in the store's thread, each in one transaction; knows no model.
"""

from dataclasses import dataclass
from typing import Any

from recto.chat.blocks import Compaction
from recto.chat.message import Message
from recto.errors import Invalid, NotFound
from recto.store.store import Store
from recto.summary.check import recounted
from recto.walk.standing import Standing
from recto.window.compact import Written, compaction_message, next_block, revised

# How many compactions are looked through for the one before.
LOOKED_THROUGH = 200
# Only a model's meter can tell how large a window is.
UNMEASURED = {"context_size_before": 0, "context_size_after": 0}


@dataclass(frozen=True, slots=True)
class Revising:
    store: Store
    standing: Standing

    def clear(self) -> Compaction:
        """Covers everything, says nothing of it and lets nothing of it be recalled; pins end with it."""
        head = self._head("there is nothing to clear: the conversation has no message yet")
        message = self.store.tree.message(head)
        before, after = self._sizes()
        block = next_block(
            self._block,
            Written(made_by="clear"),
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

    def pin(self, id: str) -> Compaction:
        message, block = self._on_path(id), self._block
        if block and id in block.pinned:
            raise Invalid(f"message {id} is pinned already", id=id)
        pinned = (*(block.pinned if block else ()), id)
        lifted = block.lifted if block else ()
        if self._is_covered(message, block):
            lifted = self._in_order({*lifted, *self._unit(message)})
        return self._revise("pin", f"the user pinned message {id}", pinned=pinned, **self._lifting(lifted, block))

    def unpin(self, id: str) -> Compaction:
        block = self._block
        if block is None or id not in block.pinned:
            raise Invalid(f"message {id} is not pinned", id=id)
        message = self.store.tree.message(id)
        pinned = tuple(each for each in block.pinned if each != id)
        unit = set(self._unit(message))
        # the rest of its round may be pinned too, and calls and results stay together
        gone = unit if not unit & set(pinned) else set()
        lifted = tuple(each for each in block.lifted if each not in gone)
        return self._revise("unpin", f"the user unpinned message {id}", pinned=pinned, **self._lifting(lifted, block))

    def edit(self, text: str) -> Compaction:
        if self._block is None or self._block.last is None:
            raise Invalid("there is no summary to edit: nothing is compacted yet")
        if not text:
            raise Invalid("the summary is empty: `recto context clear` starts anew without one")
        checks = recounted(text, self._block)
        by_user: dict[str, Any] = {"summary": text, "made_by": "user", "made": None, "checks": checks, "notes": ()}
        return self._revise("edit", "the user edited the summary", **by_user)

    def uncompact(self) -> Compaction:
        """The view as it was before the newest compaction that covered more than the one before it."""
        newest = self._block
        if newest is None or not (newest.last or newest.excerpts):
            raise Invalid("there is no compaction to take back")
        depth = self._depth(newest.last)
        found = self.store.tree.compactions(self._head(""), limit=LOOKED_THROUGH)
        blocks = [message.compaction for message in found if message.compaction]
        former = next((block for block in blocks if self._depth(block.last) < depth), None)
        same = [block for block in blocks if block.last == newest.last and block.action in ("compact", "clear")]
        taken = same[-1] if same else newest
        restored = former or Compaction(0, "", None, "", 0, 0, 0, "discard", "")
        pinned = tuple(dict.fromkeys((*restored.pinned, *newest.pinned))) if taken.action == "clear" else newest.pinned
        lifted = self._in_order({*restored.lifted, *self._covered_units(pinned, restored)})
        block = revised(
            restored,
            "undo",
            f"the user took compaction {taken.compaction_number} back",
            compaction_number=newest.compaction_number + 1,
            little=newest.little,
            pinned=pinned,
            **self._lifting(lifted, restored),
            **UNMEASURED,
        )
        return self._append(block)

    # -- on the path

    @property
    def _block(self) -> Compaction | None:
        newest = self.store.tree.compaction(self.standing.head) if self.standing.head else None
        return newest.compaction if newest else None

    def _head(self, otherwise: str) -> str:
        if self.standing.head is None:
            raise Invalid(otherwise)
        return self.standing.head

    def _on_path(self, id: str) -> Message:
        message = self.store.tree.message(id)
        if self.standing.head is None or not self.store.tree.is_on(self.standing.head, id):
            raise NotFound(f"message {id} is not on this branch of the conversation", id=id)
        if message.compaction:
            raise Invalid(f"message {id} is a compaction, which is never sent itself", id=id)
        return message

    def _is_covered(self, message: Message, block: Compaction | None) -> bool:
        return block is not None and block.last is not None and message.depth <= self._depth(block.last)

    def _depth(self, id: str | None) -> int:
        return self.store.tree.message(id).depth if id else 0

    def _unit(self, message: Message) -> list[str]:
        """The message with what belongs to it: a call with its results, a result with its call."""
        call = message
        if message.role == "tool" and message.parent:
            call = self.store.tree.message(message.parent)
        if not call.calls or self.standing.head is None:
            return [message.id]
        results = self.store.tree.children(call.id, role="tool")
        return [call.id, *(each for each in results if self.store.tree.is_on(self.standing.head, each))]

    def _covered_units(self, pinned: tuple[str, ...], block: Compaction | None) -> list[str]:
        messages = [self.store.tree.message(id) for id in pinned]
        return [id for message in messages if self._is_covered(message, block) for id in self._unit(message)]

    def _in_order(self, ids: set[str]) -> tuple[str, ...]:
        return tuple(message.id for message in self.store.tree.messages(list(ids))) if ids else ()

    def _lifting(self, lifted: tuple[str, ...], block: Compaction | None) -> dict[str, Any]:
        archived = block.messages_archived + len(block.lifted) - len(lifted) if block else 0
        return {"lifted": lifted, "messages_archived": archived}

    def _sizes(self) -> tuple[int, int]:
        """The last window here, and what of it does not come from the conversation."""
        last = self.store.records.latest(self.standing.conversation)
        sections = self.store.records.record(last).account["sections"] if last else []
        fixed = sum(section["tokens"] for section in sections if section["name"] in ("system", "tools"))
        return sum(section["tokens"] for section in sections), fixed

    def _revise(self, action: str, because: str, **changes: Any) -> Compaction:
        return self._append(revised(self._block, action, because, **UNMEASURED, **changes))

    def _append(self, block: Compaction) -> Compaction:
        head = self._head("the conversation has no message yet")
        with self.store.database.write():
            placed = self.store.tree.append(self.standing.conversation, compaction_message(block, head))
            self.standing.stands_at(placed.message.id, placed.moved)
        return block
