"""Commands made from the table of actions (`api/actions.py`); `drawing/results.py` shows their results."""

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from recto.api.actions import Action, Argument, offered
from recto.cli import options, show

if TYPE_CHECKING:
    from recto.api.blocking import Desk, Talk

TARGETS: dict[str, tuple[Any, ...]] = {
    "conversation": (options.conversation_argument,),
    "next": (options.conversation_argument,),
    "message": (options.message_argument, options.home_option),
    "named": (click.argument("conversation", metavar="ID"),),
    "option": (options.conversation_option,),
    "session": (options.session_options,),
    "desk": (lambda run: run,),
}


def add_commands(group: click.Group, name: str) -> None:
    """Adds the commands of this group that are in the table."""
    for action in offered("command", name):
        run: Any = options.as_json_option(partial(_run, action))
        placed = [each for each in action.arguments if not each.option]
        named = [each for each in action.arguments if each.option]
        target, *after = TARGETS[action.target]
        # as decorators, from the last one up
        for decorate in (*after, *map(_option, named[::-1]), *map(_placed, placed[::-1]), target):
            run = decorate(run)
        example = f"recto {action.name} {action.example}".rstrip()
        given: Any = options.TAKES_NEGATIVE if action.word == "set" else {}
        made: Any = click.command(action.word, help=f"{action.help}\n\nExample: {example}", **given)
        group.add_command(made(run))


def _placed(argument: Argument) -> Any:
    many: Any = {"required": True, "nargs": -1} if argument.takes != "one" else {}
    return click.argument(argument.name, metavar=argument.metavar or None, type=_type(argument), **many)


def _option(argument: Argument) -> Any:
    return click.option(
        *argument.option,
        argument.name,
        type=_type(argument),
        default=argument.default,
        show_default=argument.default is not None and argument.kind == "number",
        metavar=argument.metavar or None,
        help=argument.help,
    )


def _type(argument: Argument) -> click.ParamType[Any]:
    if argument.choices:
        return click.Choice(argument.choices)
    if argument.kind == "number":
        return click.IntRange(argument.least, argument.most)
    return options.GivenFile() if argument.kind == "file" else click.STRING


def _run(action: Action, as_json: bool, **given: Any) -> None:
    from recto.cli.drawing.results import tell, to_json  # the values of all actions: `--help` does without

    for argument in action.arguments:
        if argument.takes == "words":
            given[argument.name] = " ".join(given[argument.name])
    with options.open_desk({} if action.opens_vault else None) as desk:
        done = action.perform(desk, _talk(action, desk, given), given)
        if not as_json:
            tell(show, done)
            return
        for row in to_json(done):
            show.emit(row)


def _talk(action: Action, desk: "Desk", given: dict[str, Any]) -> "Talk | None":
    match action.target:
        case "conversation":
            return options.find_talk(desk, given["id"])
        case "next":
            return options.find_or_new_talk(desk, given["id"])
        case "message":
            return desk.talk_with(given["message"], given["conversation"])
        case "option":
            return options.find_talk(desk, given["conversation"])
        case "session":
            talk: Talk = given["place"](desk)
            return talk
    return None
