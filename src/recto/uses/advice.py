"""Advice: what the numbers of a source suggest: another include mode, a better description, or nothing.

Few numbers say nothing, and a rule seldom leaves words in a reply: where it shows no signs, that is said of it.
"""

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from recto.agents.agent import DEFAULT
from recto.sources.source import Include, SourceId
from recto.uses.stat import Stat, Total

LEAST = 10
"""Of fewer replies nothing is said at all."""
ENOUGH = 20
"""So many without a sign of use are no chance any more."""
ENOUGH_OF_A_RULE = 50
"""Of rules more are wanted: most of what they ask for leaves no words in a reply."""
RARELY = 0.02
"""Used in fewer than this share of replies is as good as never."""
NEARLY_ALWAYS = 0.8
MOST = 0.5
"""Of the conversations it is added to; and of its replies that use it."""
CONVERSATIONS = 5
"""In how many it must have been added before that is a habit."""
# In the languages that words are told apart in elsewhere, too.
_FORBIDS = re.compile(
    r"\b(?:never|avoid|refrain|(?:do|does|must|may|should|shall|can|will)\s*not|[a-z]+n['’]t|"
    r"nie|niemals|nicht|keine?[mnrs]?|jamais|nunca)\b",
    re.IGNORECASE,
)
DESCRIBE = "describe better what it is for, raise context.min_score, or make it manual"


@dataclass(frozen=True, slots=True)
class Advice:
    id: SourceId
    agent: str
    because: str
    """What was seen and what to do, as one sentence."""
    mode: Include
    """The include mode that does it."""

    def command(self, *, naming: bool = False) -> str:
        """What to type; the agent is named unless it is the one that is there without any file."""
        whose = f" --agent {shlex.quote(self.agent)}" if naming or self.agent != DEFAULT else ""
        return f"recto sources mode {shlex.quote(str(self.id))} {self.mode}{whose}"


def advise(
    stats: Sequence[Stat], totals: Sequence[Total], text_of: Callable[[Stat], str] = lambda stat: ""
) -> list[Advice]:
    """One for each source that calls for it; what took the most tokens first. `text_of` gives the text of a rule, as
    far as it is known."""
    by_agent = {total.agent: total for total in totals}
    kept = [stat for stat in stats if not (stat.id.kind == "rule" and _is_unused(stat) and forbids(text_of(stat)))]
    ordered = sorted(kept, key=lambda stat: (-stat.tokens, stat.id))
    found = (_of(stat, by_agent.get(stat.agent, Total(stat.agent, 0, 0))) for stat in ordered)
    return [advice for advice in found if advice]


def forbids(text: str) -> bool:
    """Whether a rule says what not to do: who keeps to it shows nothing of it."""
    return bool(_FORBIDS.search(text))


def _of(stat: Stat, total: Total) -> Advice | None:
    if stat.looked < LEAST:
        return None
    return next((advice for check in _CHECKS if (advice := check(stat, total))), None)


def _idle(stat: Stat, _: Total) -> Advice | None:
    """Always in, and of no use that could be seen."""
    if stat.mode != "always" or not _is_unused(stat):
        return None
    because = f"took {stat.tokens:,} tokens in {stat.replies:,} replies and {_unseen(stat)}"
    if stat.id.kind == "rule":
        return _advice(stat, f"{because}; is it meant for every message, or would agent do for it?", "agent")
    return _advice(
        stat, f"{because}; make it manual or agent, so that it comes with the messages that need it", "agent"
    )


def _in_vain(stat: Stat, _: Total) -> Advice | None:
    """Chosen again and again, and never used."""
    if stat.mode != "agent" or stat.by_agent < ENOUGH or not _is_unused(stat):
        return None
    because = f"was chosen for {stat.by_agent:,} replies, took {stat.tokens:,} tokens and {_unseen(stat)}"
    return _advice(stat, f"{because}; {DESCRIBE}", "manual")


def _habit(stat: Stat, total: Total) -> Advice | None:
    """Added by hand to most conversations, and used there."""
    is_habit = stat.added >= CONVERSATIONS and stat.added >= MOST * total.conversations
    if stat.mode != "manual" or not is_habit or stat.used < MOST * stat.looked:
        return None
    because = f"was added by hand in {stat.added:,} of {total.conversations:,} conversations"
    return _advice(stat, f"{because} and used in {stat.used:,} of {stat.looked:,} replies; make it always", "always")


def _steady(stat: Stat, total: Total) -> Advice | None:
    """Chosen anew for nearly every message."""
    if stat.mode != "agent" or total.replies < ENOUGH or stat.used < NEARLY_ALWAYS * total.replies:
        return None
    because = f"was chosen and used in {stat.used:,} of {total.replies:,} replies; make it always"
    return _advice(stat, f"{because}, so that it stays in the part of the window that providers keep", "always")


_CHECKS: tuple[Callable[[Stat, Total], Advice | None], ...] = (_idle, _in_vain, _habit, _steady)


def _is_unused(stat: Stat) -> bool:
    enough = ENOUGH_OF_A_RULE if stat.id.kind == "rule" and stat.mode == "always" else ENOUGH
    return stat.looked >= enough and stat.used <= RARELY * stat.looked


def _unseen(stat: Stat) -> str:
    if stat.used:
        return f"was used in {stat.used:,} of them"
    signs = {"tool": "was called in none", "rule": "shows no signs of use, which rules often do not"}
    return signs.get(stat.id.kind, "shows signs of use in none")


def _advice(stat: Stat, because: str, mode: Include) -> Advice:
    return Advice(stat.id, stat.agent, f"{stat.id} {because}{'' if because.endswith('?') else '.'}", mode)
