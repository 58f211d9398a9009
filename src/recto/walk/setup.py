"""Setup: what stays the same through all rounds of a turn: who answers, how it counts, what its windows begin with."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from recto import settings as configuration
from recto.agents.agent import Agent
from recto.agents.agents import apply
from recto.chat.conversation import View
from recto.errors import Invalid
from recto.providers.http import Patience
from recto.providers.model import ASSUMED_WINDOW, Model
from recto.providers.provider import Provider
from recto.providers.registry import open_provider, split_name
from recto.settings import ContextSettings, Settings
from recto.sources.included import Included, Offered, Sources
from recto.sources.reading import READ
from recto.sources.tools import Remote, Runnable, Toolbox
from recto.store.clerk import Clerk
from recto.store.store import Store
from recto.text import clean
from recto.walk.opening import Instructions, Opening, open_window
from recto.walk.scale import Scale
from recto.window.budget import Budget, Shares, limit_of, reserve_of
from recto.window.compact import reaches
from recto.window.fitting import SMALLEST_SUMMARY
from recto.window.request import Parameters

# The reply that is asked for where a wire format wants a number and nobody gave one.
DEFAULT_REPLY = 4096
# A share of a large window would be a book; nobody writes or reads one between two messages.
LONGEST_SUMMARY = 4096
LARGEST_SUMMARY = 0.3
TIGHTER = 0.75
# A tool that takes more of the room is not worth its place: in a small window everything is near anyway.
LARGEST_TOOL = 0.04
# Of fewer archived messages those that matter come back by themselves.
WORTH_A_TOOL = 16
STRATEGY = "context.strategy"


@dataclass(frozen=True, slots=True)
class Choices:
    """What a conversation, or one call, wants otherwise than the settings say."""

    agent: str = "default"
    conversation: str | None = None
    """The strategy that was chosen for the conversation."""
    call: str | None = None
    """The strategy that was chosen for this message alone."""


@dataclass(frozen=True, slots=True)
class Footing:
    """Who answers and as which agent, how it counts, what is asked of it: known before anything is chosen."""

    provider: Provider
    scale: Scale
    parameters: Parameters
    context: ContextSettings
    """As it is for this model, agent, conversation and call."""
    agent: Agent
    prompt: str

    @property
    def model(self) -> Model:
        return self.scale.model

    @property
    def limit(self) -> int:
        return limit_of(self.model.window, self.context.max_prompt_tokens, ASSUMED_WINDOW)

    @property
    def reserve(self) -> int:
        return reserve_of(self.limit, self.context.reserved_response_tokens, self.parameters.max_tokens)

    @property
    def room(self) -> int:
        return self.limit - self.reserve

    @property
    def is_known(self) -> bool:
        """Whether somebody says how large the window is."""
        return bool(self.model.window or self.context.max_prompt_tokens)


@dataclass(frozen=True, slots=True)
class Openings:
    """What a window may start with: as long as no compaction comes, and behind the next one."""

    plain: Opening
    with_recall: Opening | None = None
    """Once there is something to recall."""

    def at(self, view: View) -> Opening:
        block = view.compaction
        is_far = block is not None and reaches(block) and block.messages_archived >= WORTH_A_TOOL
        return self.with_recall if self.with_recall and is_far else self.plain


@dataclass(frozen=True, slots=True)
class Ready:
    footing: Footing
    sources: Sources
    toolbox: Toolbox
    opening: Opening
    budget: Budget
    compacts: bool
    """Whether a cut is kept as a Compaction; else each request leaves out what does not fit."""
    notes: tuple[str, ...]
    openings: Openings
    afterwards: Openings
    """Behind a compaction, which ends what was chosen for earlier messages."""
    tightened: int = 0
    """How often its provider has said in this turn that the window is too long."""

    @property
    def provider(self) -> Provider:
        return self.footing.provider

    @property
    def scale(self) -> Scale:
        return self.footing.scale

    @property
    def parameters(self) -> Parameters:
        return self.footing.parameters

    @property
    def context(self) -> ContextSettings:
        return self.footing.context

    @property
    def model(self) -> Model:
        return self.scale.model

    def at(self, view: View) -> "Ready":
        """As it is for this view: what is archived can be asked for, and what was chosen for earlier messages goes. A
        compaction is when that changes: it breaks the prefix in any case."""
        number = view.compaction.compaction_number if view.compaction else None
        opening = (self.openings if number == self.sources.compaction else self.afterwards).at(view)
        return replace(self, opening=opening, budget=replace(self.budget, tools=opening.for_tools))

    @property
    def reaches(self) -> bool:
        """It may offer the tool that recalls."""
        return self.openings.with_recall is not None

    def unreaching(self) -> "Ready":
        """Without the tool that recalls, for good: where room is short it is the first to go."""
        return replace(self, openings=Openings(self.openings.plain), afterwards=Openings(self.afterwards.plain))

    def uncalling(self) -> "Ready":
        """The tools stay where the prefix has them, but none may be called any more: an answer is wanted now."""
        parameters = replace(self.parameters, tool_choice="none" if self.opening.tools else None)
        return replace(self, footing=replace(self.footing, parameters=parameters))

    @property
    def strategy(self) -> str:
        """Where nothing is compacted, what does not fit is left out as `discard` does."""
        return self.context.strategy if self.compacts else "discard"

    @property
    def reader(self) -> str | None:
        """The tool that reads documents, where the model has it."""
        return READ if any(tool.name == READ for tool, _ in self.opening.tools) else None

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

    async def footing(self, name: str, agent: Agent, choices: Choices = Choices()) -> Footing:  # noqa: B008  frozen
        provider = self.provider(name)
        model = await provider.model(name)
        scale = await self._scale(provider, model)
        context = self._context(model, agent, choices)
        return Footing(provider, scale, self._parameters(model, provider), context, agent, self._prompt(agent))

    async def bare(self, name: str) -> Ready:
        """A model that is asked for something besides the conversation, without any sources."""
        return await self.ready(await self.footing(name, Agent()), Sources())

    async def ready(self, footing: Footing, sources: Sources) -> Ready:
        lasting = tuple(each for each in sources.tools if each.lasts)
        openings = await self._openings(footing, sources, sources.tools)
        afterwards = openings if len(lasting) == len(sources.tools) else await self._openings(footing, sources, lasting)
        opening, compacts = openings.plain, footing.context.enabled and footing.is_known
        return Ready(
            footing,
            sources,
            self._toolbox(_all_of(sources)),
            opening,
            budget_for(footing, opening, compacts=compacts),
            compacts,
            (*self._notes(footing), *sources.notes),
            openings,
            afterwards,
        )

    async def _openings(self, footing: Footing, sources: Sources, tools: Sequence[Offered]) -> Openings:
        """Without the tool that recalls, and with it where that is worth its place."""
        instructions = Instructions(footing.prompt, sources.rules, sources.references)
        included = [each.included for each in tools]
        plain = await open_window(footing.scale, footing.parameters, instructions, included)
        if sources.recall is None:
            return Openings(plain)
        recall = Included(sources.recall.tool, "always", "something is archived")
        more = await open_window(footing.scale, footing.parameters, instructions, [*included, recall])
        is_worth_it = more.for_tools - plain.for_tools <= footing.room * LARGEST_TOOL
        return Openings(plain, more if is_worth_it else None)

    def _notes(self, footing: Footing) -> Iterator[str]:
        model = footing.model
        if footing.scale.meter.note:
            yield footing.scale.meter.note
        if not footing.is_known:
            yield _unknown_window(model)
        if model.fixed_temperature and self._settings.reply.temperature >= 0:
            yield f"{model.name} takes no temperature: reply.temperature is not sent"

    def _context(self, model: Model, agent: Agent, choices: Choices) -> ContextSettings:
        """The closest choice wins: this call's, then the conversation's, the agent's, the model's, the settings'."""
        settings = apply(self._settings, agent)
        by_option = settings.context.strategy if settings.origin(STRATEGY) == "option" else None
        by_agent = settings.context.strategy if STRATEGY in agent.context else None
        chosen = choices.call or by_option or choices.conversation or by_agent or model.strategy
        return configuration.changed(settings, {STRATEGY: chosen} if chosen else {}, "strategy").context

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
        temperature = None if model.fixed_temperature else temperature
        return Parameters(longest, temperature, wanted.thinking_budget or model.thinking_budget)

    def _toolbox(self, runnables: Sequence[Runnable | Remote]) -> Toolbox:
        tools = self._settings.tools
        return Toolbox(runnables, timeout_s=tools.timeout_s, longest=tools.result_characters)

    def _prompt(self, agent: Agent) -> str:
        """The agent's, unless an option says otherwise. Files are read anew at every turn; the record keeps the text
        that was really sent."""
        by_option = "option" in (self._settings.origin("system_prompt"), self._settings.origin("system_prompt_file"))
        if agent.system_prompt is not None and not by_option:
            return agent.system_prompt
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


def _all_of(sources: Sources) -> list[Runnable | Remote]:
    recall = [sources.recall] if sources.recall else []
    return [*(each.runnable for each in sources.tools), *recall, *sources.forbidden]


def _unknown_window(model: Model) -> str:
    return (
        f"the window of {model.name} is unknown: {ASSUMED_WINDOW} tokens are assumed and automatic compaction is off; "
        "set `window` in models.toml"
    )


def budget_for(footing: Footing, opening: Opening, *, compacts: bool) -> Budget:
    context, limit, room, shares = footing.context, footing.limit, footing.room, footing.context.budgets
    return Budget(
        limit,
        footing.reserve,
        # of the room, not of the limit: where the reserve is half of a small window, the next turn would cut again
        low_water=int(room * context.low_water),
        trigger=math.ceil(limit * context.threshold - 1e-9) if compacts else None,
        summary=_summary(room, context),
        recent=context.recent_messages_to_keep,
        least_recent=context.min_recent_messages_to_keep,
        shares=Shares(shares.system, shares.tools, shares.messages),
        instructions=opening.instructions.tokens,
        written=(opening.rules + opening.references).tokens,
        tools=opening.for_tools,
    )


def tightened(ready: Ready) -> Ready:
    """The same with a smaller window: its provider counts more than we do."""
    budget = ready.budget
    limit = int(budget.limit * TIGHTER)
    tighter = replace(
        budget,
        limit=limit,
        reserve=min(budget.reserve, limit // 2),
        low_water=int(budget.low_water * TIGHTER),
        summary=int(budget.summary * TIGHTER),
        trigger=int(budget.trigger * TIGHTER) if budget.trigger else None,
    )
    return replace(ready, budget=tighter, tightened=ready.tightened + 1)


def _summary(room: int, context: ContextSettings) -> int:
    """The longest summary as sent: what is asked for, no more than 30 % of the room, and enough to say something."""
    asked = context.summary_tokens or min(int(room * context.summary_ratio), LONGEST_SUMMARY)
    return max(SMALLEST_SUMMARY, min(asked, int(room * LARGEST_SUMMARY)))
