"""`recto agent`: which agents there are, what each may use and which file says so; making and configuring one. These
read files alone: no store is opened, no server started.

`recto agent run` is in `agent_run.py`.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recto.base import locations
from recto.cli import agent_run, options, show
from recto.errors import Invalid

if TYPE_CHECKING:
    from recto.agents.agents import Agents, AgentSetting
    from recto.settings.settings import Settings

name_argument = click.argument("name", metavar="NAME")


@click.group()
def command() -> None:
    """See, make and configure agents; let one work toward a goal.

    Example: recto agent list
    """


command.add_command(agent_run.command)


def _agents() -> "Agents":
    from recto.agents.agents import Agents  # front matter, links, encodings: a twentieth of a second

    home, project = locations.find_home(), locations.find_project(Path.cwd())
    return Agents(home, project, _settings(home, project))


def _settings(home: Path, project: Path | None) -> "Settings":
    """The settings below an agent's own. Where they cannot be read, agents can still be seen and corrected."""
    from recto.settings import settings

    try:
        return settings.load(home, project)
    except Invalid:
        return settings.Settings()


# -- seeing


@command.command("list")
@options.as_json_option
def list_agents(as_json: bool) -> None:
    """List your agents and those of this project.

    Example: recto agent list
    """
    from recto.cli.drawing.agents import agent_summary, agent_table  # agents' values: `--help` does without

    agents = _agents()
    found = [agents.read(name) for name in agents.names()]
    if as_json:
        for agent in found:
            show.emit(agent_summary(agents, agent))
    else:
        for line in agent_table(agents, found):
            show.say(line)
    for note in (*agents.invalid_folders(), *(note for agent in found for note in agent.notes if not as_json)):
        show.note(note)


@command.command("show")
@click.argument("name", metavar="[NAME]", required=False, default="default")
@options.as_json_option
def show_agent(name: str, as_json: bool) -> None:
    """Show everything in force for an agent, and which file says so.

    Values of variables and headers of MCP servers are hidden: they may be secret.

    Example: recto agent show clerk
    """
    from recto.cli.drawing.agents import agent_lines, agent_to_json  # as above

    agents = _agents()
    agent = agents.read(name)
    if as_json:
        show.emit(agent_to_json(agents, agent))
        return
    for line in agent_lines(agents, agent):
        show.say_styled(line)
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
    """Make an agent: a folder with a settings file, and folders for rules and references.

    Example: recto agent new clerk --description "Answers letters"
    """
    made = _agents().create(name, in_project=project, model=model, description=description)
    if as_json:
        show.emit({"name": name, "folder": str(made.folder)})
        return
    show.say(f"agent {name} is made: {made.folder}")
    for other in made.others:
        show.say(f"  there is one in {other} too: what the project says wins, key by key")
    show.say("  agent.toml     model, instructions, settings, MCP servers; its comments explain them")
    show.say("  rules/         how it is to behave, a Markdown file each; one is there as an example")
    show.say("  references/    what it is to know, likewise")
    show.say(f"`recto agent show {name}` shows what is in force; `recto chat --agent {name}` talks with it")


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
        for setting in agents.settings(name):
            _tell_setting(setting, as_json)
        _tell_notes(agents, name)
    elif unset:
        _unset(agents, name, key, as_json)
    elif value is not None:
        _set(agents, name, key, value, as_json)
    else:
        _get(agents, name, key, as_json)


def _tell_setting(setting: "AgentSetting", as_json: bool) -> None:
    from recto.agents.agents_folder import AGENT_FILE  # as in _agents

    spec, value, origin = setting.spec, setting.value, setting.origin
    if as_json:
        show.emit({"key": spec.key, "value": value, "from": origin, "allowed": spec.allowed, "help": spec.help})
    else:
        is_own = Path(origin).name == AGENT_FILE
        show.say(f"{spec.key} = {show.shortened(show.literal(value), 80)}  [{origin}]", bold=is_own, dim=not is_own)


def _get(agents: "Agents", name: str, key: str, as_json: bool) -> None:
    found = agents.setting(name, key)
    if as_json:
        show.emit({"key": found.spec.key, "value": found.value, "from": found.origin})
    else:
        show.say(found.value if isinstance(found.value, str) else show.literal(found.value))
    _tell_notes(agents, name, about=found.spec.key)


def _set(agents: "Agents", name: str, key: str, value: str, as_json: bool) -> None:
    from recto.agents.agent_file import parse_agent_setting  # as in _agents

    key, typed = parse_agent_setting(key, value, "agent config")
    if key == "system_prompt_file":
        typed = _from_its_folder(typed, agents.writable_file(name).parent)
    path = agents.set_value(name, key, typed)
    if as_json:
        show.emit({"agent": name, "key": key, "value": typed, "file": str(path)})
    else:
        show.say(f"{key} = {show.literal(typed)} in {path}")
    _tell_notes(agents, name)


def _tell_notes(agents: "Agents", name: str, about: str = "") -> None:
    """What is wrong with its files: that may be why the command was called."""
    for note in agents.read(name).notes:
        if about in note:
            show.note(note)


def _from_its_folder(value: str, folder: Path) -> str:
    """A path counts from the agent's folder; one that a shell has completed counts from the current folder."""
    here = Path(os.path.expanduser(value)).absolute()
    return str(here) if here.is_file() and not (folder / value).is_file() else value


def _unset(agents: "Agents", name: str, key: str, as_json: bool) -> None:
    path = agents.unset(name, key)
    found = agents.setting(name, key)
    if as_json:
        out = {"agent": name, "key": found.spec.key, "value": found.value, "from": found.origin, "file": str(path)}
        show.emit(out)
    else:
        now = f"it is {show.literal(found.value)} now  [{found.origin}]"
        show.say(f"{found.spec.key} is taken out of {path}; {now}")


def _edit(agents: "Agents", name: str, as_json: bool) -> None:
    from recto.cli.terminal import edited  # only to edit

    path = agents.writable_file(name)
    text = edited(agents.text(name))
    if text is not None:
        agents.write_text(name, text)
    notes = agents.read(name).notes
    if as_json:
        show.emit({"agent": name, "file": str(path), "changed": text is not None, "notes": notes})
        return
    show.say(f"{path} is {'as it was' if text is None else 'changed'}")
    for note in notes:
        show.note(note)
