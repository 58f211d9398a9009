"""What every slash command of the chat prints, line by line, over a copy of the golden home."""

import shlex

import pytest
from click.testing import CliRunner
from tests.golden.conftest import Compare, World

from recto.cli.main import recto
from recto.cli.slash import COMMANDS

A, BRANCHES, CLERK = "-c 'By a model'", "-c Branches", "-c 'The clerk'"
NOTES = "-c 'Tools and notes' --vault ../notes"
# Where the chat goes on, and what is typed in it.
LINES: dict[str, tuple[str, list[str]]] = {
    "help": (BRANCHES, ["/help", *(f"/help {name}" for name in COMMANDS), "/help nothing", "/comapct"]),
    "context": (A, ["/context", "/context Who owns her?"]),
    "compact": ("-c 'Revised by hand'", ["/compact", "/compact the prices"]),
    "uncompact": (A, ["/uncompact", "/uncompact", "/uncompact"]),
    "summary": ("-c 'Chosen sentences'", ["/summary", "/summary lost", "/summary nothing"]),
    "pin": (BRANCHES, ["/pin", "/pin 1", "/pin 99"]),
    "unpin": ("-c 'Revised by hand'", ["/unpin", "/unpin 1", "/unpin"]),
    "priority": (BRANCHES, ["/priority 1 9", "/priority 1 11", "/priority"]),
    "strategy": (BRANCHES, ["/strategy", "/strategy hybrid", "/strategy default", "/strategy nonsense"]),
    "set": (
        BRANCHES,
        ["/set", "/set context.threshold 0.7", "/set", "/set context.threshold", "/set context.threshold 9"],
    ),
    "unset": ("-c 'Prepared ahead'", ["/unset context.prepare_at", "/unset nonsense", "/unset"]),
    "history": (A, ["/history", "/history 3", "/history x"]),
    "conversations": (BRANCHES, ["/conversations", "/conversations goal", "/conversations xyzzy"]),
    "switch": (BRANCHES, ["/switch 1", "/switch 'A goal'", "/switch A goal reached", "/switch 99"]),
    "search": (BRANCHES, ["/search euros Ada", "/search xyzzy", "/search"]),
    "rules": (
        CLERK,
        ["/rules", "/rules remove night", "/rules add style", "/rules mode style manual", "/rules all", "/rules add x"],
    ),
    "references": (
        CLERK,
        ["/references", "/references all", "/references remove prices", "/references mode prices always"],
    ),
    "tools": (
        NOTES,
        [
            "/tools",
            "/tools remove recto/read_document",
            "/tools all",
            "/tools ask recto/read_document",
        ],
    ),
    "memory": (
        BRANCHES,
        [
            "/memory",
            "/memory add The cat is called Miso",
            "/memory where does Anna live",
            "/memory forget 3",
            "/memory forget x",
        ],
    ),
    "document": (NOTES, ["/document", "/document Sorrel.md", "/document none", "/document Nowhere.md"]),
    "attach": (BRANCHES, ["/attach", "/attach paste.txt", "/attach dot.png", "/attach none", "/attach nothing.txt"]),
    "undo": (BRANCHES, ["/undo", "/undo"]),
    "fork": (BRANCHES, ["/fork", "/fork 1", "/fork 99"]),
    "branches": (BRANCHES, ["/branches", "/branches 1", "/branches 99"]),
    "edit": (BRANCHES, ["/edit", "/edit 1 Where was she?", "/edit 2 no"]),
    "regenerate": (BRANCHES, ["/regenerate", "/regenerate scripted:models/eyes.json", "/regenerate nobody:nothing"]),
    "goal": ("-c 'A goal out of steps' --vault ../notes", ["/goal", "/goal continue 4", "/goal stop", "/goal"]),
    "rename": (BRANCHES, ["/rename The cutter", "/rename"]),
    "hide": (BRANCHES, ["/hide", "/conversations"]),
    "delete": (BRANCHES, ["/delete", "/history"]),
    "export": (BRANCHES, ["/export", "/export talk.html", "/export talk.jsonl", "/export talk.jsonl"]),
    "model": (BRANCHES, ["/model", "/model scripted:models/small.json", "/model nobody:nothing"]),
    "clear": (BRANCHES, ["/clear", "/context"]),
    "request": (NOTES, ["/request", "/request 2", "/request 99"]),
    "waiting": (BRANCHES, ["/waiting", "/waiting drop", "/waiting x"]),
    "cost": (A, ["/cost"]),
    "thinking": (A, ["/thinking", "/thinking off", "/thinking on", "And so?", "/thinking maybe"]),
    "quit": (BRANCHES, ["/quit", "/help"]),
}


def test_every_slash_command_has_a_golden_file() -> None:
    assert list(LINES) == list(COMMANDS)


@pytest.mark.parametrize("command", LINES)
def test_a_slash_command_prints_what_it_did(command: str, world: World, compare: Compare) -> None:
    arguments, lines = LINES[command]
    done = CliRunner().invoke(recto, ["chat", *shlex.split(arguments)], input="\n".join(lines) + "\n")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    typed = "".join(f"> {line}\n" for line in lines)
    text = f"$ recto chat {arguments}\n{typed}{done.output}-- exit {done.exit_code}\n"
    compare(f"slash/{command}.txt", "\n".join(line.rstrip() for line in text.splitlines()) + "\n")
