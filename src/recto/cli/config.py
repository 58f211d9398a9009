"""`recto config`: settings with their origin, and changing them."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from recto.base import locations
from recto.cli import options, show
from recto.cli.terminal import revealed
from recto.settings import settings

if TYPE_CHECKING:
    from recto.settings.project_access import ProjectSetting

MODELS = ("model", "context.summary_model")
of_conversation_option = click.option(
    "--conversation", "-c", metavar="ID", help="As in this conversation, with its agent's and its own settings."
)
keys_argument = click.argument("keys", metavar="[KEY]...", nargs=-1)


@click.group()
def command() -> None:
    """See and change settings.

    Example: recto config show
    """


def _loaded(conversation: str | None = None) -> settings.Settings:
    """The settings in force; for a conversation, including its agent's and its own."""
    if conversation is None:
        return settings.load(locations.find_home(), locations.find_project(Path.cwd()))
    with options.open_desk({}) as desk:
        return options.find_talk(desk, conversation).settings


@command.command("show")
@click.argument("keys", metavar="[KEY]...", nargs=-1)
@of_conversation_option
@options.as_json_option
def show_settings(keys: tuple[str, ...], conversation: str | None, as_json: bool) -> None:
    """Show every setting: its value, where that comes from, and what it is for.

    KEY is one setting, or a group such as context. For one setting, other names that it accepts are shown too.

    Example: recto config show context.max_prompt_tokens
    """
    loaded = _loaded(conversation)
    chosen = _chosen(keys)
    for spec in settings.specs():
        if spec.key not in chosen:
            continue
        value, origin = loaded.get(spec.key), loaded.origin(spec.key)
        if as_json:
            known = {"default": spec.default, "allowed": spec.allowed, "help": spec.help, "also": list(spec.names[1:])}
            show.emit({"key": spec.key, "value": value, "from": origin} | known)
        else:
            show.say(f"{spec.key} = {show.literal(value)}", bold=origin != "default" or None)
            show.say(f"    {spec.help}; {spec.allowed} [{origin}]", dim=True)
            if spec.also and chosen[spec.key]:
                show.say(f"    also accepted as {spec.also}", dim=True)
    for why in loaded.notes.values():
        show.note(why)


def _chosen(keys: tuple[str, ...]) -> dict[str, bool]:
    """The named settings (all without a name), and whether each was named itself rather than by its group."""
    known = [spec.key for spec in settings.specs()]
    chosen = {} if keys else dict.fromkeys(known, False)
    for key in keys:
        group = [each for each in known if each.startswith(f"{key.removesuffix('.')}.")]
        chosen |= dict.fromkeys(group, False) if group else {settings.own_key(key, "config show"): True}
    return chosen


@command.command("get")
@click.argument("key")
@of_conversation_option
@options.as_json_option
def get(key: str, conversation: str | None, as_json: bool) -> None:
    """Print the value of one setting.

    Example: recto config get model
    """
    loaded = _loaded(conversation)
    value, key = loaded.get(key), settings.own_key(key)
    show.answer(
        {"key": key, "value": value, "from": loaded.origin(key)}
        if as_json
        else value
        if isinstance(value, str)
        else show.literal(value)
    )
    if key in loaded.notes:
        show.note(loaded.notes[key])


def _root(is_project: bool) -> Path | None:
    return (locations.find_project(Path.cwd()) or Path.cwd()) if is_project else None


@command.command("set", **options.TAKES_NEGATIVE)
@click.argument("key")
@click.argument("value")
@click.option("--project", is_flag=True, help="For this project only, in its .recto folder.")
@options.as_json_option
def set_value(key: str, value: str, project: bool, as_json: bool) -> None:
    """Check a setting and write it to a file.

    Example: recto config set model openai:gpt-4o
    """
    from recto.settings.settings import set_setting  # only to write a file

    root, own = _root(project), settings.own_key(key, "config set")
    if own in MODELS and (value or own == "model"):
        from recto.providers.catalog import ModelCatalog  # all providers: a quarter of a second
        from recto.providers.registry import split_name

        split_name(ModelCatalog(locations.find_home(), root).full_name(value))  # refuses an impossible name
    change = set_setting(own, value, home=locations.find_home(), project=root)
    if as_json:
        show.emit({"key": own, "value": change.value, "file": str(change.file)})
    else:
        also = f" (also {key})" if own != key else ""
        show.say(f"{own} = {show.literal(change.value)} in {change.file}{also}")


@command.command("unset")
@click.argument("key")
@click.option("--project", is_flag=True, help="In this project's .recto folder.")
@options.as_json_option
def unset(key: str, project: bool, as_json: bool) -> None:
    """Remove a setting from a file, and show what is in force now.

    Example: recto config unset model
    """
    from recto.settings.settings import unset_setting  # only to write a file

    was_there = unset_setting(key, home=locations.find_home(), project=_root(project))
    own, loaded = settings.own_key(key), _loaded()
    value, origin = loaded.get(own), loaded.origin(own)
    told = {"key": own, "value": value, "from": origin, "removed": was_there}
    show.answer(told if as_json else f"{own} = {show.literal(value)} [{origin}]")
    if not (was_there or as_json):
        show.note(f"{own} was not set in the {'project' if project else 'user'} file")


@command.command("trust")
@keys_argument
@options.as_json_option
def trust(keys: tuple[str, ...], as_json: bool) -> None:
    """Use the settings of this project that need your trust: all of them, or each KEY.

    A project does not choose by itself who receives your messages and what a model can read. You trust the values that
    are shown: once one changes, it is ignored until you trust it again. AGENT/KEY names a setting of an agent of the
    project.

    Example: recto config trust
    """
    _trust(keys, as_json, trusted=True)


@command.command("distrust")
@keys_argument
@options.as_json_option
def distrust(keys: tuple[str, ...], as_json: bool) -> None:
    """Stop trusting the settings of this project: they are ignored.

    Example: recto config distrust model
    """
    _trust(keys, as_json, trusted=False)


def _trust(keys: tuple[str, ...], as_json: bool, *, trusted: bool) -> None:
    from recto.agents.agents import Agents  # front matter, links, encodings: a twentieth of a second

    home = locations.find_home()
    project = locations.find_project(Path.cwd(), home)
    found: list[ProjectSetting] = Agents(home, project).trust_settings(keys, trusted=trusted)
    for each in found:
        if as_json:
            told = {"key": each.key, "value": each.value, "agent": each.agent, "file": each.file}
            show.emit(told | {"path": each.place, "trusted": trusted})
            continue
        said = "is trusted" if trusted else "is no longer trusted, and ignored"
        show.say(f"{each.name} = {revealed(show.literal(each.value), '')} {said}")
        if each.place:
            show.say(f"  leads to  {each.place}")
        show.say(f"  said in   {each.file}")
    if not found:
        show.note("this project sets nothing that needs your trust")
