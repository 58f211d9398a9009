"""Times as percentiles, and tables of plain text with the goal beside the figure. Knows nothing of what is measured."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table

WIDTH = 160


@dataclass(frozen=True, slots=True)
class Times:
    """Durations of the same thing, in seconds."""

    seconds: tuple[float, ...]

    @property
    def p50(self) -> float:
        return statistics.median(self.seconds)

    @property
    def p95(self) -> float:
        """By nearest rank: a time that was really measured."""
        return sorted(self.seconds)[math.ceil(0.95 * len(self.seconds)) - 1]


def ms(seconds: float) -> str:
    """Milliseconds with three digits that mean something."""
    value = seconds * 1000
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def judged(figure: float, goal: float, shown: str) -> str:
    """The goal, and whether the figure keeps to it."""
    return f"{shown}: {'met' if figure <= goal else 'MISSED'}"


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> None:
    """The first column is text, the others are figures."""
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console = Console(width=WIDTH, highlight=False, markup=False, emoji=False)
    console.print(table)
    for note in notes:
        console.print(f"  {note}", soft_wrap=True)
    console.print()
