"""Offering: which tools a model is offered with a message: those of the session, those the message needs, and of many
the ones that bear on it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from recto.settings import ToolSettings
from recto.sources.included import Offered
from recto.sources.pick import Pick
from recto.sources.reading import FIND_EXCERPTS, READ, RESOLVE, reading_tools, writing_tools
from recto.sources.server import ServerConfig
from recto.sources.source import OWN, SourceId
from recto.sources.tools import Runnable
from recto.vault.vault import Vault
from recto.walk.libraries import Libraries
from recto.walk.opening import open_window
from recto.walk.setup import Footing

CORE = (READ, FIND_EXCERPTS, RESOLVE)
"""Never left out because others bear more on a message."""
# Where nothing bears on the message all are offered, as long as they leave this share of the room.
LEAST_LEFT = 0.5
# What a wire format puts around a tool, and more.
FRAME = 120
BEARS_NOT = "always included, but all tools together take more than their share, and it does not bear on the message"


def built_in(
    settings: ToolSettings, vault: Vault | None, libraries: Libraries, config: ServerConfig | None
) -> list[Runnable]:
    """What runs here; tools that write are really withheld unless the user has allowed them."""
    if vault is None:
        return []
    writing = writing_tools(vault) if settings.allow_write else []
    found = [configured(each, config) for each in (*reading_tools(vault, libraries.of(vault)), *writing)]
    return [each for each in found if each.tool.enabled]


def can_call(footing: Footing, settings: ToolSettings) -> bool:
    return bool(footing.model.tools and settings.enabled)


def configured(runnable: Runnable, config: ServerConfig | None) -> Runnable:
    """As the agent's `recto` server says; without a word about it a tool of ours is included, and may run."""
    if config is None:
        return runnable
    said = config.tool(runnable.tool.name)
    tool = replace(
        runnable.tool,
        include=config.include_of(runnable.tool.name),
        enabled=config.enabled and said.enabled,
    )
    return replace(runnable, tool=tool, approval=said.approval or config.approval or runnable.approval)


@dataclass(slots=True)
class Sieve:
    """Of tools that take more than their share: who stays."""

    footing: Footing
    scores: Mapping[SourceId, float]
    """How much `always` tools bear on the message."""
    recent: Collection[str]
    """Names of tools that were called lately."""
    before: Collection[SourceId]
    """What was offered with the message before: it stays until the next compaction."""
    left_out: list[tuple[Offered, str]] = field(default_factory=list)

    def stay(self, offered: Sequence[Offered], tokens: Mapping[SourceId, int]) -> list[Offered]:
        """In their order; nothing relevant: all, as far as the room allows."""
        context, most = self.footing.context, self.footing.room * (1 - LEAST_LEFT)
        total, share = sum(tokens.values()), int(self.footing.room * context.budgets.tools)
        must = [each for each in offered if each.included.mode != "always" or each.included.id in self.before]
        if sum(tokens[each.included.id] for each in must) > most:  # the window has become smaller meanwhile
            must = [each for each in offered if each.included.mode != "always"]
        telling = sorted((each for each in offered if each not in must and self._bears(each)), key=self._rank)
        if total <= share or (total <= most and not telling and not self.before):
            return list(offered)
        core = [each for each in offered if _is_core(each)]
        others = [] if telling or self.before else [each for each in offered if not _is_core(each)]
        kept = _within(must, (*core, *telling, *others), tokens, share)
        why = "the window is small" if others else BEARS_NOT
        self.left_out = [(each, why) for each in offered if each not in kept]
        return [each for each in offered if each in kept]

    def _bears(self, each: Offered) -> bool:
        return self._worth(each) >= self.footing.context.min_score

    def _rank(self, each: Offered) -> float:
        return -self._worth(each)

    def _worth(self, each: Offered) -> float:
        return 1.0 if each.runnable.tool.name in self.recent else self.scores.get(each.included.id, 0.0)

    @property
    def passed(self) -> tuple[Pick, ...]:
        scores = self.scores
        return tuple(
            replace(each.included.pick, because=why, score=scores.get(each.included.id)) for each, why in self.left_out
        )

    @property
    def note(self) -> str:
        names = [each.runnable.tool.name for each, why in self.left_out if why == "the window is small"]
        return f"the window is small: the model is not offered {', '.join(names)}" if names else ""


def _is_core(each: Offered) -> bool:
    return each.included.id.server == OWN and each.included.id.name in CORE


def _within(
    must: Sequence[Offered], may: Sequence[Offered], tokens: Mapping[SourceId, int], share: int
) -> list[Offered]:
    """Those that must stay, and of the others the first that fit beside them."""
    kept = list(must)
    left = share - sum(tokens[each.included.id] for each in must)
    for each in may:
        if each not in kept and tokens[each.included.id] <= left:
            kept.append(each)
            left -= tokens[each.included.id]
    return kept


def size_of(offered: Sequence[Offered]) -> int:
    """More bytes than they are sent as."""
    return sum(len(each.runnable.tool.text.encode()) + FRAME for each in offered)


async def weights(footing: Footing, offered: Sequence[Offered]) -> dict[SourceId, int]:
    """What each tool takes as it is sent."""
    opening = await open_window(footing.scale, footing.parameters, included=[each.included for each in offered])
    return {each.included.id: count.tokens for each, (_, count) in zip(offered, opening.tools, strict=True)}
