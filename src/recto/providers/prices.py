"""Prices of a model, what a usage costs at them, and the most that a call can cost. US dollars; values only."""

from msgspec import Struct

from recto.chat.message import Usage

MILLION, THOUSAND = 1_000_000, 1_000


class Prices(Struct, frozen=True):
    """US dollars per million tokens."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    """None: as any other input."""
    cache_write: float | None = None
    """None: as any other input."""
    reasoning: float | None = None
    """None: as any other output."""
    requests: float | None = None
    """Per thousand requests, besides their tokens."""
    above: tuple[tuple[int, "Prices"], ...] = ()
    """(tokens, prices): for all tokens of a request whose input is larger than that; the smallest first."""

    @property
    def are_known(self) -> bool:
        return self.input is not None and self.output is not None

    @property
    def dearest_output(self) -> float:
        """Per million tokens of output, whatever the length of the input; 0 where it is not known."""
        return max(max(each.output or 0.0, each.reasoning or 0.0) for each in (self, *(at for _, at in self.above)))

    def cost(self, usage: Usage) -> float | None:
        """None where the prices are not known."""
        at = self._at(usage.input)
        if at.input is None or at.output is None:
            return None
        fresh = max(0, usage.input - usage.cache_read - usage.cache_write)
        reasoning = min(usage.reasoning, usage.output)
        tokens = (
            fresh * at.input
            + usage.cache_read * _or(at.cache_read, at.input)
            + usage.cache_write * _or(at.cache_write, at.input)
            + (usage.output - reasoning) * at.output
            + reasoning * _or(at.reasoning, at.output)
        )
        return tokens / MILLION + (at.requests or 0) / THOUSAND

    def at_most(self, input: int, output: int) -> float | None:
        """The most that a call with this input and an output of this length costs: nothing is read from a cache."""
        at = self._at(input)
        if at.input is None or at.output is None:
            return None
        dearest = max(at.input, at.cache_write or 0), max(at.output, at.reasoning or 0)
        return (input * dearest[0] + output * dearest[1]) / MILLION + (at.requests or 0) / THOUSAND

    def _at(self, input: int) -> "Prices":
        return next((prices for start, prices in reversed(self.above) if input > start), self)


def _or(price: float | None, usual: float) -> float:
    return usual if price is None else price
