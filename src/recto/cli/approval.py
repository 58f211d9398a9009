"""Approval: a tool that wants to run, shown with what it would be given, and the user's answer to it."""

import json
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from recto.cli.keys import forget_keys
from recto.cli.picture import rule
from recto.cli.revealed import revealed
from recto.cli.show import counted, shortened
from recto.events import Answer, ApprovalAsked

# Rows that the question and what stands around the arguments take, and what the arguments have at least.
AROUND, LEAST_ROWS = 8, 6
# So much is shown of a long text within the arguments: nothing can be hidden behind it.
LONGEST = 300
ANSWERS: dict[str, Answer] = {
    "y": "allowed",
    "yes": "allowed",
    "a": "always",
    "always": "always",
    "": "denied",
    "n": "denied",
    "no": "denied",
}
ALL = ("s", "show", "show all")


def ask_user(console: Console, event: ApprovalAsked) -> Answer:
    """What the user says; the end of the input says no. Ctrl-C is left to the caller."""
    raw = event.call.arguments
    shown = fitted(console, raw)
    _show(console, event, shown)
    forget_keys()
    while True:
        try:
            said = console.input(_question(shown)).strip().lower()
        except EOFError:
            console.print()
            return "denied"
        if said in ANSWERS:
            return ANSWERS[said]
        if said in ALL and shown.is_cut:
            shown = Shown(pretty(raw))
            console.print(Text(shown.text))


@dataclass(frozen=True, slots=True)
class Shown:
    """Arguments as the user reads them."""

    text: str
    is_cut: bool = False


def _question(shown: Shown) -> Text:
    more = "[s]how all / " if shown.is_cut else ""
    return Text(f"run it? [y]es / [a]lways in this conversation / {more}[N]o ", "bold")


def _show(console: Console, event: ApprovalAsked, shown: Shown) -> None:
    tool = event.tool
    console.print(rule(revealed(f"{tool.server} wants to run {tool.own_name or tool.name}"), console.width))
    if described := shortened(revealed(tool.description, "\n\t"), console.width):
        console.print(Text(described, "dim"))
    console.print(Text(shown.text))
    if shown.is_cut:
        console.print(Text(f"… cut: {counted(len(event.call.arguments), 'character')} in all", "yellow"))


def fitted(console: Console, raw: str) -> Shown:
    """As much of the arguments as leaves the question on the screen; long texts are shortened before a value goes."""
    most, width = max(LEAST_ROWS, console.size.height - AROUND), console.width
    said = pretty(raw)
    if len(said) <= most * width and len(_rows(console, said)) <= most:
        return Shown(said)
    rows = _rows(console, pretty(raw, LONGEST)[: most * width])
    return Shown("\n".join(rows[:most]), is_cut=True)


def _rows(console: Console, said: str) -> list[str]:
    return [row.plain for row in Text(said).wrap(console, console.width, overflow="fold")]


def pretty(raw: str, longest: int | None = None) -> str:
    """Arguments laid out as the JSON that they are as a rule, or as they came; texts in them up to a length."""
    try:
        said = json.dumps(_cut(json.loads(raw or "{}"), longest), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        said = _cut(raw, longest)
    return revealed(said, "\n")


def _cut(value: Any, longest: int | None) -> Any:
    if isinstance(value, str) and longest is not None and len(value) > longest:
        return f"{value[:longest]}… ({len(value) - longest:,} more)"
    if isinstance(value, list):
        return [_cut(each, longest) for each in value]
    if isinstance(value, dict):
        return {key: _cut(each, longest) for key, each in value.items()}
    return value
