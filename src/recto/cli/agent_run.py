"""`recto agent run`: a model works toward a goal by itself, over many steps."""

import sys
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

import click

from recto.cli import completion, options, show

if TYPE_CHECKING:
    from recto.api.blocking import Desk, Talk
    from recto.cli.listener import Listener
    from recto.events import Event
    from recto.tasks.report import RunReport

STOPPED = "stopped; what was done is kept: `recto agent run --continue` goes on"


@click.command("run")
@click.argument("goal", nargs=-1)
@click.option("--max-steps", type=click.IntRange(1, 10_000), metavar="N", help="Rounds of tool calls (default: 20).")
@click.option(
    "--max-cost", type=click.FloatRange(0, min_open=True), metavar="DOLLARS", help="What it may cost, in US dollars."
)
@click.option("--continue", "goes_on", is_flag=True, help="Go on with the last run of the conversation.")
@click.option(
    "--conversation",
    "-c",
    metavar="ID",
    shell_complete=completion.conversations,
    help="In this conversation: its number, id or title (default: a new one; with --continue the latest).",
)
@click.option("--agent", metavar="NAME", shell_complete=completion.agents, help="The agent of a new conversation.")
@options.settings_options
@options.allow_tool_option
@click.option("--thinking", is_flag=True, help="Show the model's thinking.")
@options.as_json_option
def command(
    goal: tuple[str, ...],
    max_steps: int | None,
    max_cost: float | None,
    goes_on: bool,
    conversation: str | None,
    agent: str | None,
    flags: dict[str, str],
    allowed: tuple[str, ...],
    thinking: bool,
    as_json: bool,
) -> None:
    """Let a model work toward a goal: it plans, acts through tools and checks, until the goal is reached.

    It stops when it is done or blocked, or out of steps or money, and reports. Tools that need your approval ask for
    it. Ctrl-C stops it; --continue goes on from its last step. The exit code is 0 if the goal is reached, else 1.

    Example: recto agent run "List the boats in my notes" --vault notes --max-steps 30
    """
    if bool(goal) == goes_on:
        raise click.UsageError("Give a goal, or --continue to go on with the last run, not both.")
    if agent and (conversation is not None or goes_on):
        raise click.UsageError("--agent is for a new conversation; this one has its own.")
    # the command would end before these are written, and they would still cost money
    flags.setdefault("references.gists", "off")
    flags.setdefault("context.prepare_at", "0")
    with options.open_desk(flags) as desk:
        talk = _place(desk, conversation, agent, goes_on=goes_on)
        for tool in allowed:
            talk.allow(tool)
        text = None if goes_on else " ".join(goal)
        if as_json:
            report = _emitted(talk.stream_goal(text, max_steps=max_steps, max_cost=max_cost, can_ask=False))
        else:
            from recto.cli.ask import open_listener  # beside this command only `recto ask` needs it

            listener = open_listener(thinking=thinking, stopped=STOPPED)
            events = talk.stream_goal(text, max_steps=max_steps, max_cost=max_cost, can_ask=listener.answers)
            report = follow_run(events, listener, talk)
    if not report.is_done:
        sys.exit(1)


def _place(desk: "Desk", conversation: str | None, agent: str | None, *, goes_on: bool) -> "Talk":
    if conversation is not None or goes_on:
        return options.find_talk(desk, conversation)
    return desk.conversation(agent=agent) if agent else desk.conversation()


def _emitted(events: "Generator[Event]") -> "RunReport":
    """The report, emitted as JSON, also that of a run which ends with an error."""
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
    """Passes all events to the listener and tells the report, also that of a run which ends with an error."""
    from recto.cli.drawing.plans import report_lines  # the engine's events: only to run
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
