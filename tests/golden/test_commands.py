"""What every command prints, for people and as JSON, over a copy of the golden home."""

import shlex
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner
from tests.golden.command_lines import LINES, NOT_HERE, PREPARED
from tests.golden.conftest import Compare, World, pretty

from recto.cli.main import recto


def commands(of: click.Command, *names: str) -> Iterator[str]:
    if not isinstance(of, click.Group):
        yield " ".join(names)
        return
    context = click.Context(of)
    for name in of.list_commands(context):
        found = of.get_command(context, name)
        assert found
        yield from commands(found, *names, name)


def test_every_command_has_a_golden_file_or_a_reason() -> None:
    assert sorted(commands(recto)) == sorted([*LINES, *NOT_HERE])


@pytest.mark.parametrize("command", LINES)
def test_a_command_prints_what_it_did(command: str, world: World, compare: Compare) -> None:
    if prepare := PREPARED.get(command):
        prepare(world.root)
    told = [run(f"{command} {line}".strip()) for line in LINES[command]]
    compare(f"commands/{command.replace(' ', '-')}.txt", "\n".join(told))


def run(line: str) -> str:
    """The command, what it prints, notes and errors, and how it ends."""
    line, _, typed = line.partition(" <<< ")
    done = CliRunner().invoke(recto, shlex.split(line), input=typed.replace("\\n", "\n") or None)
    assert done.exception is None or isinstance(done.exception, SystemExit), (line, done.exc_info)
    parts = [f"$ recto {line}", *map(pretty, done.stdout.splitlines())]
    if done.stderr:
        parts += ["-- stderr", *map(pretty, done.stderr.splitlines())]
    if done.exit_code:
        parts.append(f"-- exit {done.exit_code}")
    return "\n".join(parts) + "\n"
