"""Advice: what the use of a source over many replies suggests: another include mode, or a better description."""

import shlex
from collections.abc import Callable, Sequence
from typing import Literal, get_args

from msgspec import Struct

from recto.sentences.words import word_class, words_in
from recto.sources.source import Include, Mode, SourceId

Sign = Literal["called", "quoted", "paraphrased", ""]
SIGNS: tuple[Sign, ...] = get_args(Sign)
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


# With fewer replies there is no advice at all.
MIN_REPLIES = 10
# This many replies without a sign of use are no coincidence; of rules, most of which leave no words in a reply, more.
MIN_UNUSED_REPLIES, MIN_UNUSED_RULE_REPLIES = 20, 50
# Used in at most this share of replies counts as unused.
MAX_UNUSED_SHARE = 0.02
STEADY_SHARE = 0.8
# Of the conversations to which it is added, and of the replies that use it.
HABIT_SHARE = 0.5
MIN_HABIT_CONVERSATIONS = 5


class Advice(Struct, frozen=True):
    id: SourceId
    agent: str
    because: str
    """The finding and what to do about it, as one sentence."""
    mode: Include

    def command(self, *, with_agent: bool) -> str:
        agent = f" --agent {shlex.quote(self.agent)}" if with_agent else ""
        return f"recto sources mode {shlex.quote(str(self.id))} {self.mode}{agent}"


def advise(
    stats: Sequence[SourceStats], totals: Sequence[AgentTotals], text_of: Callable[[SourceStats], str] = lambda stat: ""
) -> list[Advice]:
    """Advice for each source that needs it, the one with the most tokens first.

    `text_of` returns the text of a rule, as far as it is known.
    """
    by_agent = {total.agent: total for total in totals}
    found = []
    for stat in sorted(stats, key=lambda stat: (-stat.tokens, stat.id)):
        is_silent = stat.id.kind == "rule" and _is_unused(stat) and forbids(text_of(stat))
        total = by_agent.get(stat.agent, AgentTotals(stat.agent, 0, 0))
        if stat.looked >= MIN_REPLIES and not is_silent and (advice := _check(stat, total)):
            because, mode = advice
            found.append(Advice(stat.id, stat.agent, f"{stat.id} {because}", mode))
    return found


def forbids(text: str) -> bool:
    """Whether a rule forbids something: a reply that follows such a rule shows no sign of it."""
    return word_class("negations").is_in(words_in(text), text)


def _check(stat: SourceStats, total: AgentTotals) -> tuple[str, Include] | None:
    took = f"took {stat.tokens:,} tokens"
    is_unused = _is_unused(stat)
    if stat.mode == "always" and is_unused:
        found = f"{took} in {stat.replies:,} replies and {_use_text(stat)}"
        if stat.id.kind == "rule":
            return f"{found}; does every message need it, or is agent enough?", "agent"
        return f"{found}; make it manual or agent, so that it comes with the messages that need it.", "agent"
    if stat.mode == "agent" and is_unused and stat.by_agent >= MIN_UNUSED_REPLIES:
        found = f"was chosen for {stat.by_agent:,} replies, {took} and {_use_text(stat)}"
        return f"{found}; describe better what it is for, raise context.min_score, or make it manual.", "manual"
    is_habit = stat.added >= MIN_HABIT_CONVERSATIONS and stat.added >= HABIT_SHARE * total.conversations
    if stat.mode == "manual" and is_habit and stat.used >= HABIT_SHARE * stat.looked:
        found = f"was added by hand in {stat.added:,} of {total.conversations:,} conversations"
        return f"{found} and used in {stat.used:,} of {stat.looked:,} replies; make it always.", "always"
    if stat.mode == "agent" and total.replies >= MIN_UNUSED_REPLIES and stat.used >= STEADY_SHARE * total.replies:
        found = f"was chosen and used in {stat.used:,} of {total.replies:,} replies; make it always"
        return f"{found}, so that it stays in the part of the window that providers cache.", "always"
    return None


def _is_unused(stat: SourceStats) -> bool:
    is_standing_rule = stat.id.kind == "rule" and stat.mode == "always"
    enough = MIN_UNUSED_RULE_REPLIES if is_standing_rule else MIN_UNUSED_REPLIES
    return stat.looked >= enough and stat.used <= MAX_UNUSED_SHARE * stat.looked


def _use_text(stat: SourceStats) -> str:
    if stat.used:
        return f"was used in {stat.used:,} of them"
    texts = {"tool": "was called in none", "rule": "shows no signs of use (rules often show none)"}
    return texts.get(stat.id.kind, "shows signs of use in none")
