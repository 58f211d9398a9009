"""`recto config`: settings, where they came from, and changing them in a file without losing its comments."""

import os
from pathlib import Path
from typing import Any

import click

from recto import places, settings, toml_file
from recto.cli import options, show

FILE = "config.toml"
# Their values are meant from where the command runs; in a file they are meant from where the file belongs.
PATHS = ("vault", "system_prompt_file")


@click.group()
def command() -> None:
    """See and change settings.

    Example: recto config show
    """


def _loaded() -> settings.Settings:
    return settings.load(places.find_home(), places.find_project(Path.cwd()))


@command.command("show")
@options.as_json_option
def show_settings(as_json: bool) -> None:
    """Show every setting: its value, where that came from, and what it is for.

    Example: recto config show
    """
    loaded = _loaded()
    for spec in settings.specs():
        value, origin = loaded.get(spec.key), loaded.origin(spec.key)
        if as_json:
            known = {"default": spec.default, "allowed": spec.allowed, "help": spec.help}
            show.emit({"key": spec.key, "value": value, "from": origin} | known)
        else:
            show.say(f"{spec.key} = {literal(value)}", bold=origin != "default" or None)
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
        show.say(value if isinstance(value, str) else literal(value))


@command.command("set")
@click.argument("key")
@click.argument("value")
@click.option("--project", is_flag=True, help="For this project only, in its .recto folder.")
@options.as_json_option
def set_value(key: str, value: str, project: bool, as_json: bool) -> None:
    """Change a setting for good, after checking it.

    Example: recto config set model openai:gpt-4o
    """
    typed = settings.check(key, value, "config set")
    root = (places.find_project(Path.cwd()) or Path.cwd()) if project else None
    path = (root / ".recto" if root else places.find_home()) / FILE
    if key in PATHS and typed:
        typed = _rooted(typed, root)
    toml_file.write(path, _changed(path, key, typed))
    if as_json:
        show.emit({"key": key, "value": typed, "file": str(path)})
    else:
        show.say(f"{key} = {literal(typed)} in {path}")


def literal(value: Any) -> str:
    """As TOML writes it."""
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else f"{value}"


def _rooted(value: str, root: Path | None) -> str:
    """A path that means the same file from anywhere: relative to its project, or whole."""
    if value.startswith("~"):
        return value
    place = Path(value).absolute()
    return os.path.relpath(place, root) if root and place.is_relative_to(root) else str(place)


def _changed(path: Path, key: str, value: Any) -> str:
    """The file's text with the setting changed and everything else as it was; checked as a whole."""
    text = toml_file.with_value(settings.file_text(path), path, key.split("."), value)
    settings.check_text(text, str(path))
    return text
