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
# More a provider refuses: OpenAI's documents name this number.
MOST_TOOLS = 128
# What a wire format puts around a tool, and more.
FRAME = 120
# So many are named in a note.
NAMED = 8
SMALL = "the window is small"
FULL = "chosen, but the tools that were chosen before take all of their share until the next compaction"
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
        """In their order. Nothing relevant: all, as far as the room allows."""
        total, share = sum(tokens.values()), int(self.footing.room * self.footing.context.budgets.tools)
        most = int(self.footing.room * (1 - LEAST_LEFT))
        always = [each for each in offered if each.included.mode == "always"]
        telling = sorted((each for each in always if self._bears(each)), key=self._rank)
        is_quiet = not telling and not self.before and len(always) == len(offered)
        if len(offered) <= MOST_TOOLS and (total <= share or (total <= most and is_quiet)):
            return list(offered)
        kept = [each for each in offered if each.included.mode == "manual" or _is_core(each)]
        chosen = [each for each in offered if each.included.mode == "agent"]
        _add(kept, sorted((each for each in chosen if each.lasts), key=_by_score), tokens, most)
        _add(kept, [each for each in always if each.included.id in self.before], tokens, most)
        _add(kept, [each for each in chosen if not each.lasts], tokens, share)
        _add(kept, telling if telling or self.before else always, tokens, share)
        small = not telling and not self.before
        self.left_out = [(each, _why(each, small)) for each in offered if each not in kept]
        return [each for each in offered if each in kept]

    def _bears(self, each: Offered) -> bool:
        return self._worth(each) >= self.footing.context.min_score

    def _rank(self, each: Offered) -> float:
        return -self._worth(each)

    def _worth(self, each: Offered) -> float:
        return 1.0 if each.runnable.tool.name in self.recent else self.scores.get(each.included.id, 0.0)

    @property
    def passed(self) -> tuple[Pick, ...]:
        return tuple(
            replace(each.included.pick, because=why, score=each.included.score or self.scores.get(each.included.id))
            for each, why in self.left_out
        )

    @property
    def note(self) -> str:
        """What the user should know: tools that might be needed are missing for want of room."""
        names = [each.runnable.tool.name for each, why in self.left_out if why == SMALL]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        return f"the window is small: the model is not offered {', '.join(names[:NAMED])}{more}" if names else ""


def _is_core(each: Offered) -> bool:
    return each.included.id.server == OWN and each.included.id.name in CORE


def _add(kept: list[Offered], more: Sequence[Offered], tokens: Mapping[SourceId, int], most: int) -> None:
    """The first that fit beside those that are kept already."""
    left = most - sum(tokens[each.included.id] for each in kept)
    for each in more:
        if each not in kept and tokens[each.included.id] <= left and len(kept) < MOST_TOOLS:
            kept.append(each)
            left -= tokens[each.included.id]


def _by_score(each: Offered) -> float:
    return -(each.included.score or 0.0)


def _why(each: Offered, small: bool) -> str:
    if each.included.mode == "agent":
        return FULL
    return SMALL if small else BEARS_NOT


def size_of(offered: Sequence[Offered]) -> int:
    """More bytes than they are sent as."""
    return sum(len(each.runnable.tool.text.encode()) + FRAME for each in offered)


async def weights(footing: Footing, offered: Sequence[Offered]) -> dict[SourceId, int]:
    """What each tool takes as it is sent."""
    opening = await open_window(footing.scale, footing.parameters, included=[each.included for each in offered])
    return {each.included.id: count.tokens for each, (_, count) in zip(offered, opening.tools, strict=True)}
