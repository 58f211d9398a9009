"""`recto context whatif`: the past planned again with another strategy, window, model or setting, beside what was."""

from typing import TYPE_CHECKING

import click

from recto.cli import completion, options, show
from recto.cli.terminal import bar
from recto.errors import NotFound

if TYPE_CHECKING:
    from recto.api.blocking import Talk
    from recto.reports.what_if import PlanOptions


@click.command("whatif")
@click.argument("message", metavar="[REPLY]", required=False)
@options.home_option
@click.option("--all", "everything", is_flag=True, help="Plan all turns again, a way through them for each strategy.")
@click.option(
    "--strategy",
    "strategies",
    metavar="NAME",
    multiple=True,
    shell_complete=completion.strategies,
    help="Another strategy; with --all it can be given several times (default: all of them).",
)
@click.option("--window", type=click.IntRange(1), metavar="TOKENS", help="Another size of the window.")
@click.option("--model", "-m", metavar="NAME", shell_complete=completion.models, help="Another model.")
@click.option("--set", "assignments", metavar="KEY=VALUE", multiple=True, help="Another setting of context.")
@click.option("--from-start", is_flag=True, help="As if it had been so from the first message on.")
@options.as_json_option
def what_if(
    message: str | None,
    conversation: str | None,
    everything: bool,
    strategies: tuple[str, ...],
    window: int | None,
    model: str | None,
    assignments: tuple[str, ...],
    from_start: bool,
    as_json: bool,
) -> None:
    """Plan a past turn again, and show the window that it would have had beside the one it had.

    REPLY is the number or id of a reply, or of the message that it answers (default: the last reply). No model is asked
    and nothing is stored. What was compacted before that turn stays compacted, unless --from-start is given. With --all
    every turn of the conversation is planned again, from the first on.

    Example: recto context whatif 4 --strategy hybrid --window 2000
    """
    if everything and (message or from_start):
        raise click.UsageError("--all plans all turns from the start: give no REPLY and no --from-start with it.")
    if len(strategies) > 1 and not everything:
        raise click.UsageError("Give one --strategy, or several with --all.")
    changes: PlanOptions = {
        "window": window,
        "model": model,
        "settings": dict(options.assignment("--set", text) for text in assignments),
    }
    with options.open_desk({}) as desk:
        talk = desk.talk_with(message, conversation) if message else options.find_talk(desk, conversation)
        if everything:
            _compare(talk, strategies, changes, as_json=as_json)
            return
        strategy = strategies[0] if strategies else None
        found = talk.what_if(message or _last(talk), strategy=strategy, from_start=from_start, **changes)
        if as_json:
            show.emit(found.to_json())
            return
        from recto.cli.drawing.what_if import draw_what_if  # rich: a tenth of a second

        draw_what_if(show.console(), talk.name, found)


def _last(talk: "Talk") -> str:
    record = talk.last_request()
    named = record and (record.outcome.get("reply") or record.message)
    if not named:
        raise NotFound(f"nothing was sent yet in {talk.name}: there is no turn to plan again")
    return str(named)


def _compare(talk: "Talk", strategies: tuple[str, ...], changes: "PlanOptions", *, as_json: bool) -> None:
    with bar("planning turns") as tell:
        found = talk.compare_strategies(strategies, tell, **changes)
    if as_json:
        show.emit(found.to_json())
        return
    from recto.cli.drawing.what_if import draw_comparison  # rich: a tenth of a second

    draw_comparison(show.console(), talk.name, found)
