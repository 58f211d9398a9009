"""Progress: a bar on stderr while something long goes on; nothing at all where nobody watches."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from recto.cli import show

if TYPE_CHECKING:
    from rich.progress import Progress

Tell = Callable[[int, int], None]


@contextmanager
def bar(label: str) -> Iterator[Tell | None]:
    """Something to tell how many are done of how many; it is drawn when it is first told."""
    if not sys.stderr.isatty():
        yield None
        return
    with ExitStack() as stack:
        drawn: list[Progress] = []

        def tell(done: int, total: int) -> None:
            if not drawn:
                drawn.append(stack.enter_context(_drawn()))
                drawn[0].add_task(label)
            drawn[0].update(drawn[0].task_ids[0], completed=done, total=total)

        yield tell


def _drawn() -> "Progress":
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # slow

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=show.console(err=True), transient=True)
