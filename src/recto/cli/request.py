"""`recto request`: what was sent: explained, rebuilt to the byte, and proved."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recto.cli import options, show
from recto.errors import Invalid, NotFound

if TYPE_CHECKING:
    from recto.desk import Desk
    from recto.store.records import Record


@click.group()
def command() -> None:
    """See, rebuild and prove what was sent.

    Example: recto request show
    """


def record_to_json(record: "Record") -> dict[str, Any]:
    """The record as one object: its own fields, then what was decided, then what became of it."""
    fields = asdict(record)
    account, outcome = fields.pop("account"), fields.pop("outcome")
    return {**fields, **account, **outcome}


@command.command("show")
@click.argument("id", required=False)
@options.as_json_option
def show_request(id: str | None, as_json: bool) -> None:
    """Explain a request (by default the last one of the latest conversation).

    Example: recto request show
    """
    with options.open_desk() as desk:
        record = record_to_json(desk.record(id or _latest(desk)))
    if as_json:
        show.emit(record)
        return
    from recto.cli.picture import draw_request  # rich: a tenth of a second

    draw_request(show.console(), record)


def _latest(desk: "Desk") -> str:
    talk = options.find_talk(desk, None)
    assert talk.id is not None
    if (found := desk.store.records.latest(talk.id)) is None:
        raise NotFound(f"nothing was sent yet in conversation {talk.id}")
    return found


@command.command("rebuild")
@click.argument("id", required=False)
@click.option("--output", "-o", metavar="FILE", help="Write to this file instead of stdout.")
def rebuild(id: str | None, output: str | None) -> None:
    """Print the exact bytes that were sent, and nothing else.

    Example: recto request rebuild -o request.json
    """
    with options.open_desk() as desk:
        body = desk.rebuild(id or _latest(desk))
    if output is None:
        sys.stdout.buffer.write(body)
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

    Example: recto request verify --all
    """
    if bool(ids) == all_of_them:
        raise click.UsageError("Name the requests to verify, or give --all.")
    differs = False
    with options.open_desk() as desk:
        for id, difference in desk.verify(None if all_of_them else ids):
            differs = differs or difference is not None
            if as_json:
                show.emit({"request": id, "ok": difference is None, "difference": difference})
            else:
                show.say(f"ok {id}" if difference is None else f"ALTERED {id}: {difference}")
    if differs:
        sys.exit(1)
