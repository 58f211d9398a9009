"""ToolFilter: how tools fit that together take more than their share of the window; built-in tools.

Example: 40 tools take 6,000 tokens, and their share is 5,000. Those that matter least are sent in a short form until
all of them fit: 25 are short, none is missing. With a share of 2,000 all 40 are short and take 3,000: the least
relevant are left out. Until the next compaction each stays in its form, so that requests begin with the same bytes.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from recto.base.text import counted
from recto.settings.settings import ToolSettings
from recto.sources.selection import OfferedTool
from recto.sources.server_config import ServerConfig
from recto.sources.source import BUILT_IN_SERVER, Pick, SourceId
from recto.sources.tools import LocalTool, short_form
from recto.sources.vault_tools import FIND_EXCERPTS, READ_DOCUMENT, RESOLVE_WIKILINK, reading_tools, writing_tools
from recto.turn.context import ResolvedModel
from recto.turn.preamble import build_preamble
from recto.turn.session import NO_ROOM, LastTools
from recto.vault.open_vaults import OpenVaults
from recto.vault.vault import Vault

CORE = (READ_DOCUMENT, FIND_EXCERPTS, RESOLVE_WIKILINK)
"""Never left out in favour of other tools."""
# What tools leave of the room, also those that were sent before, and all of them where none bears on the message.
LEAST_LEFT = 0.5
# Providers refuse more; OpenAI documents this number.
MOST_TOOLS = 128
# At least what a wire format puts around a tool, in bytes.
FRAME = 120
# How many tools a note names.
NAMED = 8
LEFT_OUT = f"{NO_ROOM}, and it bears less on the message than the others"
SHORT = f"in its short form, since {NO_ROOM}"


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


class SizedTool(Struct):
    """A tool on offer, in both of its forms."""

    whole: OfferedTool
    short: OfferedTool
    tokens: int
    short_tokens: int
    is_short: bool = False
    was_sent: bool = False
    """It was sent with the last request, in this form: it stays so until the next compaction."""

    @property
    def offered(self) -> OfferedTool:
        return self.short if self.is_short else self.whole

    @property
    def size(self) -> int:
        return self.short_tokens if self.is_short else self.tokens


class ToolFilter(Struct):
    """Fits tools that take more than their share: shortens them, then leaves out those that matter least."""

    resolved: ResolvedModel
    scores: Mapping[SourceId, float]
    """How well `always` tools fit the message."""
    recent: Collection[str]
    """Names of tools that were called recently."""
    last: LastTools
    tools: list[SizedTool] = field(default_factory=list)
    """What is offered."""
    left_out: list[SizedTool] = field(default_factory=list)

    def fit(self, tools: Sequence[SizedTool]) -> list[OfferedTool]:
        """The tools that are offered, in their order. What the last request had stays as it was, so that the prefix
        stays; it may take half of the room."""
        share, most = self._limits()
        if sum(each.size for each in tools if each.was_sent) > most:
            for each in tools:  # another model, with a smaller window: nothing of the prefix is left
                each.was_sent = each.is_short = False
        fresh = sorted((each for each in tools if not each.was_sent), key=self._worth, reverse=True)
        total, number = sum(each.size for each in tools), len(tools)
        for each in reversed(fresh):
            if total > share and each.short_tokens < each.tokens:
                each.is_short, total = True, total - each.tokens + each.short_tokens
        limit, gone = self._limit(tools), list[SizedTool]()
        for each in reversed(fresh):
            if (total > limit(each) or number > MOST_TOOLS) and not _is_required(each.whole):
                gone.append(each)
                total, number = total - each.size, number - 1
        for each in reversed(gone):  # there may be room again, now that a large one is gone
            if total + each.size > limit(each) or number >= MOST_TOOLS:
                self.left_out.append(each)
            else:
                total, number = total + each.size, number + 1
        missing = {each.whole.selection.id for each in self.left_out}
        self.tools = [each for each in tools if each.whole.selection.id not in missing]
        return [each.offered for each in self.tools]

    def _limits(self) -> tuple[int, int]:
        room = self.resolved.room
        return int(room * self.resolved.settings.budgets.tools), int(room * (1 - LEAST_LEFT))

    def _limit(self, tools: Sequence[SizedTool]) -> Callable[[SizedTool], int]:
        """What all tools may take with a given one among them. One that bears on the message must not miss its turn
        because others came first; and where none bears on it, none is worth less than another."""
        share, most = self._limits()
        is_later = any(each.was_sent for each in tools)
        is_quiet = all(each.whole.selection.mode == "always" and not self._bears(each) for each in tools)

        def limit(each: SizedTool) -> int:
            is_needed = each.whole.selection.mode == "agent" or (is_later and self._bears(each))
            return most if is_needed or (is_quiet and not is_later) else share

        return limit

    def _bears(self, each: SizedTool) -> bool:
        return self._score(each) >= self.resolved.settings.min_score

    def _worth(self, each: SizedTool) -> tuple[bool, float]:
        return _is_required(each.whole), self._score(each)

    def _score(self, each: SizedTool) -> float:
        selection = each.whole.selection
        is_recent = each.whole.runnable.tool.name in self.recent
        return 1.0 if is_recent else selection.score or self.scores.get(selection.id, 0.0)

    @property
    def passed(self) -> tuple[Pick, ...]:
        return tuple(
            replace(each.whole.selection.pick, because=LEFT_OUT, score=self._score(each)) for each in self.left_out
        )

    @property
    def note(self) -> str:
        """What has changed about the tools since the last request: those that are shorter, those that are missing."""
        short = {each.whole.selection.id for each in self.tools if each.is_short}
        if short == self.last.short and {each.whole.selection.id for each in self.left_out} == self.last.left_out:
            return ""
        names = [each.whole.runnable.tool.name for each in self.left_out]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        told = (
            f"{counted(len(short), 'tool')} offered in a shorter form" if short else "",
            f"not offered: {', '.join(names[:NAMED])}{more}" if names else "",
        )
        return f"{NO_ROOM} (context.budgets.tools): {'; '.join(filter(None, told)) or 'all of them are offered again'}"


def _is_required(each: OfferedTool) -> bool:
    """Never left out."""
    is_core = each.selection.id.server == BUILT_IN_SERVER and each.selection.id.name in CORE
    return is_core or each.selection.mode == "manual"


def short_offer(each: OfferedTool) -> OfferedTool:
    tool = short_form(each.runnable.tool)
    return replace(each, selection=replace(each.selection, source=tool, because=f"{each.selection.because}; {SHORT}"))


async def sized_tools(
    resolved: ResolvedModel, offered: Sequence[OfferedTool], sent: Mapping[SourceId, str]
) -> list[SizedTool]:
    """Both forms of each, counted; in the form in which it was `sent`, by the hash of its text."""
    short = [short_offer(each) for each in offered]
    tokens, short_tokens = await tool_tokens(resolved, offered), await tool_tokens(resolved, short)
    found = []
    for each, other in zip(offered, short, strict=True):
        id, hash = each.selection.id, sent.get(each.selection.id)
        sized = SizedTool(each, other, tokens[id], short_tokens[id])
        sized.is_short = hash == other.selection.source.sha256 != each.selection.source.sha256
        sized.was_sent = sized.is_short or hash == each.selection.source.sha256
        found.append(sized)
    return found


def size_of(offered: Sequence[OfferedTool]) -> int:
    """An upper bound of the bytes they are sent as."""
    return sum(len(each.runnable.tool.text.encode()) + FRAME for each in offered)


async def tool_tokens(resolved: ResolvedModel, offered: Sequence[OfferedTool]) -> dict[SourceId, int]:
    """Tokens of each tool as it is sent."""
    preamble = await build_preamble(
        resolved.token_cache, resolved.parameters, tools=[each.selection for each in offered]
    )
    return {each.selection.id: count.tokens for each, (_, count) in zip(offered, preamble.tools, strict=True)}
