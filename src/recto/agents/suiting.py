"""Suiting: an agent's settings together with those they are laid over. What does not suit the others is left out, with
a sentence that says so: a file of an agent ends no chat."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from recto import settings as configuration
from recto.agents.agent import Agent
from recto.errors import Invalid
from recto.settings import Settings


def suited(settings: Settings, agent: Agent) -> Agent:
    """The agent without those of its settings that do not suit these or each other, and a note for each."""
    own, notes = _own(settings, agent), list[str]()
    while own and (why := _refusal(settings, agent, own)):
        key = _culprit(settings, agent, own, why)
        notes.append(_left_out(settings, agent, own, key, why))
        own = _without(own, key)
    if not notes:
        return agent
    left = {key: value for key, value in agent.context.items() if key in own or settings.origin(key) == "option"}
    return replace(agent, context=left, notes=(*agent.notes, *notes))


def laid(settings: Settings, agent: Agent) -> Settings:
    """The settings with the agent's on top; what was given by option still wins. Invalid where they do not suit each
    other."""
    return _laid(settings, agent, _own(settings, agent))


def _own(settings: Settings, agent: Agent) -> dict[str, Any]:
    return {key: value for key, value in agent.context.items() if settings.origin(key) != "option"}


def _laid(settings: Settings, agent: Agent, own: Mapping[str, Any]) -> Settings:
    return configuration.changed(settings, own, {key: _origin(agent, key) for key in own})


def _origin(agent: Agent, key: str) -> str:
    return agent.origins.get(key, f"agent {agent.name}")


def _refusal(settings: Settings, agent: Agent, own: Mapping[str, Any]) -> Invalid | None:
    try:
        _laid(settings, agent, own)
    except Invalid as why:
        return why
    return None


def _culprit(settings: Settings, agent: Agent, own: Mapping[str, Any], why: Invalid) -> str:
    """Of the agent's settings the one without which there is nothing to refuse, or something else: the one that is
    named, if it can be, else one that stands against it."""
    named = why.data.get("key")
    ordered = sorted(own, key=lambda key: key != named)
    for key in ordered:
        rest = _refusal(settings, agent, _without(own, key))
        if rest is None or rest.data.get("key") != named:
            return key
    return ordered[0]


def _left_out(settings: Settings, agent: Agent, own: Mapping[str, Any], key: str, why: Invalid) -> str:
    named = why.data.get("key")
    if key == named or not isinstance(named, str):
        return f"{why.message}; it is left out"
    value, origin = (
        (own[named], _origin(agent, named)) if named in own else (settings.get(named), settings.origin(named))
    )
    beside = "which is the default" if origin == "default" else f"which {origin} says"
    return f"{_origin(agent, key)}: {key} = {own[key]!r} does not suit {named} = {value!r}, {beside}; it is left out"


def _without(own: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in own.items() if name != key}
