"""`recto config`: settings, where they came from, and changing them."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from recto.base import locations
from recto.cli import completion, options, show
from recto.cli.drawing.windows import setting_in_words
from recto.cli.terminal import revealed
from recto.settings import settings

if TYPE_CHECKING:
    from recto.settings.project_access import ProjectSetting

MODELS = ("model", "context.summary_model")
of_conversation_option = click.option(
    "--conversation", "-c", metavar="ID", help="As it is in this conversation, with its agent's and its own settings."
)
keys_argument = click.argument("keys", metavar="[KEY]...", nargs=-1)


@click.group()
def command() -> None:
    """See and change settings.

    Example: recto config show
    """


def _loaded() -> settings.Settings:
    return settings.load(locations.find_home(), locations.find_project(Path.cwd()))


def _loaded_for(conversation: str | None) -> settings.Settings:
    """Those in force in a conversation, if one is named: with its agent's and its own."""
    if conversation is None:
        return _loaded()
    with options.open_desk({}) as desk:
        return options.find_talk(desk, conversation).settings


@command.command("show")
@click.argument("keys", metavar="[KEY]...", nargs=-1, shell_complete=completion.settings)
@of_conversation_option
@options.as_json_option
def show_settings(keys: tuple[str, ...], conversation: str | None, as_json: bool) -> None:
    """Show every setting: its value, where that comes from, and what it is for.

    KEY is one setting, or a group such as context; of one setting, another name that it is accepted under is shown too.

    Example: recto config show context.max_prompt_tokens
    """
    loaded = _loaded_for(conversation)
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
    """The settings that are meant, and whether each is named itself; without any name all."""
    known = [spec.key for spec in settings.specs()]
    chosen = {} if keys else dict.fromkeys(known, False)
    for key in keys:
        group = [each for each in known if each.startswith(f"{key.removesuffix('.')}.")]
        chosen |= dict.fromkeys(group, False) if group else {settings.own_key(key, "config show"): True}
    return chosen


@command.command("get")
@click.argument("key", shell_complete=completion.settings)
@of_conversation_option
@options.as_json_option
def get(key: str, conversation: str | None, as_json: bool) -> None:
    """Print the value of one setting.

    Example: recto config get model
    """
    loaded = _loaded_for(conversation)
    value, key = loaded.get(key), settings.own_key(key)
    if as_json:
        show.emit({"key": key, "value": value, "from": loaded.origin(key)})
    else:
        show.say(value if isinstance(value, str) else show.literal(value))
    if key in loaded.notes:
        show.note(loaded.notes[key])


@command.command("set")
@click.argument("key", shell_complete=completion.settings)
@click.argument("value")
@click.option("--project", is_flag=True, help="For this project only, in its .recto folder.")
@options.as_json_option
def set_value(key: str, value: str, project: bool, as_json: bool) -> None:
    """Check a setting and write it to a file.

    Example: recto config set model openai:gpt-4o
    """
    from recto.settings.file import set_setting  # only to write a file

    root = (locations.find_project(Path.cwd()) or Path.cwd()) if project else None
    own = settings.own_key(key, "config set")
    if own in MODELS and (value or own == "model"):
        _check_model(value, root)
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
    """Remove a setting from a file, and show what counts now.

    Example: recto config unset model
    """
    from recto.settings.file import unset_setting  # only to write a file

    root = (locations.find_project(Path.cwd()) or Path.cwd()) if project else None
    was_there = unset_setting(key, home=locations.find_home(), project=root)
    own, loaded = settings.own_key(key), _loaded()
    if as_json:
        told = {"value": loaded.get(own), "from": loaded.origin(own), "removed": was_there}
        show.emit({"key": own, **told})
        return
    show.say(f"{own} = {show.literal(loaded.get(own))} [{loaded.origin(own)}]")
    if not was_there:
        show.note(f"{own} was not set in the {'project' if project else 'user'} file")


def _check_model(name: str, project: Path | None) -> None:
    """Raises NotFound or Invalid for what cannot be the name of a model."""
    from recto.providers.catalog import ModelCatalog  # all providers: a quarter of a second
    from recto.providers.registry import split_name

    split_name(ModelCatalog(locations.find_home(), project).full_name(name))


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
    _tell_trust(_trust(keys, trusted=True), "is trusted", as_json, trusted=True)


@command.command("distrust")
@keys_argument
@options.as_json_option
def distrust(keys: tuple[str, ...], as_json: bool) -> None:
    """Stop trusting the settings of this project: they are ignored.

    Example: recto config distrust model
    """
    _tell_trust(_trust(keys, trusted=False), "is no longer trusted, and ignored", as_json, trusted=False)


def _trust(keys: tuple[str, ...], *, trusted: bool) -> list["ProjectSetting"]:
    from recto.agents.agents import Agents  # front matter, links, encodings: a twentieth of a second

    home = locations.find_home()
    return Agents(home, locations.find_project(Path.cwd(), home)).trust_settings(keys, trusted=trusted)


def _tell_trust(found: list["ProjectSetting"], said: str, as_json: bool, *, trusted: bool) -> None:
    for each in found:
        if as_json:
            told = {"key": each.key, "value": each.value, "agent": each.agent, "file": each.file}
            show.emit(told | {"path": each.place, "trusted": trusted})
            continue
        show.say(f"{each.name} = {revealed(show.literal(each.value), '')} {said}")
        if each.place:
            show.say(f"  leads to  {each.place}")
        show.say(f"  said in   {each.file}")
    if not found:
        show.note("this project sets nothing that needs your trust")


@click.command("set")
@click.argument("key")
@click.argument("value")
@options.conversation_option
@options.as_json_option
def set_for_conversation(key: str, value: str, conversation: str | None, as_json: bool) -> None:
    """Keep a setting of context with a conversation (by default the latest), over your own settings and its agent's.

    `context.` may be left out. Options such as --set still win.

    Example: recto context set threshold 0.7
    """
    _set_for_conversation(key, value, conversation, as_json=as_json)


@click.command("unset")
@click.argument("key")
@options.conversation_option
@options.as_json_option
def unset_for_conversation(key: str, conversation: str | None, as_json: bool) -> None:
    """Let a conversation follow your own settings and its agent's again.

    Example: recto context unset threshold
    """
    _set_for_conversation(key, None, conversation, as_json=as_json)


def _set_for_conversation(key: str, value: str | None, conversation: str | None, *, as_json: bool) -> None:
    with options.open_desk() as desk:
        talk = options.find_talk(desk, conversation)
        full = settings.conversation_key(key, talk.name)
        talk.set_setting(full, value)
        loaded = talk.settings
        if as_json:
            told = {"key": full, "value": loaded.get(full), "from": loaded.origin(full)}
            show.emit({"conversation": talk.id, **told})
        else:
            show.say(setting_in_words(full, loaded))
