"""Setup: what stays the same through all rounds of a turn: who answers, how it counts, what it may call."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from recto import settings as configuration
from recto.chat.conversation import View
from recto.errors import Invalid
from recto.providers.http import Patience
from recto.providers.model import ASSUMED_WINDOW, Model
from recto.providers.provider import Provider
from recto.providers.registry import open_provider, split_name
from recto.settings import ContextSettings, Settings
from recto.sources.reading import READ, reading_tools, writing_tools
from recto.sources.source import Tool
from recto.sources.tools import Runnable, Toolbox
from recto.store.clerk import Clerk
from recto.store.store import Store
from recto.text import clean
from recto.vault.vault import Vault
from recto.walk.libraries import Libraries
from recto.walk.opening import Opening, open_window
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
class Ready:
    provider: Provider
    scale: Scale
    parameters: Parameters
    toolbox: Toolbox
    opening: Opening
    budget: Budget
    context: ContextSettings
    """As it is for this model, agent, conversation and call."""
    compacts: bool
    """Whether a cut is kept as a Compaction; else each request leaves out what does not fit."""
    notes: tuple[str, ...]
    with_recall: Opening | None = None
    """What every window starts with once there is something to recall."""
    plain: Opening | None = None
    """What it starts with otherwise."""
    tightened: int = 0
    """How often its provider has said in this turn that the window is too long."""

    @property
    def model(self) -> Model:
        return self.scale.model

    def at(self, view: View) -> "Ready":
        """As it is for this view: what is archived can be asked for. A compaction is when that changes: it breaks the
        prefix in any case."""
        block, plain = view.compaction, self.plain or self.opening
        is_far = block is not None and reaches(block) and block.messages_archived >= WORTH_A_TOOL
        opening = self.with_recall if self.with_recall and is_far else plain
        budget = replace(self.budget, tools=opening.for_tools)
        return replace(self, opening=opening, budget=budget, plain=plain)

    def unreaching(self) -> "Ready":
        """Without the tool that recalls, for good: where room is short it is the first to go."""
        return replace(self, with_recall=None)

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
        libraries: Libraries,
    ) -> None:
        self._store = store
        self._clerk = clerk
        self._settings = settings
        self._libraries = libraries
        self._home, self._project = home, project
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

    async def ready(
        self,
        name: str,
        vault: Vault | None,
        choices: Choices = Choices(),  # noqa: B008  frozen
        recall: Runnable | None = None,
    ) -> Ready:
        """`recall` is offered only where something is archived, but always there to be run."""
        provider = self.provider(name)
        model = await provider.model(name)
        scale = await self._scale(provider, model)
        context = self._context(model, choices)
        parameters = self._parameters(model, provider)
        offered = self._offered(model, vault)
        recall = recall if model.tools and self._settings.tools.enabled and context.recall_ratio else None
        offered, kept_back = await self._fitting(scale, model, context, parameters, offered)
        toolbox = self._toolbox([*offered, recall] if recall else offered)
        opening, with_recall = await self._openings(scale, parameters, toolbox.tools, bool(recall))
        is_known = bool(model.window or context.max_prompt_tokens)
        compacts = context.enabled and is_known
        budget = budget_for(model, context, parameters, opening, compacts=compacts)
        if with_recall and with_recall.for_tools - opening.for_tools > budget.room * LARGEST_TOOL:
            with_recall = None
        notes = [note for note in (scale.meter.note, None if is_known else _unknown_window(model)) if note]
        if kept_back:
            notes.append(f"the window is small: the model is not offered {', '.join(kept_back)}")
        if model.fixed_temperature and self._settings.reply.temperature >= 0:
            notes.append(f"{model.name} takes no temperature: reply.temperature is not sent")
        return Ready(
            provider, scale, parameters, toolbox, opening, budget, context, compacts, tuple(notes), with_recall
        )

    async def _fitting(
        self,
        scale: Scale,
        model: Model,
        context: ContextSettings,
        parameters: Parameters,
        offered: list[Runnable],
    ) -> tuple[list[Runnable], list[str]]:
        """The first tools that stay in their share of the room, and the names of the others."""
        if not offered:
            return offered, []
        limit = limit_of(model.window, context.max_prompt_tokens, ASSUMED_WINDOW)
        room = limit - reserve_of(limit, context.reserved_response_tokens, parameters.max_tokens)
        opening = await open_window(scale, parameters, self._system_prompt(), [each.tool for each in offered])
        left = int(room * context.budgets.tools)
        for place, (_, count) in enumerate(opening.tools):
            left -= count.tokens
            if left < 0:
                return offered[:place], [each.tool.name for each in offered[place:]]
        return offered, []

    async def _openings(
        self, scale: Scale, parameters: Parameters, tools: Sequence[Tool], has_recall: bool
    ) -> tuple[Opening, Opening | None]:
        """Without the tool that recalls, and with it."""
        prompt = self._system_prompt()
        if not has_recall:
            return await open_window(scale, parameters, prompt, tools), None
        return (
            await open_window(scale, parameters, prompt, tools[:-1]),
            await open_window(scale, parameters, prompt, tools),
        )

    def _context(self, model: Model, choices: Choices) -> ContextSettings:
        """The closest choice wins: this call's, then the conversation's, the agent's, the model's, the settings'."""
        settings = configuration.for_agent(self._settings, choices.agent, self._home, self._project)
        by_option = settings.context.strategy if settings.origin(STRATEGY) == "option" else None
        by_agent = settings.context.strategy if settings.origin(STRATEGY) != self._settings.origin(STRATEGY) else None
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

    def _toolbox(self, runnables: list[Runnable]) -> Toolbox:
        return Toolbox(runnables, timeout_s=self._settings.tools.timeout_s)

    def _offered(self, model: Model, vault: Vault | None) -> list[Runnable]:
        """What the model may call; tools that write are really withheld unless the user has allowed them."""
        if vault is None or not model.tools or not self._settings.tools.enabled:
            return []
        writing = writing_tools(vault) if self._settings.tools.allow_write else []
        return [*reading_tools(vault, self._libraries.of(vault)), *writing]

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


def budget_for(
    model: Model, context: ContextSettings, parameters: Parameters, opening: Opening, *, compacts: bool
) -> Budget:
    limit = limit_of(model.window, context.max_prompt_tokens, ASSUMED_WINDOW)
    reserve = reserve_of(limit, context.reserved_response_tokens, parameters.max_tokens)
    room, shares = limit - reserve, context.budgets
    return Budget(
        limit,
        reserve,
        # of the room, not of the limit: where the reserve is half of a small window, the next turn would cut again
        low_water=int(room * context.low_water),
        trigger=math.ceil(limit * context.threshold - 1e-9) if compacts else None,
        summary=_summary(room, context),
        recent=context.recent_messages_to_keep,
        least_recent=context.min_recent_messages_to_keep,
        shares=Shares(shares.system, shares.tools, shares.messages),
        instructions=opening.system.tokens,
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
