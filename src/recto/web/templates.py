"""Templates of the page. All values are escaped; only the output of `markdown.py` goes in as HTML."""

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
    """Render a template (named without its ending)."""
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
    """A summary with its unverified parts marked, keeping its lines."""
    # as plain text: Markup would escape the replacement
    made = str(rendered("  \n".join(text.split("\n"))))
    return Markup(made.replace(UNVERIFIED, f"<mark>{UNVERIFIED}</mark>"))


def _clock(stored: str) -> str:
    """A stored time in local time."""
    return f"{_local(stored):%Y-%m-%d %H:%M}"


def _today(stored: str) -> str:
    """The time of day; empty if it was not today."""
    found = _local(stored)
    return f"{found:%H:%M}" if found.date() == datetime.now().astimezone().date() else ""


def _local(stored: str) -> datetime:
    return datetime.fromisoformat(stored).astimezone()


def pretty(arguments: str) -> str:
    """JSON on several lines, other text unchanged. A user has to judge it, so invisible characters are escaped."""
    with suppress(ValueError, RecursionError):
        arguments = json.dumps(json.loads(arguments), indent=2, ensure_ascii=False)
    return "".join(sign if sign.isprintable() or sign in "\n\t" else f"\\u{ord(sign):04x}" for sign in arguments)


def _tool_name(call_name: str) -> str:
    """The display name (`github:create_issue`) of a tool's name for models (`github__create_issue`)."""
    server, parted, name = call_name.partition("__")
    return f"{server}:{name}" if parted and server and name else call_name
