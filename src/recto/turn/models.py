"""Models: finds the model that answers a turn, by its name. Opens providers and token caches once, and keeps them."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from recto.agents.agent import Agent, apply_agent, with_conversation_settings
from recto.base.text import clean
from recto.base.toml_file import read_ordinary_file
from recto.errors import Invalid, RectoError
from recto.providers.catalog import ModelCatalog
from recto.providers.http import RetryPolicy
from recto.providers.model import ASSUMED_WINDOW, Model, Provider, ReplyLimit, accepted
from recto.providers.registry import open_provider, split_name
from recto.settings import settings as configuration
from recto.settings.settings import Settings
from recto.settings.strategy import STRATEGIES, SUMMARIZE
from recto.sources.selection import StablePicks
from recto.store.store import Store
from recto.turn.context import NO_OPTIONS, STRATEGY, CallOptions, ResolvedModel, TurnContext, build_context
from recto.turn.spending import is_priced, largest_reply
from recto.turn.token_cache import TokenCache
from recto.window.calibration import learned
from recto.window.request import Parameters

OPTION = "option"
UNKNOWN_PRICE = "the price of {} is unknown, so its cost counts toward no spending limit; set `prices` in models.toml"
UNKNOWN_WINDOW = (
    f"the window of {{}} is unknown: {ASSUMED_WINDOW} tokens are assumed and automatic compaction is off; set `window` "
    "in models.toml"
)


class Models:
    def __init__(
        self,
        store: Store,
        settings: Settings,
        *,
        home: Path,
        project: Path | None,
        environment: Mapping[str, str],
    ) -> None:
        self._store = store
        self._settings = settings
        self._open = partial(
            open_provider,
            home=home,
            project=project,
            environment=environment,
            window=settings.embedded.window if settings.origin("embedded.window") != "default" else None,
            retry_policy=RetryPolicy(tries=settings.reply.tries, read_s=settings.reply.timeout_s),
        )
        self._catalog = ModelCatalog(home, project)
        self._providers: dict[str, Provider] = {}
        self._token_caches: dict[str, TokenCache] = {}

    async def resolve(
        self,
        name: str,
        agent: Agent,
        chosen: Mapping[str, Any],
        options: CallOptions = NO_OPTIONS,
        conversation: str = "",
    ) -> ResolvedModel:
        """`chosen` are the conversation's settings."""
        provider = self.provider(name)
        model = await self.model(name)
        token_cache = await self._token_cache(provider, model, conversation)
        settings, notes = self._in_force(model, agent, chosen, options.strategy)
        parameters, left_out = accepted(self._parameters(model, provider, options.parameters), model)
        if options.settings:
            settings = configuration.changed(settings, options.settings, OPTION)
        if options.window is not None:
            token_cache = token_cache.with_window(options.window)
            settings = configuration.changed(settings, {"context.max_prompt_tokens": 0}, "window")
        prompt = self._prompt(agent, model) if options.system is None else clean(options.system)[0]
        resolved = ResolvedModel(
            provider,
            token_cache,
            parameters,
            settings.context,
            agent,
            prompt,
            (*self._settings.notes.values(), *self._catalog.problems, *notes, *options.notes),
            settings.spend,
            self._settings.tools,
            options.runs_tools,
            ReplyLimit(settings.reply.max_characters, settings.tools.call_limit),
        )
        return replace(resolved, notes=(*resolved.notes, *_unknowns(resolved, left_out)))

    async def bare(self, name: str, chosen: Mapping[str, Any]) -> TurnContext:
        """The context of a side call, without any sources."""
        return await build_context(await self.resolve(name, Agent(), chosen), StablePicks())

    def _in_force(
        self, model: Model, agent: Agent, chosen: Mapping[str, Any], call: str | None
    ) -> tuple[Settings, tuple[str, ...]]:
        """The conversation's settings override the agent's, and options override both. The order for the strategy:
        call, option, conversation, agent, model, settings."""
        below = apply_agent(self._settings, agent)
        if model.strategy and STRATEGY not in agent.context and below.origin(STRATEGY) != OPTION:
            below = configuration.changed(below, {STRATEGY: model.strategy}, model.name)
        settings, notes = with_conversation_settings(below, chosen)
        settings = configuration.changed(settings, {STRATEGY: call}, "strategy") if call else settings
        try:
            STRATEGIES[settings.context.strategy]
        except RectoError as why:  # a plugin's: a chat goes on without it
            told = f"{why.message}; the strategy is {SUMMARIZE.name} meanwhile"
            return configuration.changed(settings, {STRATEGY: SUMMARIZE.name}, "plugin"), (*notes, told)
        return settings, notes

    async def model(self, name: str) -> Model:
        """The facts about `provider:model`, or about a model named in models.toml."""
        return await self.provider(name).model(self._catalog.full_name(name))

    def name(self, chosen: str, options: CallOptions, agent: Agent) -> str:
        return options.model or chosen or agent.model or self._settings.model

    def known_model(self, name: str) -> Model | None:
        """Asks no provider; None if the name is not enough."""
        try:
            return self._catalog.find(*split_name(self._catalog.full_name(name)))
        except RectoError:
            return None

    def full_name(self, name: str) -> str:
        """`provider:id`, from any of the model's names."""
        return ":".join(split_name(self._catalog.full_name(name)))

    def provider(self, model: str) -> Provider:
        name, _ = split_name(self._catalog.full_name(model))
        if name not in self._providers:
            self._providers[name] = self._open(name)
        return self._providers[name]

    async def _token_cache(self, provider: Provider, model: Model, conversation: str) -> TokenCache:
        """Calibrated by the latest reports about the model, for the whole turn."""
        cache = self._token_caches.get(model.name)
        if cache is None or cache.model != model:
            cache = TokenCache(provider.format, model, await provider.counter(model), self._store)
            self._token_caches[model.name] = cache
        reports = await self._store.do(self._store.usage_reports.latest, model.name)
        same = [report for report in reports if report.meter == cache.counter.key]
        return cache.calibrated(learned(same, conversation)) if same else cache

    async def longest_reply(self, name: str) -> int:
        model = await self.model(name)
        return self._parameters(model, self.provider(name)).max_tokens or largest_reply(model)

    def _parameters(self, model: Model, provider: Provider, given: Parameters = Parameters()) -> Parameters:  # noqa: B008  frozen
        wanted = self._settings.reply
        longest = wanted.max_tokens or model.max_tokens
        default = provider.format.default_max_tokens
        if longest is None and default is not None:
            longest = min(model.max_output or default, default)
        temperature = wanted.temperature if wanted.temperature >= 0 else model.temperature
        changed = {name: value for name in given.__struct_fields__ if (value := getattr(given, name)) not in (None, ())}
        return replace(Parameters(longest, temperature, wanted.thinking_budget or model.thinking_budget), **changed)

    def _prompt(self, agent: Agent, model: Model) -> str:
        """Files are read at every turn; the record keeps the text that was sent."""
        settings = self._settings
        if agent.system_prompt is not None and OPTION not in map(
            settings.origin, ("system_prompt", "system_prompt_file")
        ):
            return agent.system_prompt
        if not settings.system_prompt_file:
            is_default = settings.origin("system_prompt") == "default"
            return (model.system_prompt if is_default else "") or settings.system_prompt
        path = Path(settings.system_prompt_file).expanduser()
        try:
            return clean(read_ordinary_file(path))[0].strip()
        except OSError as why:
            raise Invalid(f"cannot read the system prompt file {path}: {why.strerror}", path=str(path)) from why

    async def close(self) -> None:
        for provider in self._providers.values():
            await provider.close()


def _unknowns(resolved: ResolvedModel, left_out: tuple[str, ...]) -> Iterator[str]:
    model, spend = resolved.model, resolved.spend
    if not resolved.is_known:
        yield UNKNOWN_WINDOW.format(model.name)
    if (spend.conversation or spend.day) and not is_priced(model):
        yield UNKNOWN_PRICE.format(model.name)
    for name in left_out:
        yield f"{model.name} does not accept {name.replace('_', ' ')}: it is not sent"
