"""`recto config`: settings, where they came from, and changing them."""

from pathlib import Path

import click

from recto import locations, settings
from recto.cli import options, show


@click.group()
def command() -> None:
    """See and change settings.

    Example: recto config show
    """


def _loaded() -> settings.Settings:
    return settings.load(locations.find_home(), locations.find_project(Path.cwd()))


@command.command("show")
@options.as_json_option
def show_settings(as_json: bool) -> None:
    """Show every setting: its value, where that comes from, and what it is for.

    Example: recto config show
    """
    loaded = _loaded()
    for spec in settings.specs():
        value, origin = loaded.get(spec.key), loaded.origin(spec.key)
        if as_json:
            known = {"default": spec.default, "allowed": spec.allowed, "help": spec.help}
            show.emit({"key": spec.key, "value": value, "from": origin} | known)
        else:
            show.say(f"{spec.key} = {show.literal(value)}", bold=origin != "default" or None)
            show.say(f"    {spec.help}; {spec.allowed} [{origin}]", dim=True)


@command.command("get")
@click.argument("key")
@options.as_json_option
def get(key: str, as_json: bool) -> None:
    """Print the value of one setting.

    Example: recto config get model
    """
    loaded = _loaded()
    value = loaded.get(key)
    if as_json:
        show.emit({"key": key, "value": value, "from": loaded.origin(key)})
    else:
        show.say(value if isinstance(value, str) else show.literal(value))


@command.command("set")
@click.argument("key")
@click.argument("value")
@click.option("--project", is_flag=True, help="For this project only, in its .recto folder.")
@options.as_json_option
def set_value(key: str, value: str, project: bool, as_json: bool) -> None:
    """Check a setting and write it to a file.

    Example: recto config set model openai:gpt-4o
    """
    from recto.settings_file import set_setting  # only to write a file

    root = (locations.find_project(Path.cwd()) or Path.cwd()) if project else None
    change = set_setting(key, value, home=locations.find_home(), project=root)
    if as_json:
        show.emit({"key": key, "value": change.value, "file": str(change.file)})
    else:
        show.say(f"{key} = {show.literal(change.value)} in {change.file}")
