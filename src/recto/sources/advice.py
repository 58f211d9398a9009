"""Advice from the use of a source over many replies: another include mode, or a better description."""

import shlex
from collections.abc import Callable, Sequence
from typing import Literal, get_args

from msgspec import Struct

from recto.sentences.words import word_class, words_in
from recto.sources.source import Include, Mode, SourceId

Sign = Literal["called", "quoted", "paraphrased", ""]
SIGNS: tuple[Sign, ...] = get_args(Sign)
"""Strongest first. Empty: the reply was checked and shows no use."""


class SourceStats(Struct, frozen=True):
    """Counts over replies. A reply answers one message of the user, however many tool rounds it took."""

    id: SourceId
    agent: str
    mode: Mode
    """The mode of its last inclusion."""
    replies: int
    """Replies whose window included it."""
    always: int = 0
    manual: int = 0
    by_agent: int = 0
    """Replies by mode, in these three fields."""
    tokens: int = 0
    """Summed over all requests, including tool rounds."""
    looked: int = 0
    """Replies that were checked for signs of use."""
    called: int = 0
    quoted: int = 0
    paraphrased: int = 0
    conversations: int = 0
    added: int = 0
    """Conversations to which the user added it."""
    last_in: str = ""
    last_used: str = ""

    @property
    def used(self) -> int:
        return self.called + self.quoted + self.paraphrased


# No advice below this many replies.
MIN_REPLIES = 10
# Without a sign of use in this many replies a source counts as unused; rules need more, since few leave words in a
# reply.
MIN_UNUSED_REPLIES, MIN_UNUSED_RULE_REPLIES = 20, 50
# Used in at most this share of replies counts as unused.
MAX_UNUSED_SHARE = 0.02


class Advice(Struct, frozen=True):
    id: SourceId
    agent: str
    because: str
    """The finding and the remedy, as one sentence."""
    mode: Include

    def command(self, *, with_agent: bool) -> str:
        agent = f" --agent {shlex.quote(self.agent)}" if with_agent else ""
        return f"recto sources mode {shlex.quote(str(self.id))} {self.mode}{agent}"


def advise(stats: Sequence[SourceStats], text_of: Callable[[SourceStats], str] = lambda stat: "") -> list[Advice]:
    """Advice for each source that needs it, most tokens first.

    `text_of` returns the text of a rule, if known.
    """
    found = []
    for stat in sorted(stats, key=lambda stat: (-stat.tokens, stat.id)):
        is_silent = stat.id.kind == "rule" and _is_unused(stat) and forbids(text_of(stat))
        if stat.looked >= MIN_REPLIES and not is_silent and (advice := _check(stat)):
            because, mode = advice
            found.append(Advice(stat.id, stat.agent, f"{stat.id} {because}", mode))
    return found


def forbids(text: str) -> bool:
    """True if a rule forbids something: a reply that follows it shows no sign of that."""
    return word_class("negations").is_in(words_in(text), text)


def _check(stat: SourceStats) -> tuple[str, Include] | None:
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
