"""TurnBuilder: resolves models and builds the contexts of turns. Opens providers and token caches once; keeps them."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

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
from recto.sources.selection import OfferedTool, StablePicks
from recto.sources.tools import Toolbox
from recto.store.store import Store
from recto.turn.context import (
    NO_OPTIONS,
    CallOptions,
    Preambles,
    ResolvedModel,
    TurnContext,
    budget_for,
    with_parameters,
)
from recto.turn.preamble import Instructions, Preamble, build_preamble, with_tools
from recto.turn.provider_counts import ProviderCounts
from recto.turn.spending import is_priced, largest_reply
from recto.turn.token_cache import TokenCache
from recto.window.calibration import learned
from recto.window.request import Parameters

# The recall tool is not worth a larger share of the room: in a small window everything is near anyway.
LARGEST_TOOL = 0.04
STRATEGY, OPTION = "context.strategy", "option"
NOTHING_CHOSEN: Mapping[str, Any] = {}


class TurnBuilder:
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
        self.provider_counts = ProviderCounts(store)

    async def resolve(
        self,
        name: str,
        agent: Agent,
        chosen: Mapping[str, Any] = NOTHING_CHOSEN,
        options: CallOptions = NO_OPTIONS,
        conversation: str = "",
    ) -> ResolvedModel:
        """`chosen` are the settings that the conversation has."""
        provider, model = self.provider(name), await self.model(name)
        token_cache = await self._calibrated(await self._token_cache(provider, model), conversation)
        settings, notes = self._in_force(model, agent, chosen, options.strategy)
        asked = with_parameters(self._parameters(model, provider), options.parameters)
        parameters, left_out = accepted(asked, model)
        if options.settings:
            settings = configuration.changed(settings, options.settings, "option")
        if options.window is not None:
            token_cache = token_cache.with_window(options.window)
            settings = configuration.changed(settings, {"context.max_prompt_tokens": 0}, "window")
        prompt = self._prompt(agent, model) if options.system is None else clean(options.system)[0]
        limit = ReplyLimit(settings.reply.max_characters, settings.tools.call_limit)
        about = (agent, prompt, left_out, settings.spend, (*notes, *options.notes), options.runs_tools, limit)
        return ResolvedModel(provider, token_cache, parameters, settings.context, *about)

    async def bare(self, name: str, chosen: Mapping[str, Any]) -> TurnContext:
        """A model that is asked for something beside the conversation, without any sources."""
        return await self.build(await self.resolve(name, Agent(), chosen), StablePicks())

    async def build(self, resolved: ResolvedModel, stable: StablePicks, compaction: int | None = None) -> TurnContext:
        """`compaction` is the number of the Compaction in force, for which the tools were picked."""
        lasting = tuple(each for each in stable.tools if each.lasts)
        instructions = Instructions(resolved.prompt, stable.rules, stable.references, stable.memory)
        base = await build_preamble(resolved.token_cache, resolved.parameters, instructions)
        preambles = await self._preambles(resolved, base, stable.tools)
        has_passing = len(lasting) < len(stable.tools)
        after = await self._preambles(resolved, base, lasting) if has_passing else preambles
        compacts = resolved.settings.enabled and resolved.is_known
        return TurnContext(
            resolved,
            stable,
            self._toolbox(stable),
            preambles.plain,
            budget_for(resolved, preambles.plain, compacts=compacts),
            compacts,
            (*self._notes(resolved), *stable.notes),
            preambles,
            after,
            compaction,
        )

    async def _preambles(self, resolved: ResolvedModel, base: Preamble, tools: Sequence[OfferedTool]) -> Preambles:
        """Without the tools that need an archive, and with them where they are worth their place."""
        add = partial(with_tools, base, resolved.token_cache, resolved.parameters)
        plain = await add([each.selection for each in tools if not each.needs_archive])
        if not any(each.needs_archive for each in tools):
            return Preambles(plain)
        more = await add([each.selection for each in tools])
        is_worth_it = more.for_tools - plain.for_tools <= resolved.room * LARGEST_TOOL
        return Preambles(plain, more if is_worth_it else None)

    def _notes(self, resolved: ResolvedModel) -> Iterator[str]:
        model = resolved.model
        yield from self._settings.notes.values()
        yield from resolved.notes
        if not resolved.is_known:
            yield _unknown_window(model)
        if (resolved.spend.conversation or resolved.spend.day) and not is_priced(model):
            yield _unknown_price(model)
        for name in resolved.left_out:
            yield f"{model.name} takes no {name.replace('_', ' ')}: it is not sent"

    def _in_force(
        self, model: Model, agent: Agent, chosen: Mapping[str, Any], call: str | None
    ) -> tuple[Settings, tuple[str, ...]]:
        """The settings of a turn: those of the conversation go over the agent's, and options over both. The closest
        choice of a strategy wins: the call's, the option's, then the conversation's, agent's, model's, settings'."""
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
        """The facts about `provider:model`, or a model by the name that the user gave it in models.toml."""
        return await self.provider(name).model(self._catalog.full_name(name))

    def model_name(self, chosen: str, options: CallOptions, agent: Agent) -> str:
        """The name of the model that answers; `chosen` is the conversation's own."""
        return options.model or chosen or agent.model or self._settings.model

    def known_model(self, name: str) -> Model | None:
        """What is known of a model without asking whoever runs it; None where the name says nothing."""
        try:
            return self._catalog.find(*split_name(self._catalog.full_name(name)))
        except RectoError:
            return None

    def full_name(self, name: str) -> str:
        """`provider:id` of a model, however it is named."""
        return ":".join(split_name(self._catalog.full_name(name)))

    def provider(self, model: str) -> Provider:
        name, _ = split_name(self._catalog.full_name(model))
        if name not in self._providers:
            self._providers[name] = self._open(name)
        return self._providers[name]

    async def _token_cache(self, provider: Provider, model: Model) -> TokenCache:
        known = self._token_caches.get(model.name)
        if known is None or known.model != model:
            known = TokenCache(provider.format, model, await provider.counter(model), self._store)
            self._token_caches[model.name] = known
        return known

    async def _calibrated(self, cache: TokenCache, conversation: str) -> TokenCache:
        """As the reports about the model so far suggest; fixed for the turn."""
        reports = await self._store.do(self._store.usage_reports.latest, cache.model.name)
        same = [report for report in reports if report.meter == cache.counter.key]
        return cache.calibrated(learned(same, conversation)) if same else cache

    async def longest_reply(self, name: str) -> int:
        """How long a reply can be that nobody gives a length, in tokens."""
        model = await self.model(name)
        return self._parameters(model, self.provider(name)).max_tokens or largest_reply(model)

    def _parameters(self, model: Model, provider: Provider) -> Parameters:
        wanted = self._settings.reply
        longest = wanted.max_tokens or model.max_tokens
        default = provider.format.default_max_tokens
        if longest is None and default is not None:
            longest = min(model.max_output or default, default)
        temperature = wanted.temperature if wanted.temperature >= 0 else model.temperature
        return Parameters(longest, temperature, wanted.thinking_budget or model.thinking_budget)

    def _toolbox(self, stable: StablePicks) -> Toolbox:
        tools = self._settings.tools
        return Toolbox(stable.runnables, timeout_s=tools.timeout_s, longest=tools.result_characters)

    def _prompt(self, agent: Agent, model: Model) -> str:
        """The agent's, unless an option says otherwise. Files are read anew at every turn; the record keeps the text
        that was really sent."""
        by_option = "option" in (self._settings.origin("system_prompt"), self._settings.origin("system_prompt_file"))
        if agent.system_prompt is not None and not by_option:
            return agent.system_prompt
        if not self._settings.system_prompt_file:
            is_default = self._settings.origin("system_prompt") == "default"
            return (model.system_prompt if is_default else "") or self._settings.system_prompt
        path = Path(self._settings.system_prompt_file).expanduser()
        try:
            return clean(read_ordinary_file(path))[0].strip()
        except OSError as why:
            raise Invalid(f"cannot read the system prompt file {path}: {why.strerror}", path=str(path)) from why

    async def close(self) -> None:
        await self.provider_counts.close()
        for provider in self._providers.values():
            await provider.close()


def _unknown_price(model: Model) -> str:
    return (
        f"the price of {model.name} is unknown: what it costs counts for no limit of spending; "
        "set `prices` in models.toml"
    )


def _unknown_window(model: Model) -> str:
    return (
        f"the window of {model.name} is unknown: {ASSUMED_WINDOW} tokens are assumed and automatic compaction is off; "
        "set `window` in models.toml"
    )
