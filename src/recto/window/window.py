"""Window: the sections that the model reads, with their tokens and picks; and how messages become entries."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from recto.chat.blocks import Block, Compaction, Image, References, Text, Thinking, ToolCall, ToolResult
from recto.chat.message import Message
from recto.errors import DoesNotFit
from recto.sources.source import Pick
from recto.sources.tools import CANCELLED
from recto.window.account import RequestAccount, Section
from recto.window.calibration import UNCALIBRATED, TokenCalibration, UsageReport
from recto.window.plan import Budget, Plan, component_of
from recto.window.request import Entry

SECTIONS = (
    "system",
    "rules",
    "references",
    "tools",
    "summary",
    "history",
    "memory",
    "recalled",
    "sources",
    "documents",
    "message",
)


NO_EXCERPTS: Mapping[str, str] = {}
OWN_IDS: Mapping[str, str] = {}
# A reply in another state may have incomplete calls.
_WHOLE = ("done", "pending")
SUMMARY_BEGINS = "[Summary of the earlier conversation; {archived} messages are archived.]"
SUMMARY_ENDS = (
    "[End of the summary. The context was compacted: continue from the summary and the messages that follow; "
    "tools can be used again.]"
)
LEDGER_BEGINS = "[Said besides, by number of the message; each is kept word for word and can be recalled:]"
CONTENTS_BEGIN = "[Only in the archive, and can be recalled:]"
ARCHIVED = "[{archived} earlier messages are archived and not shown here.]"
# The beginnings of the frame's own lines, and those of a ledger and a work log, whatever surrounds the words.
_FRAME_START = re.compile(
    r"[\s*_`\"'“”]*(?:[\[({<]+\s*(?:end of|summary of|said besides|only in the archive|[\d,.]+ earlier messages)\b"
    r"|#\s*\d+(?:\s*[–-]\s*#?\d+)?(?:\s*[^\W\d]+)?\s*:|work log\s*:)",
    re.IGNORECASE,
)
_LEDGER_LINE = re.compile(r"#\d+ ?\S")
WORK_LOG_BEGINS = "Work log:"
"""Only the first line of a summary may be this."""


class Component(Struct, frozen=True):
    """One of the three parts of a window: its tokens and budget."""

    used: int
    budget: int

    @property
    def percent(self) -> float:
        return round(100 * self.used / self.budget, 1) if self.budget else 0.0

    def to_json(self) -> dict[str, Any]:
        return {"used": self.used, "budget": self.budget, "percent": self.percent}


class Window(Struct, frozen=True):
    """The context of one request, planned or sent: limit = total + reserve + free."""

    conversation: str
    model: str
    strategy: str
    limit: int
    reserve: int
    exact: bool
    sections: tuple[Section, ...]
    plan: Plan
    notes: tuple[str, ...] = ()
    not_picked: tuple[Pick, ...] = ()
    """Sources found for this message that did not fit, best first."""
    estimated: int = 0
    """The part of the total that is estimated, calibrated."""
    calibration: TokenCalibration = UNCALIBRATED
    budgets: Mapping[str, int] = field(default_factory=dict)

    @property
    def components(self) -> dict[str, Component]:
        """System, tools and messages, each with its tokens and budget."""
        used = dict.fromkeys(self.budgets, 0)
        for section in self.sections:
            name = component_of(section.name)
            used[name] = used.get(name, 0) + section.tokens
        return {name: Component(tokens, self.budgets.get(name, 0)) for name, tokens in used.items()}

    @property
    def total(self) -> int:
        return sum(section.tokens for section in self.sections)

    @property
    def free(self) -> int:
        return self.limit - self.reserve - self.total

    def to_json(self) -> dict[str, Any]:
        return {
            "conversation": self.conversation,
            "model": self.model,
            "limit": self.limit,
            "reserve": self.reserve,
            "total": self.total,
            "free": self.free,
            "exact": self.exact,
            "strategy": self.strategy,
            "sections": [section.to_json() for section in self.sections],
            "components": {name: part.to_json() for name, part in self.components.items()},
            "plan": self.plan.to_json(),
            "notes": list(self.notes),
            "calibration": self._calibration(),
            **({"not_picked": [pick.to_json() for pick in self.not_picked]} if self.not_picked else {}),
        }

    def account(self, *, meter: str, window_from: str) -> RequestAccount:
        return RequestAccount(
            limit=self.limit,
            reserve=self.reserve,
            total=self.total,
            free=self.free,
            exact=self.exact,
            strategy=self.strategy,
            sections=self.sections,
            plan=self.plan.to_json(),
            notes=self.notes,
            not_picked=self.not_picked,
            meter=meter,
            window_from=window_from,
            calibration=self._calibration(),
        )

    def report(self, reported: int, meter: str) -> UsageReport:
        """The input that the provider reported for this window, with our own counts."""
        base = round(self.estimated / self.calibration.factor)
        return UsageReport(self.conversation, self.total - self.estimated, base, self.total, reported, meter)

    def _calibration(self) -> dict[str, Any] | None:
        """How the estimated counts were scaled; None if all are exact."""
        told = self.calibration
        return None if self.exact else {"factor": told.factor, "replies": told.replies, "estimated": self.estimated}


class SectionTally(Struct):
    """Collects picks with their tokens, section by section."""

    picks: dict[str, list[Pick]] = field(default_factory=dict)

    def add(self, section: str, pick: Pick, tokens: int) -> None:
        self.picks.setdefault(section, []).append(replace(pick, tokens=tokens))

    def sections(self, budget: Budget) -> tuple[Section, ...]:
        spent = {name: sum(pick.tokens for pick in picks) for name, picks in self.picks.items()}
        return tuple(
            Section(name, spent[name], budget.of(name), tuple(self.picks[name])) for name in SECTIONS if name in spent
        )


def entries_of(
    unit: Sequence[Message], excerpts: Mapping[str, str] = NO_EXCERPTS, call_ids: Mapping[str, str] = OWN_IDS
) -> list[Entry]:
    """The entries of a message, or of a message with tool calls and its results.

    Every call gets exactly one result, in the order of the calls: a missing result becomes a cancelled one, a result
    without a call is left out. Calls of an unfinished reply may be incomplete and are left out.
    """
    if excerpts:
        unit = [excerpted(message, excerpts) for message in unit]
    first, *rest = _with_numbered_calls(unit)
    if first.role == "tool":
        return []
    blocks = _readable(first)
    if not first.calls:
        return [Entry(first.role, blocks, first.id)]
    if first.status not in _WHOLE:
        return [Entry(first.role, tuple(block for block in blocks if not _is_turn(block)), first.id)]
    found = {result.call_id: result for message in rest for result in message.results}
    results = tuple(
        found.get(call.id) or ToolResult(call.id, call.name, CANCELLED, is_error=True) for call in first.calls
    )
    return [
        Entry(first.role, blocks, first.id, call_ids),
        Entry("tool", results, rest[0].id if rest else None, call_ids),
    ]


def _with_numbered_calls(unit: Sequence[Message]) -> Sequence[Message]:
    """Imported replies may have calls that share an id: the second call and the second result become `id_2`, or the
    next free number."""
    ids = [call.id for call in unit[0].calls]
    if len(ids) == len(set(ids)):
        return unit
    names, results = _numbered_ids(ids), Counter[str]()
    return [_numbered(unit[0], Counter(), names), *(_numbered(message, results, names) for message in unit[1:])]


CallNames = Mapping[tuple[str, int], str]
"""By id and occurrence."""


def _numbered_ids(ids: Sequence[str]) -> CallNames:
    taken, times, names = set(ids), Counter[str](), {}
    for id in ids:
        times[id] += 1
        free = (name for number in count(times[id]) if (name := f"{id}_{number}") not in taken)
        names[id, times[id]] = name = id if times[id] == 1 else next(free)
        taken.add(name)
    return names


def _numbered(message: Message, times: Counter[str], names: CallNames) -> Message:
    """A result beyond the calls of its id belongs to none of them, and is left out."""
    numbered = (_numbered_block(block, times, names) for block in message.blocks)
    return replace(message, blocks=tuple(block for block in numbered if block))


def _numbered_block(block: Block, times: Counter[str], names: CallNames) -> Block | None:
    if not isinstance(block, ToolCall | ToolResult):
        return block
    id = block.id if isinstance(block, ToolCall) else block.call_id
    times[id] += 1
    if (name := names.get((id, times[id]))) is None:
        return None
    return replace(block, id=name) if isinstance(block, ToolCall) else replace(block, call_id=name)


def ids_to_send(messages: Iterable[Message]) -> dict[str, dict[str, str]]:
    """By message: new names for ids of calls that an earlier message has too, which some providers reject. Each depends
    only on its message, so bytes stay the same while the earlier one is sent."""
    known: set[str] = set()
    found: dict[str, dict[str, str]] = {}
    for message in messages:
        if message.role != "assistant" or message.status not in _WHOLE or not message.calls:
            continue
        calls = _with_numbered_calls([message])[0].calls
        if repeated := [call.id for call in calls if call.id in known]:
            found[message.id] = {id: f"{id}_{message.id[-8:]}" for id in repeated}
        known |= {call.id for call in calls}
    return found


def _readable(message: Message) -> tuple[Block, ...]:
    """The blocks, ending with the text about referenced documents; the references themselves are left out."""
    if not any(isinstance(block, References) for block in message.blocks):
        return message.blocks
    texts = [block.told for block in message.blocks if isinstance(block, References) and block.told]
    return (
        *(block for block in message.blocks if not isinstance(block, References)),
        *(Text(f"\n\n{text}") for text in texts),
    )


def _is_turn(block: object) -> bool:
    # providers accept the thinking before a call only together with that call
    return isinstance(block, ToolCall | Thinking)


def current_entry(message: Message, volatile: Sequence[str]) -> Entry:
    """The user's message, preceded by the sources picked for it, as one user message."""
    ahead = tuple(Text(text + "\n\n") for text in volatile)
    return Entry("user", ahead + _readable(message), message.id)


def excerpted(message: Message, excerpts: Mapping[str, str]) -> Message:
    if message.role == "tool":
        shorter = {key.partition("/")[2]: text for key, text in excerpts.items() if key.startswith(message.id + "/")}
        if not shorter:
            return message
        return replace(message, blocks=tuple(_shorter(block, shorter) for block in message.blocks))
    if message.id not in excerpts:
        return message
    others = tuple(block for block in message.blocks if isinstance(block, Image | References))
    return replace(message, blocks=(Text(excerpts[message.id]), *others))


def _shorter(block: Block, excerpts: Mapping[str, str]) -> Block:
    if isinstance(block, ToolResult) and block.call_id in excerpts:
        return replace(block, text=excerpts[block.call_id])
    return block


def summary_entry(block: Compaction, lifted: Sequence[Message] = ()) -> Entry | None:
    """The user message that replaces everything a Compaction covers; None if none is needed.

    Without a summary, a line is still needed if the window would begin with a reply, which some providers reject.
    """
    if block.summary:
        begins = SUMMARY_BEGINS.format(archived=block.messages_archived)
        ledger = (LEDGER_BEGINS, *map(_ledger_line, block.ledger)) if block.ledger else ()
        contents = (CONTENTS_BEGIN, *block.contents) if block.contents else ()
        return Entry("user", (Text("\n".join((begins, *_told(block.summary), *ledger, *contents, SUMMARY_ENDS))),))
    if lifted and lifted[0].role != "user":
        return Entry("user", (Text(ARCHIVED.format(archived=block.messages_archived)),))
    return None


def _told(summary: str) -> list[str]:
    """The lines of a summary. No text in it can end or forge the frame."""
    lines = summary.splitlines()
    own = 1 if lines[:1] == [WORK_LOG_BEGINS] else 0
    return [*lines[:own], *map(quote_if_framelike, lines[own:])]


def _ledger_line(line: str) -> str:
    line = " ".join(line.splitlines())
    return line if _LEDGER_LINE.match(line) else quote_if_framelike(line)


def is_framelike(line: str) -> bool:
    """True if a reader could take it for a line of a summary's frame."""
    line = line.replace("\t", " ")
    if not (line.isprintable() and (line.isascii() or unicodedata.is_normalized("NFKC", line))):
        plain = unicodedata.normalize("NFKC", line)
        # control and private characters, and those that no font has yet: a reader sees nothing there
        line = "".join(char for char in plain if unicodedata.category(char)[0] != "C" or char.isspace())
    return _FRAME_START.match(line) is not None


def quote_if_framelike(line: str) -> str:
    return f"> {line}" if is_framelike(line) else line


def too_large(window: Window) -> DoesNotFit:
    largest = max(window.sections, key=lambda section: section.tokens)
    return DoesNotFit(
        f"the window takes {window.total} tokens and has room for {window.limit - window.reserve}; most of it is "
        f"{largest.name} ({largest.tokens}): choose a model with a larger window, or ask for less at once",
        needed=window.total,
        room=window.limit - window.reserve,
        largest=largest.name,
    )
