"""LlamaProvider: an OpenAI-compatible llama.cpp server; adds the facts that the server reports, and its own counts.

Shape is the text that a chat template writes around each message, learned from rendered examples. TemplateCounter
counts wire pieces with the server's own template and tokenizer. It is exact if the template's text for a message does
not depend on its neighbours and no token spans two messages; both are tested before the first count.
"""

import hashlib
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from recto.errors import Unreachable
from recto.providers.model import Model, positive
from recto.providers.openai import OpenAIFormat, OpenAIProvider
from recto.providers.remote import PROBE_S, ProbeSchedule
from recto.window.count import ZERO, Count, TokenCounter
from recto.window.request import Piece
from recto.wire import Json, dumps

# -- the server

TemplateMessage = tuple[str, str]
"""A role and its text."""
Ask = Callable[[str, Json, float], Awaitable[tuple[int, Json]]]
"""Asks a path of the server, with a body or None, and gives the status and the answer."""
ANSWER_S = 60.0
# No token has this number, and the server returns numbers among the texts unchanged.
SEPARATOR = -1
MARKER = re.compile(r"<[^<>\s'\"{}]{1,40}>|\[/?[A-Z_]{2,30}\]")


class Props(Struct, frozen=True):
    window: int | None
    template: str
    model: str
    """The file name of the weights."""
    tools: bool
    images: bool
    one_slot: bool
    markers: tuple[str, ...]
    """Texts of the template that look like control tokens, and the tokens at the start and end of a text."""


class LlamaServer:
    def __init__(self, root: str, ask: Ask) -> None:
        """`root` is the address without the /v1 of the OpenAI format."""
        self.root, self._ask = root, ask

    async def props(self) -> Props | None:
        """None for a server that is not llama.cpp. Raises Unreachable if there is no answer, or while it loads."""
        status, answer = await self._ask("/props", None, PROBE_S)
        if status >= 500 or status == 429:
            raise Unreachable(f"The server at {self.root} is not ready (status {status}).")
        return _read_props(answer) if status == 200 and isinstance(answer, dict) else None

    async def render(self, messages: Sequence[TemplateMessage], reply: bool) -> str | None:
        """The conversation rendered by the chat template; None if the template rejects it."""
        items = [{"role": role, "content": content} for role, content in messages]
        body = {"messages": items, "add_generation_prompt": reply}
        status, answer = await self._ask("/apply-template", body, ANSWER_S)
        prompt = answer.get("prompt") if status == 200 and isinstance(answer, dict) else None
        return prompt if isinstance(prompt, str) else None

    async def tokens(self, content: str | list[str | int], *, whole: bool = False) -> list[int]:
        """The tokens of a text, control texts included; `whole` adds tokens of every prompt, such as the first one."""
        body = {"content": content, "add_special": whole, "parse_special": True}
        status, answer = await self._ask("/tokenize", body, ANSWER_S)
        tokens = answer.get("tokens") if status == 200 and isinstance(answer, dict) else None
        if not isinstance(tokens, list):
            raise Unreachable(f"The llama.cpp server at {self.root} cannot count tokens (status {status}).")
        return tokens

    async def counts(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text, all in one call."""
        if not texts:
            return []
        runs = [0]
        for token in await self.tokens([part for text in texts for part in (text, SEPARATOR)]):
            runs[-1] += token != SEPARATOR
            if token == SEPARATOR:
                runs.append(0)
        if len(runs) != len(texts) + 1:
            raise Unreachable(f"The llama.cpp server at {self.root} cannot count several texts at once.")
        return runs[:-1]

    async def control(self, props: Props) -> tuple[str, ...]:
        """The markers that the tokenizer reads as a single token."""
        counts = await self.counts(props.markers)
        return tuple(marker for marker, tokens in zip(props.markers, counts, strict=True) if tokens == 1)


def _read_props(answer: Mapping[str, Any]) -> Props | None:
    settings = answer.get("default_generation_settings")
    if not isinstance(settings, dict):
        return None
    texts = {name: value for name, value in answer.items() if isinstance(value, str)}
    template = texts.get("chat_template", "")
    caps, takes = answer.get("chat_template_caps"), answer.get("modalities")
    ends = [texts[name] for name in ("bos_token", "eos_token") if texts.get(name)]
    return Props(
        window=positive(settings.get("n_ctx")),
        template=template,
        model=texts.get("model_path", "").replace("\\", "/").rsplit("/", 1)[-1],
        tools=not isinstance(caps, dict) or caps.get("supports_tools") is not False,
        images=isinstance(takes, dict) and takes.get("vision") is True,
        one_slot=answer.get("total_slots") == 1,
        markers=tuple(dict.fromkeys((*ends, *MARKER.findall(template)))),
    )


# -- the shape of a template

Render = Callable[[Sequence[TemplateMessage], bool], Awaitable[str | None]]
"""Renders a conversation, with or without the start of the reply; None if the template rejects it."""

ROLES = ("system", "user", "assistant")
# Characters that a template might escape, trim or remove.
PLAIN = 'Tea "for" two & {{ three }} <b>\\n</b>\n\n\té 日本 😀 done'
BLANK, THINKING = "blank", "thinking"
ODD = {BLANK: " \n tea \n\n", THINKING: "<think>\nhm\n</think>\n\ntea"}


class Irregular(Exception):
    """The template has no shape."""


class Shape(Struct, frozen=True):
    opening: str
    """The text before any first message."""
    stand_in: str
    """The text after the opening if there is no system message: the template's own system prompt."""
    before: Mapping[str, str]
    after: Mapping[str, str]
    reply: str
    """The start of the reply."""
    changes: tuple[str, ...] = ()
    """The kinds of contents that the template changes."""

    def keeps(self, content: str) -> bool:
        return not any(kind in self.changes for kind in kinds(content))

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
    """The template's shape, checked for every position of a message. Raises Irregular."""
    messages = _marked("system", "user", "assistant", "user")
    start, system_user, user_assistant, assistant_user, end = _gaps(await render(messages, True), messages)
    after_user = _gaps(await render(messages, False), messages)[-1]
    first, *_ = _gaps(await render(messages[1:2], True), messages[1:2])
    twice = _marked("system", "user", "user")
    if (rendered := await render(twice, True)) is not None:
        before_user = _without(_gaps(rendered, twice)[2], start=after_user)
    else:  # the common end of all gaps before a user message
        gaps = (first, system_user, assistant_user)
        ends = (first[at:] for at in range(len(first) + 1))
        before_user = next(each for each in ends if all(gap.endswith(each) for gap in gaps))
    after = {
        role: _without(gap, end=before_user)
        for role, gap in zip(ROLES[::2], (system_user, assistant_user), strict=True)
    }
    opening = _without(first, end=before_user)
    # an opening that a system message replaces is the template's own system prompt
    shared = opening if start.startswith(opening) else ""
    before = {
        "system": start[len(shared) :],
        "user": before_user,
        "assistant": _without(user_assistant, start=after_user),
    }
    reply = _without(end, start=after_user)
    shape = Shape(shared, opening[len(shared) :], before, after | {"user": after_user}, reply)
    for messages in _conversations(PLAIN):
        if (rendered := await render(messages, True)) is not None and rendered != shape.render(messages):
            raise Irregular
    changes = list[str]()
    for kind, text in ODD.items():
        odd = [(role, text) for role in (*ROLES, "user")]
        changes += [kind] if await render(odd, True) != shape.render(odd) else []
    return replace(shape, changes=tuple(changes))


def _marked(*roles: str) -> list[TemplateMessage]:
    return [(role, f"mark{number}mark") for number, role in enumerate(roles)]


def _conversations(content: str) -> Iterable[list[TemplateMessage]]:
    """The orders of messages that are really sent: at most one system message, at the start, and a user message at the
    end."""
    for order in ("su", "suau", "suauau", "u", "uau", "suu", "sau", "suaau", "uu", "au"):
        roles = [role for letter in order for role in ROLES if role[0] == letter]
        yield [(role, f"{content} {number}") for number, role in enumerate(roles)]


def _gaps(rendered: str | None, messages: Sequence[TemplateMessage]) -> list[str]:
    gaps, rest = list[str](), rendered or ""
    for _, content in messages:
        gap, found, rest = rest.partition(content)
        if not found:
            raise Irregular
        gaps.append(gap)
    return [*gaps, rest]


def _without(text: str, *, start: str = "", end: str = "") -> str:
    if not (text.startswith(start) and text.endswith(end)):
        raise Irregular
    return text[len(start) : len(text) - len(end)]


# -- counting

# Texts that may precede a message's first token, chosen to merge with it if the tokenizer allows.
EDGES = ("x", "X1", " ", "\n", "\n\n", "<", "|", "#", "日", "é")
FORMAT = OpenAIFormat()
GUESSED_FRAME = 8  # four control tokens, the role and its newline, and two to spare


class Frame(Struct, frozen=True):
    """The cost of messages besides their contents; `shape` is None if that is a guess."""

    shape: Shape | None = None
    around: int = GUESSED_FRAME
    """Tokens around a message that is not plain text."""
    priming: Count = Count(GUESSED_FRAME, False)
    without_system: int = 0


class TemplateCounter:
    is_quick = False

    def __init__(self, server: LlamaServer, frame: Frame, key: str, note: str | None, stand_in: TokenCounter) -> None:
        """`stand_in` estimates while the server cannot count."""
        self.key, self.note, self._own_note = key, note, note
        self._stand_in, self._schedule = stand_in, ProbeSchedule()
        self.priming = frame.priming
        self.without_system = Count(frame.without_system, frame.shape is not None)
        """Extra cost of a request without a system message: the template inserts its own."""
        self._server, self._frame = server, frame

    async def count(self, pieces: Sequence[Piece]) -> list[Count]:
        readings = [_read(piece, self._frame) for piece in pieces]
        try:
            if not self._schedule.is_due:
                return await _estimates(self._stand_in, pieces)
            counts = iter(await self._server.counts([reading[0] for reading in readings if reading]))
        except Unreachable as why:
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


async def learn_counter(server: LlamaServer, props: Props, stand_in: TokenCounter) -> TemplateCounter:
    """Learns the server's template and tokenizer with about twenty small calls."""
    note = None
    try:
        frame = await _framed(server, await learn(server.render))
    except Irregular:
        frame = Frame()
        note = f"Tokens of {props.model or server.root} are estimated, because its chat template is irregular."
    return TemplateCounter(server, frame, await _key(server, props, frame), note, stand_in)


async def _framed(server: LlamaServer, shape: Shape) -> Frame:
    """The costs of a shape, after checking that no token spans the end of a message (or of the opening) and the
    beginning of the next."""
    starts = list(dict.fromkeys((*shape.before.values(), shape.reply)))
    ends = (edge + after for edge in EDGES for after in shape.after.values())
    lefts = list(dict.fromkeys((shape.opening, shape.opening + shape.stand_in, *ends)))
    together = await server.counts([left + start for left, start in product(lefts, starts)])
    apart = product(await server.counts(lefts), await server.counts(starts))
    whole = shape.render([(role, PLAIN) for role in (*ROLES, "user")])
    texts = [shape.piece(role, PLAIN) for role in (*ROLES, "user")]
    texts += [shape.opening, shape.reply, shape.stand_in, shape.piece("user", "")]
    *pieces, opening, reply, stand_in, around = await server.counts(texts)
    plain, special = len(await server.tokens(whole)), len(await server.tokens(whole, whole=True))
    if together != list(map(sum, apart)) or sum(pieces) + opening + reply != plain:
        raise Irregular
    return Frame(shape, around, Count(opening + reply + special - plain), stand_in)


async def _key(server: LlamaServer, props: Props, frame: Frame) -> str:
    """A key that is the same for the same template, weights and vocabulary in any process."""
    shape = asdict(frame.shape) if frame.shape else None
    known = [props.template, props.model, await server.tokens(PLAIN), shape, frame.around]
    return f"llama/{hashlib.sha256(dumps(known).encode()).hexdigest()[:16]}"


def _read(piece: Piece, frame: Frame) -> tuple[str, int, bool] | None:
    """The text of a piece to count, its other tokens, and whether that is exact."""
    if piece.kind in ("head", "join", "tail"):
        return None
    contents, shape = FORMAT.contents(piece, ""), frame.shape
    if shape and contents.is_plain and shape.keeps(contents.texts[0]):
        return shape.piece(contents.role, contents.texts[0]), 0, True
    around = 0 if piece.kind == "tool" else frame.around
    return "\n".join(contents.texts), around + contents.flat, False


class LlamaProvider(OpenAIProvider):
    def __init__(self, *arguments: Any, clock: Callable[[], float] = time.monotonic, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.server = LlamaServer(self.root, self.ask_root)
        self._props: Props | None = None
        self._has_props = False
        self._schedule = ProbeSchedule(clock)
        self._counter: TemplateCounter | None = None

    async def model(self, name: str) -> Model:
        model = self.known(name)
        if (props := await self._server_props()) is None:
            return await super().model(name) if self._has_props else model
        counter = await self.counter(model)
        is_learned = isinstance(counter, TemplateCounter)
        try:
            control = await self.server.control(props)
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
        if self._counter is None:
            stand_in = await super().counter(replace(model, exact=False))
            try:
                self._counter = await learn_counter(self.server, props, stand_in)
            except Unreachable as why:
                stand_in.note = _failed_note(why)
                return stand_in
        return self._counter

    async def offered(self) -> list[Model]:
        models = await super().offered()
        return [await self.model(model.name) for model in models] if await self._server_props() else models

    async def _server_props(self) -> Props | None:
        """The server's properties; one that does not run yet, or still loads its model, is tried again later."""
        if not self._has_props and self._schedule.is_due:
            try:
                self._props = await self.server.props()
                self._has_props = True
            except Unreachable:
                self._schedule.failed()
        return self._props
