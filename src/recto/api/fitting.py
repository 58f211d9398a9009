"""fit: makes a client's own list of messages fit a model's window. Uses no home, no store, and no model.

Uses the same planner and extractive summary as stored conversations. A list that has grown is cut at the same place as
before until it is full again: the cuts of its earlier requests are computed first, in order."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from recto.chat.blocks import Block, Compaction, Text, ToolResult
from recto.chat.conversation import View
from recto.chat.message import Message, Role
from recto.errors import DoesNotFit, Invalid
from recto.providers.catalog import ModelCatalog
from recto.providers.client_formats import ClientFormat, client_format_of, with_text
from recto.providers.http import BAD_DATA
from recto.providers.model import Model, VocabularyCounter
from recto.providers.registry import split_name
from recto.sentences.priority import awaits_task, priority_of
from recto.settings.strategy import STRATEGIES, SUMMARIZE, Strategy
from recto.summary.truncation import excerpt
from recto.window.compaction_block import WrittenSummary, next_block
from recto.window.count import SMALLEST_SUMMARY, SUMMARY, ZERO, Count, proportional_shares
from recto.window.plan import Budget, Cut, Shares, reserve_of
from recto.window.planner import plan_window
from recto.window.request import Entry, Piece
from recto.window.window import summary_entry
from recto.wire import Json, dumpb, dumps

LOW_WATER, SUMMARY_SHARE, LONGEST_SUMMARY = 0.5, 0.2, 4096
RECENT, LEAST_RECENT = 6, 2
# Only the total is limited here.
ALL_SHARES = Shares(1.0, 1.0, 1.0)
MOST_PASSES, MOST_TRIES = 4, 8
EVERYTHING_FITS = "everything fits"
STANDS_IN = WrittenSummary("…", made_by="extractive")


class FittedMessages(Struct, frozen=True):
    messages: list[Json]
    """The messages to send; those kept are the objects passed in."""
    tools: list[Json]
    tokens: int
    """The tokens of messages, tools and `system` together."""
    room: int
    """The most that they may take."""
    because: str
    """Why messages were left out, or that everything fits."""
    left_out: list[Json] = []
    """The given messages missing from `messages`, in order."""
    shortened: list[Json] = []
    """Messages sent with only their beginning and end."""
    summary: str = ""
    """The text in place of what is left out."""
    exact: bool = True
    """False if the token count is an estimate."""


def fit(
    messages: Sequence[Json],
    *,
    model: str,
    tools: Sequence[Json] | None = None,
    system: Json = None,
    max_prompt_tokens: int | None = None,
    max_tokens: int | None = None,
    strategy: str = SUMMARIZE.name,
) -> FittedMessages:
    """Makes messages of OpenAI's or Anthropic's API fit the model's window or `max_prompt_tokens`, in the same form.
    `system` is counted for APIs that take it apart from the messages; `max_tokens` is kept free for the reply.
    DoesNotFit names what is too large."""
    _check(messages, strategy, max_prompt_tokens=max_prompt_tokens, max_tokens=max_tokens)
    facts, given = _model(model), list(messages)
    format = client_format_of(given, tools or (), facts.provider)
    counter = VocabularyCounter(facts, format.format)
    room = _room(facts, max_prompt_tokens, max_tokens)
    fitting = Fitting(format, counter, STRATEGIES[strategy], room, given, list(tools or ()), system)
    return fitting.run()


def _check(messages: Sequence[Json], strategy: str, **numbers: int | None) -> None:
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes) or not messages:
        raise Invalid("messages must be a list of messages, as the API takes them", option="messages")
    if strategy not in STRATEGIES:
        raise Invalid(f"strategy must be one of {', '.join(STRATEGIES)}, not {strategy!r}", option="strategy")
    for name, value in numbers.items():
        if value is not None and (type(value) is not int or value < 1):
            raise Invalid(f"{name} must be a whole number above 0, not {value!r}", option=name)


@lru_cache(maxsize=64)
def _model(name: str) -> Model:
    model = ModelCatalog().find(*split_name(name))
    return replace(model, tokenizer="o200k_base", factor=1.1, exact=False) if model.tokenizer == "server" else model


def _room(model: Model, max_prompt_tokens: int | None, max_tokens: int | None) -> int:
    if model.window is None:
        if max_prompt_tokens is None:
            raise Invalid(f"the window of {model.name} is unknown: give max_prompt_tokens", option="max_prompt_tokens")
        return max_prompt_tokens
    room = model.window - reserve_of(model.window, 0, max_tokens)
    return room if max_prompt_tokens is None else min(room, max_prompt_tokens)


@dataclass(slots=True)
class Fitting:
    format: ClientFormat
    counter: VocabularyCounter
    strategy: Strategy
    room: int
    given: list[Json]
    tools: list[Json]
    system: Json
    messages: list[Message] = field(init=False)
    """The messages without the leading instructions."""
    first: int = field(init=False)
    """The number of leading instructions."""
    counts: list[Count] = field(init=False)
    budget: Budget = field(init=False)
    block: Compaction | None = None
    covered: int = 0
    """The number of messages that the block covers."""
    because: str = EVERYTHING_FITS
    excerpts: dict[str, str] = field(default_factory=dict)
    """By message or message/call: the shorter text that is sent."""
    _summary_room: int = 0
    _summary: Count = ZERO

    def __post_init__(self) -> None:
        roles = [message.get("role") for message in self.given]
        self.first = next((at for at, role in enumerate(roles) if role not in self.format.instructions), len(roles))
        self.messages = _read(self.format, self.given[self.first :])
        self.counts = [self._counted(self.given[self.first + at], each) for at, each in enumerate(self.messages)]
        instructions = [self.counter.count_piece(Piece("system", data)) for data in self._instructions()]
        tools = [self.counter.count_piece(Piece("tool", b"," * (n > 0) + dumpb(t))) for n, t in enumerate(self.tools)]
        fixed = sum(instructions, self.counter.priming + (ZERO if instructions else self.counter.without_system))
        self.budget = Budget(
            self.room,
            0,
            low_water=int(self.room * LOW_WATER),
            trigger=self.room + 1,
            summary=max(SMALLEST_SUMMARY, min(int(self.room * SUMMARY_SHARE), LONGEST_SUMMARY)),
            recent=RECENT,
            least_recent=LEAST_RECENT,
            shares=ALL_SHARES,
            instructions=fixed.tokens,
            tools=sum(count.tokens for count in tools),
        )

    def _instructions(self) -> list[bytes]:
        beside = self.system if isinstance(self.system, str) or not self.system else dumps(self.system)
        own = [dumpb({"role": "system", "text": beside, "content": beside, "type": "text"})] if beside else []
        return [*own, *(dumpb(message) for message in self.given[: self.first])]

    def _counted(self, given: Json, message: Message) -> Count:
        try:
            return self.counter.count_piece(Piece("message", dumpb(given)))
        except BAD_DATA:  # a form that our own requests do not have
            entry = Entry(message.role, message.blocks, message.id)
            pieces = [Piece("message", data) for data in self.format.format.entry(entry, "")]
            return sum((self.counter.count_piece(piece) for piece in pieces), ZERO)

    # -- which are left out

    def run(self) -> FittedMessages:
        starts = [at for at, message in enumerate(self.messages) if message.role == "assistant" and at]
        for end in starts:  # this is how many requests preceded this one
            if self._size(end) > self.room:
                # this request may fit even if an earlier one did not
                with suppress(DoesNotFit):
                    self._cut(end)
        for _ in range(MOST_PASSES):
            if self._size(len(self.messages)) <= self.room or not self._cut(len(self.messages)):
                break
            self._tell()
        if (needed := self._size(len(self.messages))) > self.room:
            raise DoesNotFit(
                f"the messages take {needed} tokens and have room for {self.room}: what must be sent is too large",
                needed=needed,
                room=self.room,
                largest="messages",
            )
        self._tell()
        return self._fitted()

    def _size(self, end: int) -> int:
        lifted = self.block.lifted if self.block else ()
        sent = (*map(int, lifted), *range(self.covered, end))
        around = self.budget.instructions + self.budget.tools + self._summary.tokens
        return int(around + sum(self.counts[at].tokens for at in sent))

    def _cut(self, end: int) -> bool:
        """False if there is nothing to cut."""
        current = next((at for at in range(end - 1, -1, -1) if self.messages[at].role == "user"), None)
        lifted = tuple(self.messages[int(id)] for id in self.block.lifted) if self.block else ()
        tail = tuple(self.messages[self.covered : end])
        view = View(tail, lifted, self.block, current=None if current is None else str(current))
        budget = replace(self.budget, current=self.counts[current].tokens if current is not None else 0)
        counts = {message.id: self.counts[int(message.id)].tokens for message in (*lifted, *tail)}
        counts |= {SUMMARY: self._summary.tokens} if self.block else {}
        plan = plan_window(self.strategy, view, budget, counts | self._last_results(view))
        if plan.cut is None:
            return False
        self.because = plan.because
        self._apply(plan.cut)
        return True

    def _last_results(self, view: View) -> dict[str, int]:
        """Tokens of each tool result of the last round."""
        found: dict[str, int] = {}
        for message in reversed(view.rounds):
            if message.role != "tool":
                break
            shares = proportional_shares(
                self.counts[int(message.id)].tokens, [len(r.text) + 1 for r in message.results]
            )
            found |= {f"{message.id}/{r.call_id}": share for r, share in zip(message.results, shares, strict=True)}
        return found

    def _apply(self, cut: Cut) -> None:
        covered = int(cut.last) + 1 if cut.last is not None else self.covered
        written = STANDS_IN if cut.summary or (cut.summary is None and self._summary_room) else WrittenSummary()
        archived = covered - len(cut.lifted)
        self.block = next_block(self.block, written, last=cut.last, lifted=cut.lifted, messages_archived=archived)
        self.covered = covered
        if cut.summary is not None:
            self._summary_room = cut.summary
        self._summary = Count(self._summary_room, False)
        for key, most in cut.excerpts.items():
            self._shorten(key, most)

    def _shorten(self, key: str, most: int) -> None:
        """Keeps the beginning and end of a text that is larger than its room."""
        id, _, call = key.partition("/")
        at, message = int(id), self.messages[int(id)]
        whole = self.counts[at].tokens
        text = next((r.text for r in message.results if r.call_id == call), "") if call else message.text
        limit = most
        for _ in range(MOST_TRIES):
            short = excerpt(text, max(1, limit), lambda part: self.counter.text(part).tokens)
            changed = replace(message, blocks=tuple(_with_excerpt(block, call, short) for block in message.blocks))
            self.excerpts[key] = short
            count = self._counted(self._sent(at), changed)
            if count.tokens <= most or (call and whole - count.tokens >= self.counter.text(text).tokens - most):
                break
            limit = int(limit * 0.9) - 1
        self.messages[at], self.counts[at] = changed, count

    # -- what replaces them

    def _tell(self) -> None:
        from recto.summary.extractive_summary import extraction_of  # compiles patterns: a tenth of a second

        if self.block is None or not self.block.summary or self.block.summary != STANDS_IN.text:
            self._summary = self._count_summary() if self.block else ZERO
            return
        read = [message for message in self.messages[: self.covered] if message.id not in self.block.lifted]
        characters = sum(len(message.text) + sum(len(r.text) for r in message.results) for message in read)
        tokens = sum(self.counts[int(message.id)].tokens for message in read)
        density = max(0.2, min(2.0, tokens / max(1, characters)))
        self.block = replace(self.block, summary=".")
        limit = self._summary_room - self._count_summary().tokens
        extraction = extraction_of(tuple(read), lambda text: math.ceil(len(text) * density))
        for _ in range(MOST_TRIES):
            self.block = replace(self.block, summary=extraction.within(max(1, limit)))
            self._summary = self._count_summary()
            if self._summary.tokens <= self._summary_room or limit <= 1:
                break
            limit = int(limit * 0.9)

    def _count_summary(self) -> Count:
        message = self._summary_message()
        if message is None:
            return ZERO
        return self._counted(message, Message("", "user", (Text(message["content"]),)))

    def _summary_message(self) -> Json | None:
        if self.block is None:
            return None
        stays = [self.messages[int(id)] for id in self.block.lifted] or self.messages[self.covered :]
        entry = summary_entry(self.block, stays)
        if entry is None:
            return None
        return {"role": "user", "content": "".join(b.text for b in entry.blocks if isinstance(b, Text))}

    def _fitted(self) -> FittedMessages:
        summary = self._summary_message()
        lifted = [int(id) for id in self.block.lifted] if self.block else []
        kept = [*lifted, *range(self.covered, len(self.messages))]
        gone = sorted(set(range(len(self.messages))) - set(kept))
        cut = sorted({int(key.partition("/")[0]) for key in self.excerpts} & set(kept))
        own = self.given[self.first :]
        counts = [*(self.counts[at] for at in kept), self._summary, self.counter.priming]
        return FittedMessages(
            [*self.given[: self.first], *([summary] if summary else ()), *(self._sent(at) for at in kept)],
            self.tools,
            self._size(len(self.messages)),
            self.room,
            self.because,
            [own[at] for at in gone],
            [own[at] for at in cut],
            summary["content"] if summary else "",
            all(count.exact for count in counts) and not self.tools and self.counter.note is None,
        )

    def _sent(self, at: int) -> Json:
        """The message as given, except for texts that do not fit."""
        message = self.given[self.first + at]
        for key, text in self.excerpts.items():
            id, _, call = key.partition("/")
            if int(id) == at:
                message = with_text(message, text, call)
        return message


def _read(format: ClientFormat, given: Sequence[Mapping[str, Any]]) -> list[Message]:
    """Indexes become ids."""
    messages: list[Message] = []
    for entries in format.read_messages(given):
        messages.append(_message(messages, entries))
    return messages


def _message(earlier: Sequence[Message], entries: Sequence[Entry]) -> Message:
    roles = [entry.role for entry in entries]
    role: Role = "tool" if "tool" in roles else roles[0] if roles else "user"
    blocks = tuple(block for entry in entries for block in entry.blocks)
    message = Message(str(len(earlier)), role, blocks, said=len(earlier) + 1)
    return replace(message, priority=priority_of(message, is_first=awaits_task(earlier)))


def _with_excerpt(block: Block, call: str, text: str) -> Block:
    if call:
        return replace(block, text=text) if isinstance(block, ToolResult) and block.call_id == call else block
    return replace(block, text=text) if isinstance(block, Text) else block
