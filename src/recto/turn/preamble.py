"""Preamble: the counted bytes at the beginning of every window of a turn: tools, system prompt, rules, references."""

import hashlib
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from recto.chat.blocks import Text
from recto.errors import DoesNotFit
from recto.sources.selection import MEMORY, REFERENCES, RULES, Selection, sources_text
from recto.sources.source import Pick, Tool
from recto.turn.token_cache import TokenCache
from recto.window.count import ZERO, Count, proportional_shares
from recto.window.request import Entry, Parameters, Piece
from recto.window.window import SectionTally


class Instructions(Struct, frozen=True):
    prompt: str = ""
    rules: tuple[Selection, ...] = ()
    references: tuple[Selection, ...] = ()
    memory: tuple[Selection, ...] = ()

    @property
    def text(self) -> str:
        return _joined(self.prompt, self.for_rules, self.for_references)

    @property
    def for_rules(self) -> str:
        return _joined(sources_text(RULES, self.rules), sources_text(MEMORY, self.memory))

    @property
    def for_references(self) -> str:
        return sources_text(REFERENCES, self.references)


def _joined(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text)


class Preamble(Struct, frozen=True):
    pieces: tuple[Piece, ...]
    system: Count
    """The system prompt, with the fixed cost of every request."""
    tools: tuple[tuple[Tool, Count], ...]
    is_open: bool
    """True if the list of messages is not empty, so that the next needs a comma."""
    rules: Count = ZERO
    references: Count = ZERO
    instructed: Instructions = Instructions()
    picks: tuple[tuple[str, Pick], ...] = ()
    """Picks by section, with tokens."""

    @property
    def instructions(self) -> Count:
        return self.system + self.rules + self.references

    @property
    def for_tools(self) -> int:
        return sum(count.tokens for _, count in self.tools)

    @property
    def counts(self) -> tuple[Count, ...]:
        """Separate, because some may be exact and others not."""
        return (self.system, self.rules, self.references, *(count for _, count in self.tools))

    @property
    def count(self) -> Count:
        return sum(self.counts, ZERO)

    def tally(self, tally: SectionTally) -> None:
        sha256 = hashlib.sha256(self.instructed.prompt.encode()).hexdigest()
        tally.add("system", Pick("system", "system prompt", "always first", sha256=sha256), self.system.tokens)
        for section, pick in self.picks:
            tally.add(section, pick, pick.tokens)


async def build_preamble(
    token_cache: TokenCache,
    parameters: Parameters,
    instructions: Instructions = Instructions(),  # noqa: B008  frozen
    tools: Sequence[Selection] = (),
) -> Preamble:
    system, texts = token_cache.defused(instructions.text), instructions
    # with references too: they are sent, and so counted, as one text
    prompt, with_rules, whole = await _system_counts(
        token_cache, parameters, [texts.prompt, _joined(texts.prompt, texts.for_rules), texts.text]
    )
    rules = Count(with_rules.tokens - prompt.tokens, prompt.exact and with_rules.exact)
    references = Count(whole.tokens - with_rules.tokens, with_rules.exact and whole.exact)
    for_system = prompt + token_cache.counter.priming
    if not system:
        for_system += token_cache.counter.without_system
    picks = [
        *await _shares(token_cache, "rules", (*texts.rules, *texts.memory), rules),
        *await _shares(token_cache, "references", texts.references, references),
    ]
    is_open = token_cache.format.opened(system)
    base = Preamble((), for_system, (), is_open, rules, references, instructions, tuple(picks))
    return await with_tools(base, token_cache, parameters, tools)


async def with_tools(
    preamble: Preamble, token_cache: TokenCache, parameters: Parameters, tools: Sequence[Selection]
) -> Preamble:
    """Puts tools in front of the instructions, which are counted only once."""
    specs = [each.source for each in tools if isinstance(each.source, Tool)]
    system = token_cache.defused(preamble.instructed.text)
    pieces = token_cache.format.preamble(token_cache.model.id, parameters, system, specs)
    counts = await token_cache.count_pieces([piece for piece in pieces if piece.kind == "tool"]) if specs else []
    written = [(section, pick) for section, pick in preamble.picks if section != "tools"]
    picks = [("tools", replace(each.pick, tokens=count.tokens)) for each, count in zip(tools, counts, strict=True)]
    offered = tuple(zip(specs, counts, strict=True))
    return replace(preamble, pieces=tuple(pieces), tools=offered, picks=(*written, *picks))


async def _system_counts(token_cache: TokenCache, parameters: Parameters, texts: Sequence[str]) -> list[Count]:
    known: dict[str, Count] = {}
    for text in texts:
        if text not in known:
            pieces = token_cache.format.preamble(token_cache.model.id, parameters, token_cache.defused(text), ())
            counts = await token_cache.count_pieces([piece for piece in pieces if piece.kind == "system"])
            known[text] = sum(counts, ZERO)
    return [known[text] for text in texts]


async def _shares(
    token_cache: TokenCache, section: str, included: Sequence[Selection], count: Count
) -> list[tuple[str, Pick]]:
    if not included:
        return []
    counted = await token_cache.count([Entry("user", (Text(each.text),)) for each in included])
    shares = proportional_shares(count.tokens, [each.count.tokens for each in counted])
    return [(section, replace(each.pick, tokens=share)) for each, share in zip(included, shares, strict=True)]


def naming_largest(why: DoesNotFit, preamble: Preamble) -> DoesNotFit:
    """The same error, naming the largest source if the sources are too large."""
    sections = {"rules and references": ("rules", "references"), "the tools": ("tools",)}.get(why.largest, ())
    picks = [pick for section, pick in preamble.picks if section in sections]
    if not picks:
        return why
    most = max(picks, key=lambda pick: pick.tokens)
    name = most.source
    way = "switch it off, or shorten it" if most.kind == "memory" else f"`recto sources remove '{name}'` takes it out"
    message = f"{why.message}; the largest is {name} with {most.tokens}: {way}"
    return DoesNotFit(message, needed=why.needed, room=why.room, largest=why.largest)


def list_pieces(wires: Sequence[tuple[bytes, ...]], is_open: bool) -> list[Piece]:
    """Wire messages as pieces of a JSON list: a comma before each but the first."""
    flat = [data for wire in wires for data in wire]
    return [Piece("message", b"," + data if place or is_open else data) for place, data in enumerate(flat)]
