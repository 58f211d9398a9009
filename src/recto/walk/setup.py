"""Setup: what stays the same through all rounds of a turn: who answers, how it counts, what it may call."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from recto.errors import Invalid
from recto.providers.http import Patience
from recto.providers.model import ASSUMED_WINDOW, Model
from recto.providers.provider import Provider
from recto.providers.registry import open_provider, split_name
from recto.settings import Settings
from recto.sources.tools import Toolbox, read_document
from recto.store.clerk import Clerk
from recto.store.store import Store
from recto.text import clean
from recto.vault.vault import Vault
from recto.walk.scale import Scale
from recto.walk.turn import Opening, budget_for, open_window
from recto.window.budget import Budget
from recto.window.request import Parameters

# The reply that is asked for where a wire format wants a number and nobody gave one.
DEFAULT_REPLY = 4096


@dataclass(frozen=True, slots=True)
class Ready:
    provider: Provider
    scale: Scale
    parameters: Parameters
    toolbox: Toolbox
    opening: Opening
    budget: Budget
    compacts: bool
    """Whether a cut is kept as a Compaction; else each request leaves out what does not fit."""
    notes: tuple[str, ...]

    @property
    def model(self) -> Model:
        return self.scale.model

    @property
    def free(self) -> int:
        """The room that instructions and tools leave."""
        return self.budget.room - self.opening.count.tokens


class Setup:
    """Opens providers and scales once and keeps them."""

    def __init__(
        self,
        store: Store,
        clerk: Clerk,
        settings: Settings,
        *,
        home: Path,
        project: Path | None,
        environment: Mapping[str, str],
    ) -> None:
        self._store = store
        self._clerk = clerk
        self._settings = settings
        self._open = partial(
            open_provider,
            home=home,
            project=project,
            environment=environment,
            window=settings.embedded.window if settings.origin("embedded.window") != "default" else None,
            patience=Patience(tries=settings.reply.tries, read_s=settings.reply.timeout_s),
        )
        self._providers: dict[str, Provider] = {}
        self._scales: dict[str, Scale] = {}

    async def ready(self, name: str, vault: Vault | None) -> Ready:
        provider = self.provider(name)
        model = await provider.model(name)
        scale = await self._scale(provider, model)
        parameters = self._parameters(model, provider)
        toolbox = self._toolbox(model, vault)
        opening = await open_window(scale, parameters, self._system_prompt(), toolbox.tools)
        budget = budget_for(model, self._settings, parameters)
        is_known = bool(model.window or self._settings.context.max_prompt_tokens)
        notes = [note for note in (scale.meter.note, None if is_known else _unknown_window(model)) if note]
        compacts = self._settings.context.enabled and is_known
        return Ready(provider, scale, parameters, toolbox, opening, budget, compacts, tuple(notes))

    def provider(self, model: str) -> Provider:
        name, _ = split_name(model)
        if name not in self._providers:
            self._providers[name] = self._open(name)
        return self._providers[name]

    async def _scale(self, provider: Provider, model: Model) -> Scale:
        known = self._scales.get(model.name)
        if known is None or known.model != model:
            known = Scale(provider.format, model, await provider.meter(model), self._clerk, self._store.counts)
            self._scales[model.name] = known
        return known

    def _parameters(self, model: Model, provider: Provider) -> Parameters:
        wanted = self._settings.reply
        longest = wanted.max_tokens or model.max_tokens
        if longest is None and provider.format.name == "anthropic":
            longest = min(model.max_output or DEFAULT_REPLY, DEFAULT_REPLY)
        temperature = wanted.temperature if wanted.temperature >= 0 else model.temperature
        return Parameters(longest, temperature, wanted.thinking_budget or model.thinking_budget)

    def _toolbox(self, model: Model, vault: Vault | None) -> Toolbox:
        offered = [read_document(vault)] if vault and model.tools and self._settings.tools.enabled else []
        return Toolbox(offered, timeout_s=self._settings.tools.timeout_s)

    def _system_prompt(self) -> str:
        """Read anew at every turn; the record keeps the text that was really sent."""
        if not self._settings.system_prompt_file:
            return self._settings.system_prompt
        path = Path(self._settings.system_prompt_file).expanduser()
        try:
            return clean(path.read_bytes())[0].strip()
        except OSError as why:
            raise Invalid(f"cannot read the system prompt file {path}: {why.strerror}", path=str(path)) from why

    async def close(self) -> None:
        for provider in self._providers.values():
            await provider.close()


def _unknown_window(model: Model) -> str:
    return (
        f"the window of {model.name} is unknown: {ASSUMED_WINDOW} tokens are assumed and automatic compaction is off; "
        "set `window` in models.toml"
    )
