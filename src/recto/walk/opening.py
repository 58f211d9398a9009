"""Opening: what every window of a turn starts with, as bytes and weighed: tools, instructions, rules, references."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from recto.chat.blocks import Text
from recto.errors import DoesNotFit
from recto.sources.included import REFERENCES, RULES, Included, told
from recto.sources.pick import Pick
from recto.sources.source import Tool
from recto.walk.scale import Scale
from recto.window.count import ZERO, Count
from recto.window.recalled import shared_out
from recto.window.request import Entry, Parameters, Piece
from recto.window.window import Tally


@dataclass(frozen=True, slots=True)
class Instructions:
    """What the model is told first."""

    prompt: str = ""
    rules: tuple[Included, ...] = ()
    references: tuple[Included, ...] = ()

    @property
    def text(self) -> str:
        return _joined(self.prompt, self.for_rules, self.for_references)

    @property
    def for_rules(self) -> str:
        return told(RULES, self.rules)

    @property
    def for_references(self) -> str:
        return told(REFERENCES, self.references)


def _joined(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text)


@dataclass(frozen=True, slots=True)
class Opening:
    pieces: tuple[Piece, ...]
    system: Count
    """The system prompt, with what every request costs besides its pieces."""
    tools: tuple[tuple[Tool, Count], ...]
    is_open: bool
    """The list of messages already holds one: the next needs a comma."""
    rules: Count = ZERO
    references: Count = ZERO
    instructed: Instructions = Instructions()
    picks: tuple[tuple[str, Pick], ...] = ()
    """Rules, references and tools by their section, with the tokens of each."""

    @property
    def instructions(self) -> Count:
        return self.system + self.rules + self.references

    @property
    def for_tools(self) -> int:
        return sum(count.tokens for _, count in self.tools)

    @property
    def count(self) -> Count:
        return sum((count for _, count in self.tools), self.instructions)

    def tally(self, tally: Tally) -> None:
        sha256 = hashlib.sha256(self.instructed.prompt.encode()).hexdigest()
        tally.add("system", Pick("system", "system prompt", "always first", sha256=sha256), self.system.tokens)
        for section, pick in self.picks:
            tally.add(section, pick, pick.tokens)


async def open_window(
    scale: Scale,
    parameters: Parameters,
    instructions: Instructions = Instructions(),  # noqa: B008  frozen
    included: Sequence[Included] = (),
) -> Opening:
    """`included` are the tools."""
    system = scale.defused(instructions.text)
    tools = [each.source for each in included if isinstance(each.source, Tool)]
    pieces = scale.format.opening(scale.model.id, parameters, system, tools)
    offered = [piece for piece in pieces if piece.kind == "tool"]
    counts = await scale.weigh_pieces(offered)
    prompt, with_rules, whole = await _running(scale, parameters, instructions)
    for_system = prompt + scale.meter.priming
    if not system:
        for_system += scale.meter.without_system
    rules, references = _more(prompt, with_rules), _more(with_rules, whole)
    picks = [
        *await _shares(scale, "rules", instructions.rules, rules),
        *await _shares(scale, "references", instructions.references, references),
        *(("tools", _weighing(each, count.tokens)) for each, count in zip(included, counts, strict=True)),
    ]
    return Opening(
        tuple(pieces),
        for_system,
        tuple(zip(tools, counts, strict=True)),
        scale.format.opened(system),
        rules,
        references,
        instructions,
        tuple(picks),
    )


async def _running(scale: Scale, parameters: Parameters, instructions: Instructions) -> list[Count]:
    """The prompt, then with rules, then with references too: counted as one text, since that is how they are sent."""
    prompt, rules = instructions.prompt, instructions.for_rules
    texts = [prompt, _joined(prompt, rules), instructions.text]
    made = [scale.format.opening(scale.model.id, parameters, scale.defused(text), ()) for text in dict.fromkeys(texts)]
    systems = [[piece for piece in pieces if piece.kind == "system"] for pieces in made]
    counts = [sum(await scale.weigh_pieces(pieces), ZERO) for pieces in systems]
    known = dict(zip(dict.fromkeys(texts), counts, strict=True))
    return [known[text] for text in texts]


def _more(before: Count, after: Count) -> Count:
    return Count(after.tokens - before.tokens, before.exact and after.exact)


async def _shares(scale: Scale, section: str, included: Sequence[Included], count: Count) -> list[tuple[str, Pick]]:
    weighed = await scale.weigh([Entry("user", (Text(each.text),)) for each in included])
    shares = shared_out(count.tokens, [each.count.tokens for each in weighed])
    return [(section, _weighing(each, share)) for each, share in zip(included, shares, strict=True)]


def _weighing(each: Included, tokens: int) -> Pick:
    return replace(each.pick, tokens=tokens)


def largest_named(why: DoesNotFit, opening: Opening) -> DoesNotFit:
    """The same error, with the source that takes the most, where sources are what is too large."""
    sections = {"rules and references": ("rules", "references"), "the tools": ("tools",)}.get(why.largest, ())
    picks = [pick for section, pick in opening.picks if section in sections]
    if not picks:
        return why
    most = max(picks, key=lambda pick: pick.tokens)
    name = most.source
    told = f"{why.message}; the largest is {name} with {most.tokens}: `recto sources remove '{name}'` takes it out"
    return DoesNotFit(told, needed=why.needed, room=why.room, largest=why.largest)


def listed(wires: Sequence[tuple[bytes, ...]], is_open: bool) -> list[Piece]:
    """Wire messages as pieces of a JSON list: a comma before each but the first."""
    flat = [data for wire in wires for data in wire]
    return [Piece("message", b"," + data if place or is_open else data) for place, data in enumerate(flat)]
