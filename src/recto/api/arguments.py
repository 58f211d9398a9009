"""Checks arguments of the Python API by their names before anything is done, as the command line does.

A wrong value raises Invalid with one sentence. Names of stored things are checked where they are looked up."""

import inspect
import math
import os
from collections.abc import Callable, Collection
from datetime import date
from functools import cache, wraps
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args, get_origin

from msgspec import Struct

from recto.base.text import clean, shown
from recto.errors import Invalid
from recto.sources.source import SOURCE_KINDS
from recto.sources.tool_definition import ToolChange
from recto.tasks.run import MOST_RUN_STEPS

T = TypeVar("T", bound=type)
F = TypeVar("F", bound=Callable[..., Any])
# No path or id is longer, and a sentence that repeats it stays readable.
LONGEST_NAME = 4096
# The largest value in a database, and the largest number that is not read as an id.
LARGEST, LARGEST_NUMBER = 2**63 - 1, 999_999_999
# A century, in days.
MOST_DAYS = 36_500


class ArgumentRule(Struct, frozen=True):
    words: str
    accepts: Callable[[Any], bool]


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value.strip()) <= len(value) <= LONGEST_NAME and not clean(value)[1]


def _is_whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_place(value: object) -> bool:
    if not isinstance(value, str | Path) or not 0 < len(str(value)) <= LONGEST_NAME:
        return False
    try:
        return b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False


def _are(value: object, accepts: Callable[[Any], bool]) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str | bytes) and all(map(accepts, value))


def _whole(least: int, most: int = LARGEST) -> ArgumentRule:
    words = f"a whole number from {least} " + (f"to {most}" if most < LARGEST else "on")
    return ArgumentRule(words, lambda value: _is_whole(value, least, most))


def _one_of(values: Collection[str]) -> ArgumentRule:
    return ArgumentRule(f"one of {', '.join(values)}", lambda value: isinstance(value, str) and value in values)


NAME = ArgumentRule("a text that is not empty, without characters that cannot be stored", _is_name)
ID = ArgumentRule("an id or a number", lambda value: _is_name(value) or _is_whole(value, 0, LARGEST_NUMBER))
TEXT = ArgumentRule("a text", lambda value: isinstance(value, str))
TIME = ArgumentRule("a time", lambda value: _is_name(value) or isinstance(value, date))
BOUND = ArgumentRule(
    "a time, an id or a number of a message", lambda value: TIME.accepts(value) or _is_whole(value, 0, LARGEST_NUMBER)
)
NAMES = ArgumentRule("a list of names", lambda value: _are(value, _is_name))
PLACE = ArgumentRule("a path", _is_place)

RULES: dict[str, ArgumentRule] = {
    **dict.fromkeys(("agent", "key", "mode", "model", "name", "path", "section", "server", "source"), NAME),
    **dict.fromkeys(("strategy", "tool", "set_include.named", "add_source.named", "remove_source.named"), NAME),
    **dict.fromkeys(("conversation", "id", "message", "named", "request", "compare.before", "compare.after"), ID),
    **dict.fromkeys(("goal", "keep", "text", "title"), TEXT),
    **dict.fromkeys(("since", "before"), TIME),
    "path.before": ID,
    **{f"{method}.{name}": BOUND for method in ("messages", "transcript") for name in ("since", "before")},
    **dict.fromkeys(("alternatives.messages", "names", "requests"), NAMES),
    **dict.fromkeys(("file", "home", "vault", "project"), PLACE),
    **dict.fromkeys(("block", "place"), _whole(0, LARGEST_NUMBER)),
    **dict.fromkeys(("number", "older", "newer", "replaces", "window"), _whole(1, LARGEST_NUMBER)),
    "max_steps": _whole(1, MOST_RUN_STEPS),
    "priority": _whole(1, 10),
    "older_than": _whole(0, MOST_DAYS),
    "prune.older_than": NAME,
    "max_cost": ArgumentRule(
        "an amount of US dollars above 0",
        lambda value: isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf,
    ),
    "settings": ArgumentRule(
        "settings by their names", lambda value: isinstance(value, dict) and _are(value, _is_name)
    ),
    "accept_tools.changes": ArgumentRule(
        "a list of changes, as `tool_changes` gives them",
        lambda value: _are(value, lambda each: isinstance(each, ToolChange)),
    ),
    "kinds": ArgumentRule(
        f"a list of {', '.join(SOURCE_KINDS)}", lambda value: _are(value, lambda each: each in SOURCE_KINDS)
    ),
}
"""By the name of the argument, or by `method.argument`. The others follow from their types."""
_MESSAGES = ("given", "attachments", "messages", "prepared", "reply")
CHECKED_ELSEWHERE = ("self", *_MESSAGES, "changes", "options", "value", "work", "wanted", "within")
"""Arguments that have their own checks."""


@cache
def rule_of(method: str, argument: str, annotation: Any) -> ArgumentRule | None:
    if argument in CHECKED_ELSEWHERE and f"{method}.{argument}" not in RULES:
        return None
    if rule := RULES.get(f"{method}.{argument}") or RULES.get(argument):
        return rule
    kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
    kind = kinds[0] if len(kinds) == 1 and type(None) in get_args(annotation) else annotation
    if get_origin(kind) is Literal:
        return _one_of(get_args(kind))
    if get_origin(kind) is Callable:
        return ArgumentRule("a function", callable)
    return {bool: ArgumentRule("True or False", lambda value: isinstance(value, bool)), int: _whole(1)}.get(kind)


def checked_door(door: T) -> T:
    """Public methods check their arguments."""
    for name, function in list(vars(door).items()):
        if inspect.isfunction(function) and not name.startswith("_"):
            setattr(door, name, checked(function))
    return door


def checked(function: F) -> F:
    """Returns the function with checks."""
    # at the first call: reading all signatures would slow down the start of every command
    read_signature = cache(lambda: inspect.signature(function))

    def check(args: tuple[object, ...], named: dict[str, object]) -> None:
        signature = read_signature()
        for name, value in signature.bind(*args, **named).arguments.items():
            spec = signature.parameters[name]
            many = spec.kind is inspect.Parameter.VAR_KEYWORD
            types = _options(value, spec.annotation) if many else {name: spec.annotation}
            for argument, each in value.items() if many else ((name, value),):
                if each is not None or not (many or _may_be_none(spec.annotation)):
                    rule = rule_of(function.__name__, argument, types[argument])
                    if rule and not rule.accepts(each):
                        raise Invalid(f"{argument} must be {rule.words}, not {shown(each)}", argument=argument)

    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def wait(*args: Any, **named: Any) -> Any:
            check(args, named)
            return await function(*args, **named)

        return cast(F, wait)

    @wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        check(args, named)
        return function(*args, **named)

    return cast(F, call)


def _may_be_none(annotation: Any) -> bool:
    # an alias of literals prints its None as Optional, and an annotation imported only for types is a string
    return type(None) in get_args(annotation) or "None" in str(annotation)


def _options(given: dict[str, object], annotation: Any) -> dict[str, Any]:
    """The types in `**options: Unpack[Options]`. Raises Invalid for a keyword that is not among them."""
    known: dict[str, Any] = get_args(annotation)[0].__annotations__
    if unknown := sorted(given.keys() - known.keys()):
        name = unknown[0] if unknown[0].isidentifier() else shown(unknown[0])
        raise Invalid(f"there is no option {name}; there are: {', '.join(known)}", option=unknown[0])
    return known
