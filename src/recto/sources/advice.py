"""Advice: what the use of a source over many replies suggests: another include mode, or a better description."""

import re
import shlex
from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from recto.sources.source import Include, Mode, SourceId

Sign = Literal["called", "quoted", "paraphrased", ""]
SIGNS: tuple[Sign, ...] = ("called", "quoted", "paraphrased", "")
"""The strongest first. Empty means that the reply was checked and shows no use."""


class SourceStats(Struct, frozen=True):
    """Counts over replies. A reply answers one message of the user, however many tool rounds it took."""

    id: SourceId
    agent: str
    mode: Mode
    """How it was included the last time."""
    replies: int
    """Replies whose window included it."""
    always: int = 0
    manual: int = 0
    by_agent: int = 0
    """These three are the replies by how it was included."""
    tokens: int = 0
    """Over all requests, including those of tool rounds."""
    looked: int = 0
    """Replies that were checked for signs of use."""
    called: int = 0
    quoted: int = 0
    paraphrased: int = 0
    conversations: int = 0
    added: int = 0
    """Conversations to which it was added by hand."""
    last_in: str = ""
    last_used: str = ""

    @property
    def used(self) -> int:
        return self.called + self.quoted + self.paraphrased


class AgentTotals(Struct, frozen=True):
    """Totals of an agent, to compare the numbers of a source with."""

    agent: str
    replies: int
    conversations: int


MIN_REPLIES = 10
"""With fewer replies there is no advice at all."""
MIN_UNUSED_REPLIES = 20
"""This many replies without a sign of use are no coincidence."""
MIN_UNUSED_RULE_REPLIES = 50
"""The same for rules, most of which leave no words in a reply."""
MAX_UNUSED_SHARE = 0.02
"""Used in at most this share of replies counts as unused."""
STEADY_SHARE = 0.8
HABIT_SHARE = 0.5
"""Of the conversations to which it is added, and of the replies that use it."""
MIN_HABIT_CONVERSATIONS = 5
# Negations in the languages of the other word lists.
_FORBIDS = re.compile(
    r"\b(?:never|avoid|refrain|(?:do|does|must|may|should|shall|can|will)\s*not|[a-z]+n['’]t|"
    r"nie|niemals|nicht|keine?[mnrs]?|jamais|nunca)\b",
    re.IGNORECASE,
)
IMPROVE_DESCRIPTION = "describe better what it is for, raise context.min_score, or make it manual"


class Advice(Struct, frozen=True):
    id: SourceId
    agent: str
    because: str
    """The finding and what to do about it, as one sentence."""
    mode: Include
    """The suggested include mode."""

    def command(self, *, with_agent: bool) -> str:
        """The command that follows the advice."""
        agent = f" --agent {shlex.quote(self.agent)}" if with_agent else ""
        return f"recto sources mode {shlex.quote(str(self.id))} {self.mode}{agent}"


def advise(
    stats: Sequence[SourceStats], totals: Sequence[AgentTotals], text_of: Callable[[SourceStats], str] = lambda stat: ""
) -> list[Advice]:
    """Advice for each source that needs it, the one with the most tokens first.

    `text_of` returns the text of a rule, as far as it is known.
    """
    by_agent = {total.agent: total for total in totals}
    relevant = [stat for stat in stats if not (stat.id.kind == "rule" and _is_unused(stat) and forbids(text_of(stat)))]
    ordered = sorted(relevant, key=lambda stat: (-stat.tokens, stat.id))
    found = (_check(stat, by_agent.get(stat.agent, AgentTotals(stat.agent, 0, 0))) for stat in ordered)
    return [advice for advice in found if advice]


def forbids(text: str) -> bool:
    """Whether a rule forbids something: a reply that follows such a rule shows no sign of it."""
    return bool(_FORBIDS.search(text))


def _check(stat: SourceStats, total: AgentTotals) -> Advice | None:
    if stat.looked < MIN_REPLIES:
        return None
    return next((advice for check in _CHECKS if (advice := check(stat, total))), None)


def _always_but_unused(stat: SourceStats, _: AgentTotals) -> Advice | None:
    if stat.mode != "always" or not _is_unused(stat):
        return None
    because = f"took {stat.tokens:,} tokens in {stat.replies:,} replies and {_use_text(stat)}"
    if stat.id.kind == "rule":
        return _advice(stat, f"{because}; does every message need it, or is agent enough?", "agent")
    return _advice(
        stat, f"{because}; make it manual or agent, so that it comes with the messages that need it", "agent"
    )


def _chosen_but_unused(stat: SourceStats, _: AgentTotals) -> Advice | None:
    if stat.mode != "agent" or stat.by_agent < MIN_UNUSED_REPLIES or not _is_unused(stat):
        return None
    because = f"was chosen for {stat.by_agent:,} replies, took {stat.tokens:,} tokens and {_use_text(stat)}"
    return _advice(stat, f"{because}; {IMPROVE_DESCRIPTION}", "manual")


def _often_added(stat: SourceStats, total: AgentTotals) -> Advice | None:
    """Added by hand to most conversations, and used there."""
    is_habit = stat.added >= MIN_HABIT_CONVERSATIONS and stat.added >= HABIT_SHARE * total.conversations
    if stat.mode != "manual" or not is_habit or stat.used < HABIT_SHARE * stat.looked:
        return None
    because = f"was added by hand in {stat.added:,} of {total.conversations:,} conversations"
    return _advice(stat, f"{because} and used in {stat.used:,} of {stat.looked:,} replies; make it always", "always")


def _nearly_always_chosen(stat: SourceStats, total: AgentTotals) -> Advice | None:
    if stat.mode != "agent" or total.replies < MIN_UNUSED_REPLIES or stat.used < STEADY_SHARE * total.replies:
        return None
    because = f"was chosen and used in {stat.used:,} of {total.replies:,} replies; make it always"
    return _advice(stat, f"{because}, so that it stays in the part of the window that providers cache", "always")


_CHECKS: tuple[Callable[[SourceStats, AgentTotals], Advice | None], ...] = (
    _always_but_unused,
    _chosen_but_unused,
    _often_added,
    _nearly_always_chosen,
)


def _is_unused(stat: SourceStats) -> bool:
    is_standing_rule = stat.id.kind == "rule" and stat.mode == "always"
    enough = MIN_UNUSED_RULE_REPLIES if is_standing_rule else MIN_UNUSED_REPLIES
    return stat.looked >= enough and stat.used <= MAX_UNUSED_SHARE * stat.looked


def _use_text(stat: SourceStats) -> str:
    if stat.used:
        return f"was used in {stat.used:,} of them"
    texts = {"tool": "was called in none", "rule": "shows no signs of use (rules often show none)"}
    return texts.get(stat.id.kind, "shows signs of use in none")


def _advice(stat: SourceStats, because: str, mode: Include) -> Advice:
    return Advice(stat.id, stat.agent, f"{stat.id} {because}{'' if because.endswith('?') else '.'}", mode)
