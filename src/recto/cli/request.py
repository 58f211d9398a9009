"""`recto request`: what was sent: explained, compared, rebuilt to the byte, and proved."""

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
    """See, compare, rebuild and prove what was sent.

    Example: recto request show
    """


def record_to_json(record: "Record") -> dict[str, Any]:
    """The record as one object: its own fields, then what was decided, then what became of it."""
    fields = asdict(record)
    account, outcome = fields.pop("account"), fields.pop("outcome")
    return {**fields, **account, **outcome}


@command.command("show")
@click.argument("id", required=False)
@click.option("--all", "whole", is_flag=True, help="Fold no list, however long.")
@click.option("--source", metavar="SOURCE", help="Print the text of rule:NAME, ref:NAME or tool:SERVER/NAME as sent.")
@options.as_json_option
def show_request(id: str | None, whole: bool, source: str | None, as_json: bool) -> None:
    """Explain a request, or the one behind a reply (by default the last one of the latest conversation).

    Example: recto request show --all
    """
    with options.open_desk() as desk:
        record = record_to_json(desk.record(_found(desk, id)))
        if source is not None:
            _print_source(desk, record, source, as_json=as_json)
            return
    if as_json:
        show.emit(record)
        return
    from recto.cli.picture import draw_request  # rich: a tenth of a second

    draw_request(show.console(), record, whole=whole)


def _print_source(desk: "Desk", record: dict[str, Any], source: str, *, as_json: bool) -> None:
    """By its hash: whatever its file says today."""
    from recto.sources.source import SourceId  # with what it stands on, only here
    from recto.store.side import item_of

    wanted = SourceId.parse(source)
    key = wanted.kind, wanted.name, wanted.server
    picks = [pick for section in record.get("sections") or () for pick in section.get("picks") or ()]
    sent = [pick for pick in picks if item_of("", pick).key == key]
    if not sent:
        raise NotFound(f"{wanted} was not sent with request {record['id']}", source=source)
    if not (sha256 := sent[0].get("sha256")):
        raise NotFound(f"the text of {wanted} is not kept: request {record['id']} names it without a hash")
    text = desk.store.kept.get(sha256).decode(errors="replace")
    show.emit({**sent[0], "text": text}) if as_json else show.say(text)


def _found(desk: "Desk", id: str | None) -> str:
    """The request that is meant: by its id, by a message's, as `last` or `previous`, or the last."""
    if id in (None, "last", "previous"):
        last = _latest(desk)
        return desk.store.records.before(last) if id == "previous" else last
    return desk.store.records.named(str(id))


def _latest(desk: "Desk") -> str:
    talk = options.find_talk(desk, None)
    assert talk.id is not None
    if (found := desk.store.records.latest(talk.id)) is None:
        raise NotFound(f"nothing was sent yet in conversation {talk.id}")
    return found


@command.command("diff")
@click.argument("before", required=False, metavar="[A]")
@click.argument("after", required=False, metavar="[B]")
@click.option("--all", "whole", is_flag=True, help="Fold no list and no text, however long.")
@options.as_json_option
def diff(before: str | None, after: str | None, whole: bool, as_json: bool) -> None:
    """Compare request A with B: what came in, went out and changed, and what broke the prefix.

    A alone is compared with the one before it; nothing named, the last one is. A reply's id stands for its request,
    `last` and `previous` for the last two of the latest conversation.

    Example: recto request diff previous last
    """
    with options.open_desk() as desk:
        records = desk.store.records
        one = _found(desk, before)
        found = records.compare(one, _found(desk, after)) if after else records.compare(records.before(one), one)
    if as_json:
        show.emit(found.to_json())
        return
    from recto.cli.difference import draw_difference  # rich: a tenth of a second

    draw_difference(show.console(), found, whole=whole)


@command.command("rebuild")
@click.argument("id", required=False)
@click.option("--output", "-o", metavar="FILE", help="Write to this file instead of stdout.")
def rebuild(id: str | None, output: str | None) -> None:
    """Print the exact bytes that were sent, and nothing else.

    Example: recto request rebuild -o request.json
    """
    with options.open_desk() as desk:
        body = desk.rebuild(_found(desk, id))
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
        records = desk.store.records
        wanted = records.ids() if all_of_them else [_found(desk, id) for id in ids]
        for id, difference in records.differences(wanted):
            differs = differs or difference is not None
            if as_json:
                show.emit({"request": id, "ok": difference is None, "difference": difference})
            else:
                show.say(f"ok {id}" if difference is None else f"ALTERED {id}: {difference}")
    if differs:
        sys.exit(1)
