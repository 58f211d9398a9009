"""`recto request`: explain, compare, rebuild and verify recorded requests."""

import sys

import click

from recto.cli import options, show
from recto.wire import ids_in


@click.group()
def command() -> None:
    """See, compare, rebuild and verify what was sent.

    Example: recto request show
    """


@command.command("show")
@click.argument("id", required=False)
@click.option("--all", "whole", is_flag=True, help="Show lists whole, however long.")
@click.option("--source", metavar="SOURCE", help="Print the text of rule:NAME, ref:NAME or tool:SERVER/NAME as sent.")
@options.as_json_option
def show_request(id: str | None, whole: bool, source: str | None, as_json: bool) -> None:
    """Explain a request (by default the last one of the latest conversation).

    ID is the number of its reply, such as 12, or the id of the request or of a message.

    Example: recto request show --all
    """
    with options.open_queries() as reader:
        if source is not None:
            sent = reader.sent_source(id, source)
            show.answer({**sent.pick.to_json(), "text": sent.text} if as_json else sent.text)
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
@click.option("--all", "whole", is_flag=True, help="Show lists and texts whole, however long.")
@options.as_json_option
def diff(before: str | None, after: str | None, whole: bool, as_json: bool) -> None:
    """Compare request A with B: what was added, removed and changed, and what broke the prefix.

    A alone is compared with the one before it; without A, the last one is. The number or id of a reply means its
    request; `last` and `previous` are the last two of the latest conversation.

    Example: recto request diff previous last
    """
    with options.open_queries() as reader:
        found = reader.compare(before, after)
        if as_json:
            show.emit(found.to_json())
            return
        from recto.cli.drawing.requests import draw_difference  # rich: a tenth of a second

        names = reader.short_names(ids_in(found.to_json()))
    draw_difference(show.console(), found, names=names, whole=whole)


@command.command("rebuild")
@click.argument("id", required=False)
@options.output_option
def rebuild(id: str | None, output: str | None) -> None:
    """Print the exact bytes that were sent, and nothing else.

    Example: recto request rebuild -o request.json
    """
    with options.open_queries() as reader:
        body = reader.rebuild(id)
    show.write(output, body)


@command.command("verify")
@click.argument("ids", nargs=-1)
@click.option("--all", "all_of_them", is_flag=True, help="Every request of every conversation.")
@options.as_json_option
def verify(ids: tuple[str, ...], all_of_them: bool, as_json: bool) -> None:
    """Verify that requests still rebuild to the bytes that were sent; exit 1 if one does not.

    A request that never left, because there was no key or no connection, is shown as not sent.

    Example: recto request verify --all
    """
    if bool(ids) == all_of_them:
        raise click.UsageError("Name the requests to verify, or give --all.")
    named, differs = None if all_of_them else ids, False
    with options.open_queries() as reader:
        unsent = reader.unsent(named)
        for id, difference in reader.verify(named):
            differs = differs or difference is not None
            if as_json:
                show.emit({"request": id, "ok": difference is None, "difference": difference, "sent": id not in unsent})
            elif difference is not None:
                show.say(f"ALTERED {id}: {difference}")
            else:
                show.say(f"not sent {id}" if id in unsent else f"ok {id}")
    if differs:
        sys.exit(1)
