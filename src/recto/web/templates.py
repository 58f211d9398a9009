"""Templates of the page. All values are escaped; only what `markdown.py` rendered goes in as HTML."""

from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from recto.base.text import counted, dollars
from recto.chat.compaction_words import UNVERIFIED
from recto.web.markdown import rendered

FOLDER = Path(__file__).parent / "templates"


def fill(template: str, /, **values: Any) -> str:
    """A template (without its ending) with these values."""
    return _environment().get_template(f"{template}.html").render(values)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "markdown": rendered,
        "summary": summary_html,
        "number": number,
        "clock": clock,
        "day": day,
        "moment": moment,
        "dollars": dollars,
        "counted": counted,
    }
    return made


def summary_html(text: str) -> Markup:
    """A summary with what nobody said marked. Each of its lines is one, as the model reads them."""
    # as plain text: Markup would escape what is put in
    made = str(rendered("  \n".join(text.split("\n"))))
    return Markup(made.replace(UNVERIFIED, f"<mark>{UNVERIFIED}</mark>"))


def number(value: float) -> str:
    return f"{value:,}"


def clock(stored: str) -> str:
    """A stored time as the user's clock shows it."""
    return _local(stored).strftime("%Y-%m-%d %H:%M")


def day(stored: str) -> str:
    """Today's as a time, others as a date."""
    return _today(stored) or f"{_local(stored):%Y-%m-%d}"


def moment(stored: str) -> str:
    """Today's as a time, others as date and time."""
    return _today(stored) or clock(stored)


def _today(stored: str) -> str:
    """The time of today; empty for any other day."""
    found = _local(stored)
    return f"{found:%H:%M}" if found.date() == datetime.now().astimezone().date() else ""


def _local(stored: str) -> datetime:
    return datetime.fromisoformat(stored).astimezone()
