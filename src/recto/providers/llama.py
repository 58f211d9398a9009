"""LlamaProvider: an OpenAI-compatible llama.cpp server; adds the facts that the server reports, and its own counts.

Shape is the text that a chat template writes around each message, learned from rendered examples. TemplateCounter
counts wire pieces with the server's own template and tokenizer. It is exact if the template's text for a message does
not depend on its neighbours and no token spans two messages; both are tested before the first count.
"""

import hashlib
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from recto.errors import Unreachable
from recto.providers.local_servers import LlamaServer, Props, TemplateMessage
from recto.providers.model import Model
from recto.providers.openai import OpenAIFormat, OpenAIProvider
from recto.providers.remote import ProbeSchedule
from recto.window.count import ZERO, Count, TokenCounter
from recto.window.request import Piece
from recto.wire import dumps

# -- the shape of a template

Render = Callable[[Sequence[TemplateMessage], bool], Awaitable[str | None]]
"""Renders a conversation, with or without the start of the reply; None if the template rejects it."""

ROLES = ("system", "user", "assistant")
# Characters that a template might escape, trim or remove.
PLAIN = 'Tea "for" two & {{ three }} <b>\\n</b>\n\n\té 日本 😀 done'
BLANK = "blank"
THINKING = "thinking"
ODD = {BLANK: " \n tea \n\n", THINKING: "<think>\nhm\n</think>\n\ntea"}


class Irregular(Exception):
    """The template has no shape; the message completes the sentence "its template …"."""


class Shape(Struct, frozen=True):
    opening: str
    """The text before any first message."""
    stand_in: str
    """The text after the opening if there is no system message: the template's own system prompt."""
    before: Mapping[str, str]
    after: Mapping[str, str]
    reply: str
    """The start of the reply."""
    changes: frozenset[tuple[str, str]] = frozenset()
    """(role, kind) of contents that the template changes."""

    def keeps(self, role: str, content: str) -> bool:
        return not any((role, kind) in self.changes for kind in kinds(content))

    def piece(self, role: str, content: str) -> str:
        return f"{self.before[role]}{content}{self.after[role]}"

    def render(self, messages: Sequence[TemplateMessage]) -> str:
        start = self.opening + ("" if messages[0][0] == "system" else self.stand_in)
        return start + "".join(self.piece(role, content) for role, content in messages) + self.reply


def kinds(content: str) -> Iterable[str]:
    if content == "" or content != content.strip():
        yield BLANK
    if "<think>" in content or "</think>" in content:
        yield THINKING


async def learn(render: Render) -> Shape:
    """The template's shape, checked for every position of a message."""
    shape = await _derive(render)
    for messages in _conversations(PLAIN):
        if (rendered := await render(messages, True)) is not None and rendered != shape.render(messages):
            raise Irregular("writes a message differently depending on its position")
    return await _with_changes(render, shape)


async def _derive(render: Render) -> Shape:
    messages = _marked("system", "user", "assistant", "user")
    start, system_user, user_assistant, assistant_user, end = _gaps(await render(messages, True), messages)
    after_user = _gaps(await render(messages, False), messages)[-1]
    first, *_ = _gaps(await render(messages[1:2], True), messages[1:2])
    before_user = await _before_user(render, after_user, (first, system_user, assistant_user))
    after = {
        "system": _without_end(system_user, before_user),
        "user": after_user,
        "assistant": _without_end(assistant_user, before_user),
    }
    opening = _without_end(first, before_user)
    # an opening that a system message replaces is the template's own system prompt
    shared = opening if start.startswith(opening) else ""
    before = {
        "system": start[len(shared) :],
        "user": before_user,
        "assistant": _without_start(user_assistant, after_user),
    }
    return Shape(shared, opening[len(shared) :], before, after, _without_start(end, after_user))


async def _before_user(render: Render, after_user: str, gaps: Sequence[str]) -> str:
    """The text before a user message, taken from two in a row; if the template rejects those, the common end of all
    gaps before a user message."""
    messages = _marked("system", "user", "user")
    if (rendered := await render(messages, True)) is not None:
        return _without_start(_gaps(rendered, messages)[2], after_user)
    shortest = min(gaps, key=len)
    ends = (shortest[at:] for at in range(len(shortest) + 1))
    return next(end for end in ends if all(gap.endswith(end) for gap in gaps))


async def _with_changes(render: Render, shape: Shape) -> Shape:
    changes = set()
    for kind, odd in ODD.items():
        for role in ROLES:
            messages = [(other, odd if other == role else PLAIN) for other in ("system", "user", "assistant", "user")]
            if await render(messages, True) != shape.render(messages):
                changes.add((role, kind))
    return replace(shape, changes=frozenset(changes))


def _marked(*roles: str) -> list[TemplateMessage]:
    return [(role, f"mark{number}mark") for number, role in enumerate(roles)]


def _conversations(content: str) -> Iterable[list[TemplateMessage]]:
    """The orders of messages that are really sent: at most one system message, at the start, and a user message at the
    end."""
    for order in ("su", "suau", "suauau", "u", "uau", "suu", "sau", "suaau", "uu", "au"):
        roles = [role for letter in order for role in ROLES if role[0] == letter]
        yield [(role, f"{content} {number}") for number, role in enumerate(roles)]


def _gaps(rendered: str | None, messages: Sequence[TemplateMessage]) -> list[str]:
    if rendered is None:
        raise Irregular("refuses a plain conversation")
    gaps = []
    for _, content in messages:
        gap, found, rendered = rendered.partition(content)
        if not found:
            raise Irregular("leaves out messages or changes their order")
        gaps.append(gap)
    return [*gaps, rendered]


def _without_start(text: str, start: str) -> str:
    if not text.startswith(start):
        raise Irregular("ends a user's message differently depending on what follows")
    return text[len(start) :]


def _without_end(text: str, end: str) -> str:
    if not text.endswith(end):
        raise Irregular("begins a user's message differently depending on what precedes")
    return text[: len(text) - len(end)]


# -- counting

# Texts that may precede a message's first token, chosen to merge with it if the tokenizer allows.
EDGES = ("x", "X1", " ", "\n", "\n\n", "<", "|", "#", "日", "é")
FORMAT = OpenAIFormat()
GUESSED_FRAME = 8  # four control tokens, the role and its newline, and two to spare


class Frame(Struct, frozen=True):
    """The cost of messages besides their contents; `shape` is None if only an average is known."""

    shape: Shape | None
    around: int
    """Tokens around a message that is not plain text."""
    priming: Count
    without_system: int = 0


class TemplateCounter:
    is_quick = False

    def __init__(
        self, server: LlamaServer, frame: Frame, key: str, note: str | None, stand_in: TokenCounter | None = None
    ) -> None:
        """`stand_in` estimates while the server cannot count; without one that is an error."""
        self.key, self.note, self._own_note = key, note, note
        self._stand_in, self._schedule = stand_in, ProbeSchedule()
        self.priming = frame.priming
        self.without_system = Count(frame.without_system, frame.shape is not None)
        """Extra cost of a request without a system message: the template inserts its own."""
        self._server, self._frame = server, frame

    async def count(self, pieces: Sequence[Piece]) -> list[Count]:
        if self._stand_in and not self._schedule.is_due:
            return await _estimates(self._stand_in, pieces)
        readings = [_read(piece, self._frame) for piece in pieces]
        try:
            counts = iter(await self._server.counts([reading[0] for reading in readings if reading]))
        except Unreachable as why:
            if self._stand_in is None:
                raise
            self._schedule.failed()
            self.note = _failed_note(why)
            return await _estimates(self._stand_in, pieces)
        if self.note != self._own_note:
            self.note, self._schedule = self._own_note, ProbeSchedule()
        return [Count(next(counts) + reading[1], reading[2]) if reading else ZERO for reading in readings]


async def _estimates(counter: TokenCounter, pieces: Sequence[Piece]) -> list[Count]:
    return [Count(count.tokens, exact=count == ZERO) for count in await counter.count(pieces)]


def _failed_note(why: Unreachable) -> str:
    return f"Tokens are estimated for now: {why.message[0].lower()}{why.message[1:]}"


async def learn_counter(server: LlamaServer, props: Props, stand_in: TokenCounter | None = None) -> TemplateCounter:
    """Learns the server's template and tokenizer with about thirty small calls."""
    note = None
    try:
        frame = await _framed(server, await learn(server.render))
    except Irregular as why:
        frame = await _averaged(server)
        note = f"Tokens of {props.model or server.root} are estimated, because its template {why}."
    return TemplateCounter(server, frame, await _key(server, props, frame), note, stand_in)


async def _framed(server: LlamaServer, shape: Shape) -> Frame:
    """The costs of a shape, after checking that the parts cost as much as the whole."""
    if not await _has_separate_messages(server, shape):
        raise Irregular("lets tokens span two messages")
    messages = [(role, PLAIN) for role in ("system", "user", "assistant", "user")]
    whole = shape.render(messages)
    texts = [shape.piece(role, content) for role, content in messages]
    texts += [shape.opening, shape.reply, shape.stand_in, shape.piece("user", "")]
    *pieces, opening, reply, stand_in, around = await server.counts(texts)
    plain, special = len(await server.tokens(whole)), len(await server.tokens(whole, whole=True))
    if sum(pieces) + opening + reply != plain:
        raise Irregular("costs more or fewer tokens as a whole than its messages do")
    return Frame(shape, around, Count(opening + reply + special - plain), stand_in)


async def _has_separate_messages(server: LlamaServer, shape: Shape) -> bool:
    """True if no token spans the end of a message (or of the opening) and the beginning of the next."""
    starts = list(dict.fromkeys((*shape.before.values(), shape.reply)))
    ends = (edge + after for edge in EDGES for after in shape.after.values())
    lefts = list(dict.fromkeys((shape.opening, shape.opening + shape.stand_in, *ends)))
    joined = [left + start for left in lefts for start in starts]
    counts = await server.counts([*joined, *lefts, *starts])
    together, apart = counts[: len(joined)], counts[len(joined) :]
    left, right = apart[: len(lefts)], apart[len(lefts) :]
    return together == [one + other for one in left for other in right]


async def _averaged(server: LlamaServer) -> Frame:
    """The average cost of a message besides its content, measured in the first conversation that the template
    accepts."""
    for roles in (("system", "user", "assistant", "user"), ("user", "assistant", "user"), ("user",)):
        excess = [await _excess(server, roles, content) for content in (PLAIN, "x")]
        if None not in excess:
            # one more, for content that merges with the text around it
            around = max(1, *(math.ceil(tokens / len(roles)) for tokens in excess if tokens is not None)) + 1
            return Frame(None, around, Count(around, False))
    return Frame(None, GUESSED_FRAME, Count(GUESSED_FRAME, False))


async def _excess(server: LlamaServer, roles: Sequence[str], content: str) -> int | None:
    """The tokens of a conversation beyond those of its contents; None if the template rejects it."""
    rendered = await server.render([(role, content) for role in roles], True)
    if rendered is None:
        return None
    own = (await server.counts([content]))[0] * len(roles)
    return len(await server.tokens(rendered, whole=True)) - own


async def _key(server: LlamaServer, props: Props, frame: Frame) -> str:
    """A key that is the same for the same template, weights and vocabulary in any process."""
    shape = asdict(frame.shape) | {"changes": sorted(frame.shape.changes)} if frame.shape else None
    known = [props.template, props.model, await server.tokens(PLAIN), shape, frame.around]
    return f"llama/{hashlib.sha256(dumps(known).encode()).hexdigest()[:16]}"


def _read(piece: Piece, frame: Frame) -> tuple[str, int, bool] | None:
    """The text of a piece to count, its other tokens, and whether that is exact."""
    if piece.kind in ("head", "join", "tail"):
        return None
    contents, shape = FORMAT.contents(piece, ""), frame.shape
    if shape and contents.is_plain and shape.keeps(contents.role, contents.texts[0]):
        return shape.piece(contents.role, contents.texts[0]), 0, True
    around = 0 if piece.kind == "tool" else frame.around
    return "\n".join(contents.texts), around + contents.flat, False


class LlamaProvider(OpenAIProvider):
    def __init__(self, *arguments: Any, clock: Callable[[], float] = time.monotonic, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._server = LlamaServer(self.base_url.removesuffix("/v1"), self._key)
        self._props: Props | None = None
        self._has_props = False
        self._schedule, self._learning = ProbeSchedule(clock), ProbeSchedule(clock)
        self._counter: TemplateCounter | None = None
        self._failed_note: str | None = None

    async def model(self, name: str) -> Model:
        model = self.known(name)
        if (props := await self._server_props()) is None:
            return await super().model(name) if self._has_props else model
        counter = await self.counter(model)
        is_learned = isinstance(counter, TemplateCounter)
        try:
            control = await self._server.control(props)
        except Unreachable:  # then control texts cannot be recognised, so all that may be one count
            control = props.markers
        # a smaller window set by the user overrides the server's
        if props.window and (model.window_from != "models.toml" or (model.window or props.window) >= props.window):
            model = replace(model, window=props.window, window_from="the server")
        return replace(
            model,
            tokenizer="server" if is_learned else model.tokenizer,
            factor=1.0 if is_learned else model.factor,
            exact=is_learned and counter.note is None,
            tools=model.tools and props.tools,
            images=model.images or props.images,
            one_slot=props.one_slot,
            control=tuple(dict.fromkeys((*model.control, *control))),
        )

    async def counter(self, model: Model) -> TokenCounter:
        """Estimates with a note while the server's tokenizer fails; it is tried again."""
        if (props := await self._server_props()) is None:
            return await super().counter(model)
        stand_in = await super().counter(replace(model, exact=False))
        if self._counter is None and self._learning.is_due:
            try:
                self._counter = await learn_counter(self._server, props, stand_in)
            except Unreachable as why:
                self._learning.failed()
                self._failed_note = _failed_note(why)
        if self._counter is None:
            stand_in.note = self._failed_note
        return self._counter or stand_in

    async def offered(self) -> list[Model]:
        models = await super().offered()
        return [await self.model(model.name) for model in models] if await self._server_props() else models

    async def close(self) -> None:
        await super().close()
        await self._server.close()

    async def _server_props(self) -> Props | None:
        """The server's properties; one that does not run yet, or still loads its model, is tried again later."""
        if not self._has_props and self._schedule.is_due:
            try:
                self._props = await self._server.props()
                self._has_props = True
            except Unreachable:
                self._schedule.failed()
        return self._props
