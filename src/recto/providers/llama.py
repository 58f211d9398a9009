"""LlamaProvider: an OpenAI-compatible llama.cpp server; adds the facts that the server reports, and its own counts.

TemplateCounter counts wire pieces with the server's own template and tokenizer. It is exact where the template's text
for a message does not depend on its neighbours and no token spans two messages; both are tested before the first count.
"""

import hashlib
import math
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from msgspec import Struct
from msgspec.structs import asdict, replace

from recto.errors import Unreachable
from recto.providers.local_servers import LlamaServer, Props
from recto.providers.model import Model, ReplyPart
from recto.providers.model_list import ProbeSchedule
from recto.providers.openai import OpenAIFormat, OpenAIProvider
from recto.providers.template import PLAIN, Irregular, Shape, learn
from recto.window.count import ZERO, Count, TokenCounter
from recto.window.request import Piece, Purpose
from recto.wire import dumps

# Texts that may precede a message's first token, chosen to merge with it where the tokenizer allows.
EDGES = ("x", "X1", " ", "\n", "\n\n", "<", "|", "#", "日", "é")
FORMAT = OpenAIFormat()
GUESSED_FRAME = 8  # four control tokens, the role and its newline, and two to spare


class Frame(Struct, frozen=True):
    """The cost of messages besides their contents; `shape` is None where only an average is known."""

    shape: Shape | None
    around: int
    """Tokens around a message that is not plain text."""
    priming: Count
    without_system: int = 0


class PieceText(Struct, frozen=True):
    """The text of a piece to count, and its tokens besides."""

    text: str
    besides: int = 0
    exact: bool = True


class TemplateCounter:
    is_quick = False

    def __init__(
        self, server: LlamaServer, frame: Frame, key: str, note: str | None, stand_in: TokenCounter | None = None
    ) -> None:
        """`stand_in` estimates while the server cannot count; without one that is an error."""
        self.key, self.note = key, note
        self._own_note, self._stand_in = note, stand_in
        self._schedule = ProbeSchedule()
        self.priming = frame.priming
        self.without_system = Count(frame.without_system, frame.shape is not None)
        """Extra cost of a request without a system message: the template inserts one of its own."""
        self._server, self._frame = server, frame

    async def count(self, pieces: Sequence[Piece]) -> list[Count]:
        if self._stand_in and not self._schedule.is_due:
            return await _estimates(self._stand_in, pieces)
        readings = [_read(piece, self._frame) for piece in pieces]
        try:
            counts = iter(await self._server.counts([reading.text for reading in readings if reading]))
        except Unreachable as why:
            if self._stand_in is None:
                raise
            self._schedule.failed()
            self.note = _failed_note(why)
            return await _estimates(self._stand_in, pieces)
        if self.note != self._own_note:
            self.note, self._schedule = self._own_note, ProbeSchedule()
        return [Count(next(counts) + reading.besides, reading.exact) if reading else ZERO for reading in readings]


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
    """The costs of a shape, once it is checked that the parts cost as much as the whole."""
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
    """Whether no token spans the end of a message (or of the opening) and the beginning of the next."""
    starts = list(dict.fromkeys((*shape.before.values(), shape.reply)))
    ends = (edge + after for edge in EDGES for after in shape.after.values())
    lefts = list(dict.fromkeys((shape.opening, shape.opening + shape.stand_in, *ends)))
    joined = [left + start for left in lefts for start in starts]
    counts = await server.counts([*joined, *lefts, *starts])
    together, apart = counts[: len(joined)], counts[len(joined) :]
    left, right = apart[: len(lefts)], apart[len(lefts) :]
    return together == [one + other for one in left for other in right]


async def _averaged(server: LlamaServer) -> Frame:
    """The average cost of a message besides its content, measured in the first conversation that is not refused."""
    for roles in (("system", "user", "assistant", "user"), ("user", "assistant", "user"), ("user",)):
        excess = [await _excess(server, roles, content) for content in (PLAIN, "x")]
        if None not in excess:
            # one more, for content that merges with the text around it
            around = max(1, *(math.ceil(tokens / len(roles)) for tokens in excess if tokens is not None)) + 1
            return Frame(None, around, Count(around, False))
    return Frame(None, GUESSED_FRAME, Count(GUESSED_FRAME, False))


async def _excess(server: LlamaServer, roles: Sequence[str], content: str) -> int | None:
    """Tokens of a conversation above those of its contents; None where the template refuses it."""
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


def _read(piece: Piece, frame: Frame) -> PieceText | None:
    if piece.kind in ("head", "join", "tail"):
        return None
    contents, shape = FORMAT.contents(piece, ""), frame.shape
    if shape and contents.is_plain and shape.keeps(contents.role, contents.texts[0]):
        return PieceText(shape.piece(contents.role, contents.texts[0]))
    around = 0 if piece.kind == "tool" else frame.around
    return PieceText("\n".join(contents.texts), around + contents.flat, exact=False)


class LlamaProvider:
    """Wraps `talk`: adds the facts that the server reports to the model, and uses the server's own counts."""

    def __init__(self, talk: OpenAIProvider, server: LlamaServer, clock: Callable[[], float] = time.monotonic) -> None:
        self.name, self.format = talk.name, talk.format
        self.remote = self._talk = talk
        self._server = server
        self._props: Props | None = None
        self._has_props = False
        self._schedule, self._learning = ProbeSchedule(clock), ProbeSchedule(clock)
        self._counter: TemplateCounter | None = None
        self._failed_note: str | None = None

    async def model(self, name: str) -> Model:
        model = self._talk.known(name)
        if (props := await self._server_props()) is None:
            return await self._talk.model(name) if self._has_props else model
        counter = await self.counter(model)
        is_learned = isinstance(counter, TemplateCounter)
        return replace(
            _with_window(model, props.window),
            tokenizer="server" if is_learned else model.tokenizer,
            factor=1.0 if is_learned else model.factor,
            exact=is_learned and counter.note is None,
            tools=model.tools and props.tools,
            images=model.images or props.images,
            one_slot=props.one_slot,
            control=tuple(dict.fromkeys((*model.control, *await self._control(props)))),
        )

    async def _control(self, props: Props) -> tuple[str, ...]:
        """Control texts of the template; while the server cannot tell them from other texts, all that may be one."""
        try:
            return await self._server.control(props)
        except Unreachable:
            return props.markers

    async def counter(self, model: Model) -> TokenCounter:
        """Estimates with a note while the server's tokenizer fails; it is asked again."""
        if (props := await self._server_props()) is None:
            return await self._talk.counter(model)
        stand_in = await self._talk.counter(replace(model, exact=False))
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
        """The models that the server lists. Raises Unreachable."""
        models = await self._talk.offered()
        return [await self.model(model.name) for model in models] if await self._server_props() else models

    async def stream(self, body: bytes, purpose: Purpose) -> AsyncGenerator[ReplyPart]:
        async with aclosing(self._talk.stream(body, purpose)) as parts:
            async for part in parts:
                yield part

    async def close(self) -> None:
        await self._talk.close()
        await self._server.close()

    async def _server_props(self) -> Props | None:
        """The server's properties; one that does not run yet, or still loads its model, is asked again later."""
        if not self._has_props and self._schedule.is_due:
            try:
                self._props = await self._server.props()
                self._has_props = True
            except Unreachable:
                self._schedule.failed()
        return self._props


def _with_window(model: Model, window: int | None) -> Model:
    """The model with the server's window, unless the user set a smaller one."""
    if window is None or (model.window_from == "models.toml" and (model.window or window) < window):
        return model
    return replace(model, window=window, window_from="the server")
