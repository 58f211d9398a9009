"""Moment: a time that is given on the command line."""

from datetime import UTC, datetime

import click


class Moment(click.ParamType[str]):
    """A date or time, as stored times are written. Without a zone it is the user's own time."""

    name = "time"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            moment = datetime.fromisoformat(value).astimezone(UTC)
            return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        except (ValueError, OverflowError):
            self.fail(f"{value} is no time; write 2026-01-31 or 2026-01-31T18:00", param, ctx)
