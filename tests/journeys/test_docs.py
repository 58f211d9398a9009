"""The pages in docs/ say what the code does: every setting, every field, every command they name is there."""

import re
from dataclasses import fields
from pathlib import Path

import click
import pytest

from recto import settings
from recto.chat.blocks import Compaction
from recto.cli.main import recto
from recto.cli.slash import COMMANDS

ROOT = Path(__file__).parents[2]
COMPACTION = (ROOT / "docs" / "compaction.md").read_text()


def test_every_setting_of_the_context_is_explained_with_its_default() -> None:
    for spec in settings.specs():
        if not spec.key.startswith("context.") or "budgets" in spec.key:
            continue
        default = str(spec.default).lower() if isinstance(spec.default, bool) else f"{spec.default}"
        shown = f"`{default}`" if default else "empty"
        assert f"| `{spec.key}` | {shown.replace('.0`', '`')} |" in COMPACTION, spec.key


def test_every_field_of_the_block_is_explained() -> None:
    for field in fields(Compaction):
        assert f"`{field.name}`" in COMPACTION, field.name


@pytest.mark.parametrize("words", sorted(set(re.findall(r"`recto ([a-z]+ [a-z]+)", COMPACTION))))
def test_every_command_that_is_named_exists(words: str) -> None:
    command: click.Command = recto
    for word in words.split():
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None, words
        command = found


def test_every_slash_command_that_is_named_exists() -> None:
    for name in set(re.findall(r"`/([a-z]+)", COMPACTION)):
        assert name in COMMANDS
