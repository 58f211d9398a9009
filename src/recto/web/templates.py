"""Templates of the page. All values are escaped; only what `markdown.py` rendered goes in as HTML."""

import json
from contextlib import suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from recto.base.text import counted, dollars
from recto.chat.compaction_words import UNVERIFIED
from recto.web.markdown import rendered


def fill(template: str, /, **values: Any) -> str:
    """A template (without its ending) with these values."""
    return _environment().get_template(f"{template}.html").render(values)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "markdown": rendered,
        "summary": summary_html,
        "number": "{:,}".format,
        "clock": _clock,
        "day": lambda stored: _today(stored) or f"{_local(stored):%Y-%m-%d}",
        "moment": lambda stored: _today(stored) or _clock(stored),
        "dollars": dollars,
        "counted": counted,
        "pretty": pretty,
        "tool_name": _tool_name,
    }
    return made


def summary_html(text: str) -> Markup:
    """A summary with what nobody said marked. Each of its lines is one, as the model reads them."""
    # as plain text: Markup would escape what is put in
    made = str(rendered("  \n".join(text.split("\n"))))
    return Markup(made.replace(UNVERIFIED, f"<mark>{UNVERIFIED}</mark>"))


def _clock(stored: str) -> str:
    """A stored time as the user's clock shows it."""
    return f"{_local(stored):%Y-%m-%d %H:%M}"


def _today(stored: str) -> str:
    """The time of today; empty for any other day."""
    found = _local(stored)
    return f"{found:%H:%M}" if found.date() == datetime.now().astimezone().date() else ""


def _local(stored: str) -> datetime:
    return datetime.fromisoformat(stored).astimezone()


def pretty(arguments: str) -> str:
    """JSON on several lines, anything else as it is. A user has to judge it: invisible characters become numbers."""
    with suppress(ValueError, RecursionError):
        arguments = json.dumps(json.loads(arguments), indent=2, ensure_ascii=False)
    return "".join(sign if sign.isprintable() or sign in "\n\t" else f"\\u{ord(sign):04x}" for sign in arguments)


def _tool_name(call_name: str) -> str:
    """The name that people read (`github:create_issue`) for the name that a model calls (`github__create_issue`)."""
    server, parted, name = call_name.partition("__")
    return f"{server}:{name}" if parted and server and name else call_name
