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
    from recto.cli.ask import NOTHING_LATER
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

    reports: list[RunReport] = []
    for event in events:
        if isinstance(event, RunEnded):
            show.emit(event.report.to_json())
            reports.append(event.report)
    return reports[-1]


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
    show.answer({"name": name, "folder": str(made.folder)} if as_json else f"agent {name} is made: {made.folder}")
    if as_json:
        return
    for other in made.others:
        show.say(f"  there is one in {other} too: the project's wins, key by key")
    show.say("  agent.toml     model, instructions, settings, MCP servers; its comments explain them")
    show.say("  rules/         how it should behave: Markdown files, one as an example")
    show.say("  references/    what it should know: Markdown files")
    show.say(f"`recto agent show {name}` shows what is in force; `recto chat --agent {name}` talks with it")


# -- configuring


@command.command("config")
@name_argument
@click.argument("key", required=False)
@click.argument("value", required=False)
@click.option("--unset", is_flag=True, help="Remove the setting from the agent's file.")
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
    about = ""
    if edit:
        _edit(agents, name, as_json)
        return
    if key is None:
        _tell_settings(agents, name, as_json)
    elif unset:
        _unset(agents, name, key, as_json)
        return
    elif value is not None:
        _set(agents, name, key, value, as_json)
    else:
        found = agents.setting(name, key)
        about = found.spec.key
        told = {"key": about, "value": found.value, "from": found.origin}
        show.answer(told if as_json else found.value if isinstance(found.value, str) else show.literal(found.value))
    for note in agents.read(name).notes:  # the user may be here to fix broken files
        if about in note:
            show.note(note)


def _tell_settings(agents: "Agents", name: str, as_json: bool) -> None:
    from recto.agents.agents import AGENT_FILE  # as in _agents

    for each in agents.settings(name):
        spec, value, origin = each.spec, each.value, each.origin
        if as_json:
            show.emit({"key": spec.key, "value": value, "from": origin, "allowed": spec.allowed, "help": spec.help})
        else:
            own = Path(origin).name == AGENT_FILE
            show.say(f"{spec.key} = {show.shortened(show.literal(value), 80)}  [{origin}]", bold=own, dim=not own)


def _set(agents: "Agents", name: str, key: str, value: str, as_json: bool) -> None:
    from recto.agents.agent_file import parse_agent_setting  # as in _agents

    key, typed = parse_agent_setting(key, value, "agent config")
    if key == "system_prompt_file":
        # relative to the agent's folder, but a shell completes paths from the current one
        here = Path(os.path.expanduser(typed)).absolute()
        if here.is_file() and not (agents.writable_file(name).parent / typed).is_file():
            typed = str(here)
    path = agents.set_value(name, key, typed)
    show.answer(
        {"agent": name, "key": key, "value": typed, "file": str(path)}
        if as_json
        else f"{key} = {show.literal(typed)} in {path}"
    )


def _unset(agents: "Agents", name: str, key: str, as_json: bool) -> None:
    path = agents.unset(name, key)
    found = agents.setting(name, key)
    if as_json:
        told = {"agent": name, "key": found.spec.key, "value": found.value, "from": found.origin, "file": str(path)}
        show.emit(told)
    else:
        show.say(f"{found.spec.key} is removed from {path}; it is {show.literal(found.value)} now  [{found.origin}]")


def _edit(agents: "Agents", name: str, as_json: bool) -> None:
    from recto.cli.terminal import edited  # only to edit

    path = agents.writable_file(name)
    text = edited(agents.text(name))
    if text is not None:
        agents.write_text(name, text)
    notes = agents.read(name).notes
    told = {"agent": name, "file": str(path), "changed": text is not None, "notes": notes}
    show.answer(told if as_json else f"{path} is {'as it was' if text is None else 'changed'}")
    for note in () if as_json else notes:
        show.note(note)
