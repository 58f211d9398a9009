"""Values that a wire format can express, for the laws about requests and replies."""

import base64
from dataclasses import dataclass

from hypothesis import strategies as st

from recto.chat.blocks import Block, File, Image, Made, Text, Thinking, ToolCall, ToolResult
from recto.chat.message import Usage, blocks_from
from recto.providers.attachments import IMAGE_TYPES, PDF
from recto.providers.client import CLIENT, ClientRequest
from recto.providers.model import CallPart, Done, ReplyPart, TextPart, ThinkingPart
from recto.sources.source import Tool
from recto.turn.incoming_message import delta_of
from recto.turn.preamble import list_pieces
from recto.window.request import Entry, Format, NamedTool, Parameters
from recto.wire import dumps

MADE = Made("acme", "m")
LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
TEXTS = st.text(LETTERS, min_size=1, max_size=20).filter(lambda text: bool(text.strip()))
IDS = st.from_regex(r"[a-zA-Z0-9_-]{1,12}", fullmatch=True)
VALUES = st.none() | st.booleans() | st.integers(-9, 9) | TEXTS
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=3)
SCHEMAS = st.dictionaries(TEXTS, st.just({"type": "string"}), max_size=2).map(
    lambda properties: {"type": "object", "properties": properties}
)
DATA = st.binary(max_size=12).map(lambda data: base64.b64encode(data).decode()).filter(bool)
URLS = IDS.map(lambda name: f"https://example.org/{name}")
IMAGES = st.builds(Image, st.sampled_from(IMAGE_TYPES), DATA) | st.builds(lambda url: Image("", "", url=url), URLS)
PDFS = st.builds(lambda name, data: File(name, "", PDF, base64=data), TEXTS, DATA)
LINKED_PDFS = st.builds(lambda name, url: File(name, "", PDF, url=url), TEXTS, URLS)
TOOLS = st.lists(
    st.builds(lambda name, told, schema: Tool(name, told, schema, server=CLIENT), IDS, TEXTS | st.just(""), SCHEMAS),
    max_size=3,
    unique_by=lambda tool: tool.name,
).map(tuple)
THOUGHTS = st.builds(lambda text, sign: Thinking(text, sign, made=MADE), TEXTS, IDS) | st.builds(
    lambda data: Thinking("", redacted=data, made=MADE), IDS
)
USAGES = st.builds(
    lambda plain, output, read, write: Usage(plain + read + write, output, read, write),
    *(st.integers(0, 10_000) for _ in range(4)),
)


@dataclass(frozen=True, slots=True)
class Expressible:
    """What of a conversation a format has a place for."""

    user: st.SearchStrategy[Block]
    thinks: bool
    results: st.SearchStrategy[tuple[str, bool, tuple[Image | File, ...]]]
    """Text, whether it is an error, and what came with it."""


@st.composite
def conversations(draw: st.DrawFn, can: Expressible) -> tuple[Entry, ...]:
    """Turns of a user and an assistant, whose calls are all answered."""
    entries: list[Entry] = []
    ids = iter(draw(st.lists(IDS, min_size=12, max_size=12, unique=True)))
    for _ in range(draw(st.integers(1, 3))):
        entries.append(Entry("user", parted(draw(st.lists(can.user, min_size=1, max_size=4)))))
        thought: list[Block] = draw(st.lists(THOUGHTS, max_size=2)) if can.thinks else []
        said: list[Block] = draw(st.lists(st.builds(Text, TEXTS), max_size=1))
        calls = [ToolCall(next(ids), draw(IDS), dumps(draw(OBJECTS))) for _ in range(draw(st.integers(0, 2)))]
        if thought or said or calls:
            entries.append(Entry("assistant", (*thought, *said, *calls)))
        if calls:
            entries.append(Entry("tool", tuple(_result(call, *draw(can.results)) for call in calls)))
    return tuple(entries)


def _result(call: ToolCall, text: str, is_error: bool, attached: tuple[Image | File, ...]) -> ToolResult:
    return ToolResult(call.id, call.name, text, is_error, attachments=attached)


def parted(blocks: list[Block]) -> tuple[Block, ...]:
    """Without a text behind a text: they would run on."""
    pairs = zip([None, *blocks], blocks, strict=False)
    return tuple(block for before, block in pairs if not (isinstance(before, Text) and isinstance(block, Text)))


def tool_choices(tools: tuple[Tool, ...]) -> st.SearchStrategy[NamedTool | str | None]:
    if not tools:
        return st.none()
    named = st.sampled_from(tools).map(lambda tool: NamedTool(tool.name))
    return st.none() | st.sampled_from(["auto", "none", "required"]) | named


def sent(request: ClientRequest, format: Format) -> bytes:
    """The request as our writer sends it."""
    preamble = format.preamble(request.model, request.parameters, request.system, request.tools)
    wires = [tuple(format.entry(entry, MADE.provider)) for entry in request.entries]
    pieces = [*preamble, *list_pieces(wires, format.opened(request.system)), format.closing(request.parameters)]
    return b"".join(piece.data for piece in pieces)


def ask(*entries: Entry, parameters: Parameters | None = None, **more: object) -> ClientRequest:
    return ClientRequest("m", entries, parameters=parameters or Parameters(), stream=True, **more)  # type: ignore[arg-type]


# -- replies


def parts_of(blocks: tuple[Block, ...]) -> list[ReplyPart]:
    """A reply as it streams in, its texts and arguments in halves."""
    parts: list[ReplyPart] = []
    calls = 0
    for block in blocks:
        if isinstance(block, Text):
            parts += [TextPart(half) for half in _halves(block.text)]
        elif isinstance(block, Thinking) and block.redacted:
            parts.append(ThinkingPart(redacted=block.redacted))
        elif isinstance(block, Thinking):
            parts += [ThinkingPart(half) for half in _halves(block.text)]
            parts += [ThinkingPart(signature=block.signature)] if block.signature else []
        elif isinstance(block, ToolCall):
            parts.append(CallPart(calls, block.id, block.name))
            parts += [CallPart(calls, arguments=half) for half in _halves(block.arguments)]
            calls += 1
    return parts


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [half for half in (text[:middle], text[middle:]) if half]


def gathered(parts: list[ReplyPart]) -> tuple[tuple[Block, ...], list[Done]]:
    """The blocks that parts make, and how they end."""
    steps = [delta_of(part) for part in parts if isinstance(part, TextPart | ThinkingPart | CallPart)]
    return blocks_from(steps), [part for part in parts if isinstance(part, Done)]


@st.composite
def replies(draw: st.DrawFn, thoughts: st.SearchStrategy[Thinking]) -> tuple[Block, ...]:
    """Thinking, then a text, then calls: the order that every reply has."""
    ids = draw(st.lists(IDS, max_size=3, unique=True))
    thought = draw(st.lists(thoughts, max_size=1))
    said = draw(st.lists(st.builds(Text, TEXTS), max_size=1))
    return (*thought, *said, *(ToolCall(id, draw(IDS), dumps(draw(OBJECTS))) for id in ids))
