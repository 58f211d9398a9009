"""ToolFilter: which tools stay when all of them together take more than their share of the window; built-in tools."""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from recto.settings import ToolSettings
from recto.sources.selection import OfferedTool
from recto.sources.server_config import ServerConfig
from recto.sources.source import BUILT_IN_SERVER, Pick, SourceId
from recto.sources.tools import LocalTool
from recto.sources.vault_tools import FIND_EXCERPTS, READ_DOCUMENT, RESOLVE_WIKILINK, reading_tools, writing_tools
from recto.turn.context import ResolvedModel
from recto.turn.preamble import build_preamble
from recto.vault.open_vaults import OpenVaults
from recto.vault.vault import Vault

CORE = (READ_DOCUMENT, FIND_EXCERPTS, RESOLVE_WIKILINK)
"""Never left out in favour of other tools."""
# If no tool fits the message, all are offered as long as they leave this share of the room.
LEAST_LEFT = 0.5
# Providers refuse more; OpenAI documents this number.
MOST_TOOLS = 128
# At least what a wire format puts around a tool, in bytes.
FRAME = 120
# How many tools a note names.
NAMED = 8
SMALL = "the window is small"
FULL = "chosen, but the tools that were chosen before take all of their share until the next compaction"
BEARS_NOT = "always included, but all tools together take more than their share, and it does not bear on the message"


def built_in_tools(
    settings: ToolSettings, vault: Vault | None, vaults: OpenVaults, config: ServerConfig | None
) -> list[LocalTool]:
    """The vault's tools; those that write only where the user has allowed them."""
    if vault is None:
        return []
    writing = writing_tools(vault) if settings.allow_write else []
    found = [configured_tool(each, config) for each in (*reading_tools(vault, vaults.search(vault)), *writing)]
    return [each for each in found if each.tool.enabled]


def can_call(resolved: ResolvedModel, settings: ToolSettings) -> bool:
    """Whether tools of ours can be offered."""
    return bool(resolved.model.tools and settings.enabled and resolved.runs_tools)


def configured_tool(runnable: LocalTool, config: ServerConfig | None) -> LocalTool:
    """The tool as the agent's `recto` server configures it; by default it is included and may run."""
    if config is None:
        return runnable
    said = config.tool(runnable.tool.name)
    tool = replace(
        runnable.tool,
        include=config.include_of(runnable.tool.name),
        enabled=config.enabled and said.enabled,
    )
    return replace(runnable, tool=tool, approval=said.approval or config.approval or runnable.approval)


class ToolFilter(Struct):
    """Decides which tools stay when they take more than their share."""

    resolved: ResolvedModel
    scores: Mapping[SourceId, float]
    """How well `always` tools fit the message."""
    recent: Collection[str]
    """Names of tools that were called recently."""
    before: Collection[SourceId]
    """What was offered with the last message: it stays until the next compaction."""
    left_out: list[tuple[OfferedTool, str]] = field(default_factory=list)

    def stay(self, offered: Sequence[OfferedTool], tokens: Mapping[SourceId, int]) -> list[OfferedTool]:
        """The tools that stay, in their order; if none fits the message, all that the room allows."""
        total, share = sum(tokens.values()), int(self.resolved.room * self.resolved.settings.budgets.tools)
        most = int(self.resolved.room * (1 - LEAST_LEFT))
        always = [each for each in offered if each.selection.mode == "always"]
        telling = sorted((each for each in always if self._bears(each)), key=self._rank)
        is_quiet = not telling and not self.before and len(always) == len(offered)
        if len(offered) <= MOST_TOOLS and (total <= share or (total <= most and is_quiet)):
            return list(offered)
        kept = [each for each in offered if each.selection.mode == "manual" or _is_core(each)]
        chosen = [each for each in offered if each.selection.mode == "agent"]
        _add(kept, sorted((each for each in chosen if each.lasts), key=_by_score), tokens, most)
        _add(kept, [each for each in always if each.selection.id in self.before], tokens, most)
        _add(kept, [each for each in chosen if not each.lasts], tokens, share)
        _add(kept, telling if telling or self.before else always, tokens, share)
        small = not telling and not self.before
        self.left_out = [(each, _why(each, small)) for each in offered if each not in kept]
        return [each for each in offered if each in kept]

    def _bears(self, each: OfferedTool) -> bool:
        return self._worth(each) >= self.resolved.settings.min_score

    def _rank(self, each: OfferedTool) -> float:
        return -self._worth(each)

    def _worth(self, each: OfferedTool) -> float:
        return 1.0 if each.runnable.tool.name in self.recent else self.scores.get(each.selection.id, 0.0)

    @property
    def passed(self) -> tuple[Pick, ...]:
        return tuple(
            replace(each.selection.pick, because=why, score=each.selection.score or self.scores.get(each.selection.id))
            for each, why in self.left_out
        )

    @property
    def note(self) -> str:
        """Says which tools are missing because the window is small."""
        names = [each.runnable.tool.name for each, why in self.left_out if why == SMALL]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        return f"the window is small: the model is not offered {', '.join(names[:NAMED])}{more}" if names else ""


def _is_core(each: OfferedTool) -> bool:
    return each.selection.id.server == BUILT_IN_SERVER and each.selection.id.name in CORE


def _add(kept: list[OfferedTool], more: Sequence[OfferedTool], tokens: Mapping[SourceId, int], most: int) -> None:
    """Adds tools in order while they fit."""
    left = most - sum(tokens[each.selection.id] for each in kept)
    for each in more:
        if each not in kept and tokens[each.selection.id] <= left and len(kept) < MOST_TOOLS:
            kept.append(each)
            left -= tokens[each.selection.id]


def _by_score(each: OfferedTool) -> float:
    return -(each.selection.score or 0.0)


def _why(each: OfferedTool, small: bool) -> str:
    if each.selection.mode == "agent":
        return FULL
    return SMALL if small else BEARS_NOT


def size_of(offered: Sequence[OfferedTool]) -> int:
    """An upper bound of the bytes they are sent as."""
    return sum(len(each.runnable.tool.text.encode()) + FRAME for each in offered)


async def tool_tokens(resolved: ResolvedModel, offered: Sequence[OfferedTool]) -> dict[SourceId, int]:
    """Tokens of each tool as it is sent."""
    preamble = await build_preamble(
        resolved.token_cache, resolved.parameters, tools=[each.selection for each in offered]
    )
    return {each.selection.id: count.tokens for each, (_, count) in zip(offered, preamble.tools, strict=True)}
