"""Model: data about who answers. Where each number came from is kept beside it."""

from dataclasses import dataclass

ASSUMED_WINDOW = 8192


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars for a million tokens."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None


@dataclass(frozen=True, slots=True)
class Model:
    name: str
    """`provider:id`, as the user writes it."""
    provider: str
    id: str
    """As the wire wants it."""
    window: int | None
    window_from: str
    """models.toml, genai-prices, the server, built in, unknown."""
    max_output: int | None = None
    max_output_from: str = "unknown"
    prices: Prices | None = None
    prices_from: str = "unknown"
    tokenizer: str = "o200k_base"
    """A vocabulary's name, or `server` where the model's own server counts."""
    factor: float = 1.0
    """Estimates only: what o200k's count is multiplied by."""
    exact: bool = False
    """The rendering and the tokenizer are known: counts of text are exact."""
    tools: bool = True
    max_tokens: int | None = None
    """Asked for with every request unless the settings say otherwise."""
    temperature: float | None = None
    summarizes: bool = True
    """False for a model that is too small to write summaries: sentences are chosen instead, without asking it."""
    fixed_temperature: bool = False
    """The model refuses any temperature but its own, which is 1: none is sent."""
    thinking_budget: int | None = None
    control: tuple[str, ...] = ()
    """Texts that the model's tokenizer would read as control tokens: defused before they are sent."""
    strategy: str | None = None
    """What happens with this model when the window is full; None leaves it to the settings."""
