"""`recto agent`: list, show, make, configure and run agents.

All commands but `run` only read files: they open no store and start no server.
"""

import os
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recto.base import locations
from recto.cli import options, show
from recto.errors import Invalid

if TYPE_CHECKING:
    from recto.agents.agents import Agents
    from recto.api.blocking import Desk, Talk
    from recto.cli.listener import Listener
    from recto.events import Event
    from recto.tasks.run import RunReport

STOPPED = "stopped; what was done is kept: `recto agent run --continue` continues"
name_argument = click.argument("name", metavar="NAME")


@click.group()
def command() -> None:
    """See, make and configure agents; let one work toward a goal.

    Example: recto agent list
    """


def _agents() -> "Agents":
    from recto.agents.agents import Agents  # front matter, links, encodings: a twentieth of a second
    from recto.settings import settings

    home, project = locations.find_home(), locations.find_project(Path.cwd())
    try:
        below = settings.load(home, project)
    except Invalid:  # agents can still be seen and corrected
        below = settings.Settings()
    return Agents(home, project, below)


# -- running


@command.command("run")
@click.argument("goal", nargs=-1)
@click.option("--max-steps", type=click.IntRange(1, 10_000), metavar="N", help="Rounds of tool calls (default: 20).")
@click.option(
    "--max-cost",
    type=click.FloatRange(0, min_open=True),
    metavar="DOLLARS",
    help="Maximum cost in US dollars.",
)
@click.option("--continue", "continues", is_flag=True, help="Continue the last run of the conversation.")
@click.option(
    "--conversation",
    "-c",
    metavar="ID",
    help="In this conversation: its number, id or title (default: a new one; with --continue the latest).",
)
@click.option("--agent", metavar="NAME", help="The agent of a new conversation.")
@options.settings_options
@options.allow_tool_option
@click.option("--thinking", is_flag=True, help="Show the model's thinking.")
@options.as_json_option
def run(
    goal: tuple[str, ...],
    continues: bool,
    conversation: str | None,
    agent: str | None,
    flags: dict[str, str],
    allowed: tuple[str, ...],
    thinking: bool,
    as_json: bool,
    **limits: Any,
) -> None:
    """Let a model work toward a goal: it plans, acts through tools and checks, until the goal is reached.

    It stops when it is done or blocked, or out of steps or money, and reports. Tools that need your approval ask for
    it. Ctrl-C stops it; --continue continues from its last step. The exit code is 0 if the goal is reached, else 1.

    Example: recto agent run "List the boats in my notes" --vault notes --max-steps 30
    """
    from recto.cli.chat import NOTHING_LATER
    from recto.cli.listener import open_listener

    if bool(goal) == continues:
        raise click.UsageError("Give a goal, or --continue to continue the last run, not both.")
    if agent and (conversation is not None or continues):
        raise click.UsageError("--agent is for a new conversation; this one has its own.")
    with options.open_desk(NOTHING_LATER | flags) as desk:
        talk = _place(desk, conversation, agent, continues=continues)
        for tool in allowed:
            talk.allow(tool)
        text = None if continues else " ".join(goal)
        if as_json:
            report = _emitted(talk.stream_goal(text, can_ask=False, **limits))
        else:
            listener = open_listener(thinking=thinking, stopped=STOPPED)
            report = follow_run(talk.stream_goal(text, can_ask=listener.answers, **limits), listener, talk)
    if not report.is_done:
        sys.exit(1)


def _place(desk: "Desk", conversation: str | None, agent: str | None, *, continues: bool) -> "Talk":
    if conversation is not None or continues:
        return options.find_talk(desk, conversation)
    return desk.conversation(agent=agent) if agent else desk.conversation()


def _emitted(events: "Generator[Event]") -> "RunReport":
    """Emit the report as JSON, even if the run fails."""
    from recto.events import RunEnded  # the engine's events: only to run

    for event in events:
        if isinstance(event, RunEnded):
            show.emit(event.report.to_json())
            report = event.report
    return report


def follow_run(
    events: "Generator[Event]",
    listener: "Listener",
    talk: "Talk",
    watch: "Callable[[Event], None]" = lambda event: None,
) -> "RunReport":
    """Pass all events to the listener and show the report, even if the run fails."""
    from recto.cli.drawing.transcripts import report_lines  # the engine's events: only to run
    from recto.cli.listener import follow
    from recto.events import RunEnded

    reports: list[RunReport] = []

    def hear(event: "Event") -> None:
        watch(event)
        if isinstance(event, RunEnded):
            reports.append(event.report)

    try:
        follow(events, listener, hear)
    finally:
        for report in reports:
            for line in report_lines(report, conversation=str(talk.number)):
                show.say(line)
    return reports[-1]


# -- seeing


@command.command("list")
@options.as_json_option
def list_agents(as_json: bool) -> None:
    """List your agents and those of this project.

    Example: recto agent list
    """
    agents = _agents()
    notes = list[str]()
    for name in agents.names():
        agent = agents.read(name)
        where = [agents.scope_of(folder) for _, folder in agents.agent_folders(name)]
        if as_json:
            told = {"name": name, "description": agent.description, "model": agent.model, "where": where}
            show.emit(told | {"notes": list(agent.notes)})
            continue
        notes += agent.notes
        show.say(f"{name:<16}  {', '.join(where) or 'built in':<8}  {show.shortened(agent.description, 60)}".rstrip())
    for note in notes:
        show.note(note)


@command.command("show")
@click.argument("name", metavar="[NAME]", required=False, default="default")
@options.as_json_option
def show_agent(name: str, as_json: bool) -> None:
    """Show what an agent sets, and which file says so.

    `recto sources list --agent NAME` lists its rules, references and tools.

    Example: recto agent show clerk
    """
    agents = _agents()
    agent = agents.read(name)
    folders = {agents.scope_of(folder): str(folder) for _, folder in agents.agent_folders(name)}
    values: dict[str, Any] = {"model": agent.model or None, "system_prompt": agent.system_prompt, **agent.context}
    told = {key: value for key, value in values.items() if value is not None}
    if as_json:
        known = {"name": name, "description": agent.description, "folders": folders, "settings": told}
        show.emit(known | {"from": dict(agent.origins), "notes": list(agent.notes)})
        return
    show.say(f"{name}  {agent.description}".rstrip(), bold=True)
    origins = {"system_prompt": agent.origins.get("system_prompt_file", "")} | dict(agent.origins)
    facts = {key: f"{show.shortened(show.literal(value), 60)}  [{origins[key]}]" for key, value in told.items()}
    facts |= {"sources": f"`recto sources list --agent {name}` lists them"}
    show.facts((folders | facts).items(), 26)
    if not folders:
        show.say(f"it is built in; `recto agent new {name}` gives it a folder")
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
    show.answer({"name": name, "folder": str(made)} if as_json else f"agent {name} is made: {made}")
    if as_json:
        return
    show.say("  agent.toml     model, instructions, settings, MCP servers; its comments explain them")
    show.say("  rules/         how it should behave: Markdown files, one as an example")
    show.say("  references/    what it should know: Markdown files")
    show.say(f"`recto agent show {name}` shows what is in force; `recto chat --agent {name}` talks with it")


# -- configuring


@command.command("config", **options.TAKES_NEGATIVE)
@name_argument
@click.argument("key", required=False)
@click.argument("value", required=False)
@click.option("--unset", is_flag=True, help="Remove the setting from the agent's file.")
@options.as_json_option
def config(name: str, key: str | None, value: str | None, unset: bool, as_json: bool) -> None:
    """See or change the settings of an agent, each with the file that says it.

    Example: recto agent config clerk context.threshold 0.7
    """
    if unset and (value is not None or key is None):
        raise click.UsageError("Give KEY with --unset, else KEY and VALUE.")
    agents = _agents()
    agents.check(name)
    about = ""
    if key is None:
        for each in agents.settings(name):
            spec, found, origin = each.spec, each.value, each.origin
            if as_json:
                show.emit({"key": spec.key, "value": found, "from": origin, "allowed": spec.allowed, "help": spec.help})
            else:
                own = Path(origin).parent in {folder for _, folder in agents.agent_folders(name)}
                show.say(f"{spec.key} = {show.shortened(show.literal(found), 80)}  [{origin}]", bold=own, dim=not own)
    elif unset:
        path = agents.unset(name, key)
        now = agents.setting(name, key)
        told = {"agent": name, "key": now.spec.key, "value": now.value, "from": now.origin, "file": str(path)}
        said = f"{now.spec.key} is removed from {path}; it is {show.literal(now.value)} now  [{now.origin}]"
        show.answer(told if as_json else said)
        return
    elif value is not None:
        _set(agents, name, key, value, as_json)
    else:
        one = agents.setting(name, key)
        about = one.spec.key
        told = {"key": about, "value": one.value, "from": one.origin}
        show.answer(told if as_json else one.value if isinstance(one.value, str) else show.literal(one.value))
    for note in agents.read(name).notes:  # the user may be here to fix broken files
        if about in note:
            show.note(note)


def _set(agents: "Agents", name: str, key: str, value: str, as_json: bool) -> None:
    from recto.agents.agent_file import parse_agent_setting  # as in _agents

    key, typed = parse_agent_setting(key, value, "agent config")
    if key == "system_prompt_file":
        # relative to the agent's folder, but a shell completes paths from the current one
        here = Path(os.path.expanduser(typed)).absolute()
        if here.is_file() and not (agents.writable_file(name).parent / typed).is_file():
            typed = str(here)
    path = agents.set_value(name, key, typed)
    told = {"agent": name, "key": key, "value": typed, "file": str(path)}
    show.answer(told if as_json else f"{key} = {show.literal(typed)} in {path}")
