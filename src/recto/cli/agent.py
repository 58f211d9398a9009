"""`recto agent`: which agents there are, what each may use and where that is said; making and configuring one.

Reads files alone: no store is opened, no server started.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recto import places
from recto.cli import options, show
from recto.errors import Invalid

if TYPE_CHECKING:
    from recto.agents.agents import Agents
    from recto.settings import Settings, Spec

name_argument = click.argument("name", metavar="NAME")


@click.group()
def command() -> None:
    """See, make and configure agents: rules, references, tools.

    Example: recto agent list
    """


def _agents() -> "Agents":
    from recto.agents.agents import Agents  # front matter, links, encodings: a twentieth of a second

    home, project = places.find_home(), places.find_project(Path.cwd())
    return Agents(home, project, _settings(home, project))


def _settings(home: Path, project: Path | None) -> "Settings":
    """What an agent's settings are laid over; agents can be seen and mended where that cannot be read, too."""
    from recto import settings

    try:
        return settings.load(home, project)
    except Invalid:
        return settings.Settings()


# -- seeing


@command.command("list")
@options.as_json_option
def list_agents(as_json: bool) -> None:
    """List the agents there are, yours and those of this project.

    Example: recto agent list
    """
    from recto.cli import agent_show

    agents = _agents()
    found = [agents.read(name) for name in agents.names()]
    if as_json:
        for agent in found:
            show.emit(agent_show.summary(agents, agent))
    else:
        for line in agent_show.table(agents, found):
            show.say(line)
    for note in (*agents.strays(), *(note for agent in found for note in agent.notes if not as_json)):
        show.note(note)


@command.command("show")
@click.argument("name", metavar="[NAME]", required=False, default="default")
@options.as_json_option
def show_agent(name: str, as_json: bool) -> None:
    """Show all that is in force for an agent, and which file says so.

    Values of variables and headers of MCP servers are not shown: they may be secret.

    Example: recto agent show clerk
    """
    from recto.cli import agent_show

    agents = _agents()
    agent = agents.read(name)
    if as_json:
        show.emit(agent_show.to_json(agents, agent))
        return
    for line in agent_show.lines(agents, agent):
        click.echo(line)
    for note in agent.notes:
        show.note(note)


# -- making


@command.command("new")
@name_argument
@click.option("--project", is_flag=True, help="For this project only, in its .recto folder.")
@click.option("--model", "-m", metavar="MODEL", default="", help="Who answers, as provider:model.")
@click.option("--description", "-d", metavar="TEXT", default="", help="What the agent is for.")
@options.as_json_option
def new_agent(name: str, project: bool, model: str, description: str, as_json: bool) -> None:
    """Make an agent: a folder with a file of settings, and folders of rules and references.

    Example: recto agent new clerk --description "Answers letters"
    """
    from recto.agents.place import FOLDER, check_name
    from recto.cli.agent_new import make

    check_name(name)
    root = (places.find_project(Path.cwd()) or Path.cwd()) / ".recto" if project else places.find_home()
    folder = root / FOLDER / name
    beside = [str(other) for _, other in _agents().folders(name) if other != folder]
    make(folder, name, model, description)
    if as_json:
        show.emit({"name": name, "folder": str(folder)})
        return
    show.say(f"agent {name} is made: {folder}")
    for other in beside:
        show.say(f"  there is one in {other} too: what the project says wins, key by key")
    show.say("  agent.toml     model, instructions, settings, MCP servers; its comments say how")
    show.say("  rules/         how it is to behave, a Markdown file each; one is there as an example")
    show.say("  references/    what it is to know, likewise")
    show.say(f"`recto agent show {name}` tells what is in force; `recto chat --agent {name}` talks with it")


# -- configuring


@command.command("config")
@name_argument
@click.argument("key", required=False)
@click.argument("value", required=False)
@click.option("--unset", is_flag=True, help="Take the setting out of the agent's file.")
@click.option("--edit", is_flag=True, help="Open the agent's file in your editor.")
@options.as_json_option
def config(name: str, key: str | None, value: str | None, unset: bool, edit: bool, as_json: bool) -> None:
    """See or change the settings of an agent, each with the file that says it.

    Example: recto agent config clerk context.threshold 0.7
    """
    if (edit and (key or unset)) or (unset and (value is not None or key is None)):
        raise click.UsageError("Give KEY with --unset, nothing with --edit, else KEY and VALUE.")
    agents = _agents()
    agents.check(name)
    if edit:
        _edit(agents, name, as_json)
    elif key is None:
        for spec, now, origin in _in_force(agents, name):
            _tell_setting(spec, now, origin, as_json)
        _tell_notes(agents, name)
    elif unset:
        _unset(agents, name, key, as_json)
    elif value is not None:
        _set(agents, name, key, value, as_json)
    else:
        _get(agents, name, key, as_json)


def _in_force(agents: "Agents", name: str) -> list[tuple["Spec", Any, str]]:
    """All settings of an agent; what it does not say itself is as the settings have it."""
    from recto import settings
    from recto.agents.agent_file import PROMPTS, specs
    from recto.agents.agents import apply

    agent = agents.read(name)
    below = apply(settings.load(agents.home, agents.project), agent)
    # what does not suit the others is written there, but not in force
    said = {key: row for key, row in agents.said(name).items() if key in agent.context or not _is_context(key)}
    is_told = any(key in said for key in PROMPTS)
    general = {spec.key for spec in settings.specs()} - set(PROMPTS if is_told else ())
    rows = []
    for spec in specs():
        if spec.key in said and not (spec.key == "model" and not said["model"][0]):
            rows.append((spec, *said[spec.key]))
        elif spec.key in general:
            rows.append((spec, below.get(spec.key), below.origin(spec.key)))
        else:
            rows.append((spec, spec.default, "default"))
    return rows


def _is_context(key: str) -> bool:
    return key.startswith("context.")


def _tell_setting(spec: "Spec", value: Any, origin: str, as_json: bool) -> None:
    from recto.agents.agents import FILE
    from recto.cli.config import literal

    if as_json:
        show.emit({"key": spec.key, "value": value, "from": origin, "allowed": spec.allowed, "help": spec.help})
    else:
        is_own = Path(origin).name == FILE
        show.say(f"{spec.key} = {show.shortened(literal(value), 80)}  [{origin}]", bold=is_own, dim=not is_own)


def _find(agents: "Agents", name: str, key: str) -> tuple["Spec", Any, str]:
    from recto.agents.agent_file import spec_of

    wanted = spec_of(key, "agent config").key
    return next(row for row in _in_force(agents, name) if row[0].key == wanted)


def _get(agents: "Agents", name: str, key: str, as_json: bool) -> None:
    from recto.cli.config import literal

    spec, value, origin = _find(agents, name, key)
    if as_json:
        show.emit({"key": spec.key, "value": value, "from": origin})
    else:
        show.say(value if isinstance(value, str) else literal(value))
    _tell_notes(agents, name, about=spec.key)


def _set(agents: "Agents", name: str, key: str, value: str, as_json: bool) -> None:
    from recto.agents.agent_file import check
    from recto.cli.config import literal

    key, typed = check(key, value, "agent config")
    if key == "system_prompt_file":
        typed = _from_its_folder(typed, agents.file(name).parent)
    path = agents.set_value(name, key, typed)
    if as_json:
        show.emit({"agent": name, "key": key, "value": typed, "file": str(path)})
    else:
        show.say(f"{key} = {literal(typed)} in {path}")
    _tell_notes(agents, name)


def _tell_notes(agents: "Agents", name: str, about: str = "") -> None:
    """What is wrong with its files, and may be what one has come for."""
    for note in agents.read(name).notes:
        if about in note:
            show.note(note)


def _from_its_folder(value: str, folder: Path) -> str:
    """A path is meant from the agent's folder; one that a shell has completed is meant from here."""
    here = Path(os.path.expanduser(value)).absolute()
    return str(here) if here.is_file() and not (folder / value).is_file() else value


def _unset(agents: "Agents", name: str, key: str, as_json: bool) -> None:
    from recto.cli.config import literal

    path = agents.unset(name, key)
    spec, value, origin = _find(agents, name, key)
    if as_json:
        show.emit({"agent": name, "key": spec.key, "value": value, "from": origin, "file": str(path)})
    else:
        show.say(f"{spec.key} is taken out of {path}; it is {literal(value)} now  [{origin}]")


def _edit(agents: "Agents", name: str, as_json: bool) -> None:
    from recto import toml_file
    from recto.cli.agent_new import agent_toml
    from recto.cli.editor import edited
    from recto.settings import file_text

    path = agents.file(name)
    text = edited(file_text(path) if path.is_file() else agent_toml(name))
    if text is not None:
        toml_file.write(path, f"{text}\n")
    notes = agents.read(name).notes
    if as_json:
        show.emit({"agent": name, "file": str(path), "changed": text is not None, "notes": notes})
        return
    show.say(f"{path} is {'as it was' if text is None else 'changed'}")
    for note in notes:
        show.note(note)
