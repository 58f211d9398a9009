"""TemplateMeter: counts wire pieces as a llama.cpp server will, from its own template and its own tokenizer.

Exact where the template's text for a message does not depend on its neighbours and no token spans two messages: both
are tried out before the first count. LlamaProvider uses it, and the server's own word, where its server is llama.cpp.
"""

import hashlib
import math
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace

from recto.errors import Unreachable
from recto.providers.llama_server import LlamaServer, Props
from recto.providers.model import Model
from recto.providers.openai import OpenAIProvider
from recto.providers.provider import Part
from recto.providers.template import PLAIN, ROLES, Irregular, Shape, learn
from recto.providers.vocabulary import OPENAI_IMAGE
from recto.window.count import ZERO, Count, Meter
from recto.window.request import Piece, Purpose
from recto.wire import Json, dumps, loads

# What may stand before a message's first token, chosen to grow together with whatever can.
EDGES = ("x", "X1", " ", "\n", "\n\n", "<", "|", "#", "日", "é")
GUESSED_FRAME = 8  # four control tokens, the role and its newline, and two to spare


@dataclass(frozen=True, slots=True)
class Frame:
    """What messages cost besides their contents; `shape` is None where only an average is known."""

    shape: Shape | None
    around: int
    """Tokens around a message that is not plain text."""
    priming: Count
    without_system: int = 0


@dataclass(frozen=True, slots=True)
class Reading:
    """What of a piece is counted: a text, and tokens besides."""

    text: str
    besides: int = 0
    exact: bool = True


class TemplateMeter:
    def __init__(self, server: LlamaServer, frame: Frame, key: str, note: str | None) -> None:
        self.key, self.note = key, note
        self.priming = frame.priming
        self.without_system = Count(frame.without_system, frame.shape is not None)
        """What a request costs besides when it has no system message: the one that the template puts in its place."""
        self._server, self._frame = server, frame

    async def measure(self, pieces: Sequence[Piece]) -> list[Count]:
        readings = [_read(piece, self._frame) for piece in pieces]
        counts = iter(await self._server.counts([reading.text for reading in readings if reading]))
        return [Count(next(counts) + each.besides, each.exact) if each else ZERO for each in readings]


async def learn_meter(server: LlamaServer, props: Props) -> TemplateMeter:
    """Tries the server's template and tokenizer out, with some thirty small calls."""
    note = None
    try:
        frame = await _framed(server, await learn(server.render))
    except Irregular as why:
        frame = await _averaged(server)
        note = f"Tokens of {props.model or server.root} are estimated, because its template {why}."
    return TemplateMeter(server, frame, await _key(server, props, frame), note)


async def _framed(server: LlamaServer, shape: Shape) -> Frame:
    """The costs of a shape, when it is true that the parts cost what the whole costs."""
    if not await _stands_apart(server, shape):
        raise Irregular("lets tokens span two messages")
    said = [(role, PLAIN) for role in ("system", "user", "assistant", "user")]
    whole = shape.render(said)
    ends = shape.opening, shape.reply, shape.stand_in, shape.piece("user", "")
    *pieces, opening, reply, stand_in, around = await server.counts([*(shape.piece(*each) for each in said), *ends])
    plain, special = len(await server.tokens(whole)), len(await server.tokens(whole, whole=True))
    if sum(pieces) + opening + reply != plain:
        raise Irregular("costs more or fewer tokens as a whole than its messages do")
    return Frame(shape, around, Count(opening + reply + special - plain), stand_in)


async def _stands_apart(server: LlamaServer, shape: Shape) -> bool:
    """No token may span the end of a message, or what comes before the first, and the beginning of what follows it."""
    starts = list(dict.fromkeys((*shape.before.values(), shape.reply)))
    ends = (edge + after for edge in EDGES for after in shape.after.values())
    lefts = list(dict.fromkeys((shape.opening, shape.opening + shape.stand_in, *ends)))
    joined = [left + start for left in lefts for start in starts]
    counts = await server.counts([*joined, *lefts, *starts])
    together, apart = counts[: len(joined)], counts[len(joined) :]
    left, right = apart[: len(lefts)], apart[len(lefts) :]
    return together == [one + other for one in left for other in right]


async def _averaged(server: LlamaServer) -> Frame:
    """What a message costs on average besides its content, seen in the first conversation that is not refused."""
    for roles in (("system", "user", "assistant", "user"), ("user", "assistant", "user"), ("user",)):
        excess = [await _excess(server, roles, content) for content in (PLAIN, "x")]
        if None not in excess:
            # one to spare, for a content that grows together with what is around it
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
    """The same for the same template, weights and vocabulary, in any process."""
    shape = asdict(frame.shape) | {"changes": sorted(frame.shape.changes)} if frame.shape else None
    known = [props.template, props.model, await server.tokens(PLAIN), shape, frame.around]
    return f"llama/{hashlib.sha256(dumps(known).encode()).hexdigest()[:16]}"


def _read(piece: Piece, frame: Frame) -> Reading | None:
    if piece.kind in ("head", "join", "tail"):
        return None
    if piece.kind == "tool":
        return Reading(piece.data.removeprefix(b",").decode(), exact=False)
    message = loads(piece.data)
    role, content, shape = message.get("role"), message.get("content"), frame.shape
    plain = len(message) == 2 and role in ROLES and isinstance(content, str)
    if shape and plain and shape.keeps(role, content):
        return Reading(shape.piece(role, content))
    texts, images = _contents(content)
    rest = [dumps(value) for name, value in message.items() if name not in ("role", "content")]
    return Reading("\n".join((*texts, *rest)), frame.around + images * OPENAI_IMAGE, exact=False)


def _contents(content: Json) -> tuple[list[str], int]:
    """The texts in a content, and the number of images."""
    if isinstance(content, str):
        return [content], 0
    items = content or ()
    images = sum(item.get("type") == "image_url" for item in items)
    return [item["text"] for item in items if item.get("type") == "text"], images


class LlamaProvider:
    """`talk` as it is; what its server knows about itself is added to the model, and its own counts are used."""

    def __init__(self, talk: OpenAIProvider, server: LlamaServer) -> None:
        self.name, self.format = talk.name, talk.format
        self._talk, self._server = talk, server
        self._props: Props | None = None
        self._asked = False
        self._meter: Meter | None = None

    async def model(self, name: str) -> Model:
        model = await self._talk.model(name)
        if (props := await self._known()) is None:
            return model
        meter = await self.meter(model)
        found = await self._server.control(props)
        return replace(
            _windowed(model, props.window),
            tokenizer="server",
            factor=1.0,
            exact=meter.note is None,
            tools=model.tools and props.tools,
            control=tuple(dict.fromkeys((*model.control, *found))),
        )

    async def meter(self, model: Model) -> Meter:
        if (props := await self._known()) is None:
            return await self._talk.meter(model)
        if self._meter is None:
            self._meter = await learn_meter(self._server, props)
        return self._meter

    async def stream(self, body: bytes, purpose: Purpose) -> AsyncGenerator[Part]:
        async with aclosing(self._talk.stream(body, purpose)) as parts:
            async for part in parts:
                yield part

    async def close(self) -> None:
        await self._talk.close()
        await self._server.close()

    async def _known(self) -> Props | None:
        """Asked once; a server that does not run yet is asked again the next time."""
        if not self._asked:
            try:
                self._props = await self._server.props()
                self._asked = True
            except Unreachable:
                return None
        return self._props


def _windowed(model: Model, window: int | None) -> Model:
    """The server's window, unless the user wants a smaller one."""
    if window is None or (model.window_from == "models.toml" and (model.window or window) < window):
        return model
    return replace(model, window=window, window_from="the server")
