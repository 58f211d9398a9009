"""Which strategy and settings a conversation follows, and how that is said."""

from typing import TYPE_CHECKING

from recto.agents.agents import apply
from recto.errors import RectoError
from recto.settings import ContextSettings

if TYPE_CHECKING:
    from recto.desk import Desk
    from recto.talk import Talk
    from recto.window.plan import Plan

FOLLOWS_SETTINGS = "default"
"""What is written in place of a name to follow agent, model and settings again."""


def choose(talk: "Talk", name: str) -> None:
    talk.use_strategy(None if name == FOLLOWS_SETTINGS else name)


def in_force(desk: "Desk", talk: "Talk", call: str | None = None) -> str | None:
    """The strategy of the next message; None where the model cannot be had, which may bring one of its own."""
    try:
        if talk.id is None:
            return talk.window(strategy=call).strategy
        return desk.run(desk.engine.ready(talk.standing, call)).strategy
    except RectoError:
        return None


def in_words(chosen: str | None, used: str | None) -> str:
    if chosen is None:
        return f"{used or 'unknown'}, as agent, model and settings say"
    if used in (chosen, None):
        return f"{chosen}, chosen for this conversation"
    return f"{used}, for now; {chosen} is chosen for this conversation"


def context_of(desk: "Desk", talk: "Talk") -> ContextSettings:
    """The settings of the conversation's agent, as far as they are known without its model."""
    return apply(desk.settings, talk.agent).context


def outlook(desk: "Desk", talk: "Talk", plan: "Plan") -> str:
    """What the next message would do to what does not fit; empty when everything does."""
    if plan.cut is None:
        return ""
    is_kept = context_of(desk, talk).enabled and not plan.cut.passing
    return "would be compacted" if is_kept else "would be sent without"
