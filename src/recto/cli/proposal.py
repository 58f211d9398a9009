"""Asking first: a compaction that is proposed, shown with its numbers, and the user's answer to it."""

from rich.console import Console
from rich.text import Text

from recto.chat.blocks import Compaction
from recto.cli.compaction import besides, block_in_words
from recto.cli.editor import edited
from recto.cli.keys import forget_keys
from recto.cli.markdown import Page
from recto.cli.picture import rule
from recto.cli.show import visible
from recto.errors import Invalid

QUESTION = "use it? [Y]es / [e]dit / [n]ot now "
ANSWERS = {"": "yes", "y": "yes", "yes": "yes", "e": "edit", "edit": "edit", "n": "no", "no": "no", "not now": "no"}


def ask_user(console: Console, block: Compaction) -> str | None:
    """The summary to use, as it is proposed or as the user edited it; None for not now, which Ctrl-C says too."""
    _show(console, block)
    forget_keys()
    try:
        while (answer := _answer(console)) != "no":
            if answer == "yes":
                return block.summary
            if answer == "edit" and (changed := _edited(console, block.summary)):
                return changed
    except (KeyboardInterrupt, EOFError):
        console.print()
    return None


def _show(console: Console, block: Compaction) -> None:
    console.print(rule(f"to be compacted: {block.because}", console.width))
    console.print(Page(visible(block.summary) or "(no summary: the messages are archived, and that is all)"))
    console.print(Text(visible(block_in_words(block)), "dim"))
    for line in besides(block.notes, len(block.excerpts), block.checks):
        console.print(Text(f"· {visible(line)}", "dim"))


def _answer(console: Console) -> str:
    said = console.input(Text(QUESTION, "bold"))
    return ANSWERS.get(said.strip().lower(), "")


def _edited(console: Console, summary: str) -> str | None:
    """What the user made of it, when it can be used: whoever saves another text wants that one."""
    try:
        changed = edited(summary)
    except Invalid as why:
        console.print(Text(visible(why.message), "red"))
        return None
    if not changed:
        console.print(Text("it is unchanged" if changed is None else "an empty summary says nothing", "dim"))
    return changed
