"""`recto request`: requests that were sent: explained, compared, rebuilt to the byte, and verified."""

import sys
from pathlib import Path

import click

from recto.cli import options, show
from recto.errors import Invalid
from recto.reports.transcript import ids_in


@click.group()
def command() -> None:
    """See, compare, rebuild and prove what was sent.

    Example: recto request show
    """


@command.command("show")
@click.argument("id", required=False)
@click.option("--all", "whole", is_flag=True, help="Fold no list, however long.")
@click.option("--source", metavar="SOURCE", help="Print the text of rule:NAME, ref:NAME or tool:SERVER/NAME as sent.")
@options.as_json_option
def show_request(id: str | None, whole: bool, source: str | None, as_json: bool) -> None:
    """Explain a request (by default the last one of the latest conversation).

    ID is the number of the reply that it got, such as 12, its own id or that of a message.

    Example: recto request show --all
    """
    with options.open_reader() as reader:
        if source is not None:
            sent = reader.sent_source(id, source)
            show.emit({**sent.pick.to_json(), "text": sent.text}) if as_json else show.say(sent.text)
            return
        record = reader.record(id).to_json()
        if as_json:
            show.emit(record)
            return
        from recto.cli.drawing.requests import draw_request  # rich: a tenth of a second

        draw_request(show.console(), reader.numbered(record), whole=whole)


@command.command("diff")
@click.argument("before", required=False, metavar="[A]")
@click.argument("after", required=False, metavar="[B]")
@click.option("--all", "whole", is_flag=True, help="Fold no list and no text, however long.")
@options.as_json_option
def diff(before: str | None, after: str | None, whole: bool, as_json: bool) -> None:
    """Compare request A with B: what came in, went out and changed, and what broke the prefix.

    A alone is compared with the one before it; without A, the last one is. A reply's number or id stands for its
    request, `last` and `previous` for the last two of the latest conversation.

    Example: recto request diff previous last
    """
    with options.open_reader() as reader:
        found = reader.compare(before, after)
        if as_json:
            show.emit(found.to_json())
            return
        from recto.cli.drawing.requests import draw_difference  # rich: a tenth of a second

        names = reader.short_names(ids_in(found.to_json()))
    draw_difference(show.console(), found, names=names, whole=whole)


@command.command("rebuild")
@click.argument("id", required=False)
@click.option("--output", "-o", metavar="FILE", help="Write to this file instead of stdout.")
def rebuild(id: str | None, output: str | None) -> None:
    """Print the exact bytes that were sent, and nothing else.

    Example: recto request rebuild -o request.json
    """
    with options.open_reader() as reader:
        body = reader.rebuild(id)
    if output is None:
        show.hand_over(body)
        return
    try:
        Path(output).write_bytes(body)
    except OSError as why:
        raise Invalid(f"cannot write {output}: {why.strerror}", path=output) from why


@command.command("verify")
@click.argument("ids", nargs=-1)
@click.option("--all", "all_of_them", is_flag=True, help="Every request of every conversation.")
@options.as_json_option
def verify(ids: tuple[str, ...], all_of_them: bool, as_json: bool) -> None:
    """Prove that requests still rebuild to the bytes that were sent; exit 1 when one does not.

    A request that never left, because there was no key or no connection, is told as not sent.

    Example: recto request verify --all
    """
    if bool(ids) == all_of_them:
        raise click.UsageError("Name the requests to verify, or give --all.")
    differs = False
    with options.open_reader() as reader:
        named = None if all_of_them else ids
        unsent = reader.unsent(named)
        for id, difference in reader.verify(named):
            differs = differs or difference is not None
            if as_json:
                sent = {"sent": id not in unsent}
                show.emit({"request": id, "ok": difference is None, "difference": difference, **sent})
            else:
                kept = f"not sent {id}" if id in unsent else f"ok {id}"
                show.say(kept if difference is None else f"ALTERED {id}: {difference}")
    if differs:
        sys.exit(1)
