"""docs/transfer.md says what the code does."""

import re
from pathlib import Path
from typing import get_args

import click
import pytest

from recto.chat.blocks import BLOCKS
from recto.cli.main import recto
from recto.store.conversation_copy import UsedSource
from recto.store.schema import metadata
from recto.transfer import recto_json
from recto.transfer.report import EXPORT_FORMATS, IMPORT_FORMATS, Outcome

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "transfer.md").read_text()


def test_every_field_of_a_line_is_explained() -> None:
    kinds = get_args(recto_json.AnyLine)
    assert len(kinds) == 8
    missing = [
        f"{kind.__struct_config__.tag}.{name}"
        for kind in kinds
        for name in (str(kind.__struct_config__.tag), *kind.__struct_fields__)
        if f"`{name}`" not in PAGE
    ]
    assert missing == []
    assert [name for name in (*BLOCKS, *UsedSource.__struct_fields__) if f"`{name}`" not in PAGE] == []


def test_every_format_and_every_table_of_the_store_is_explained() -> None:
    assert [name for name in (*EXPORT_FORMATS, *IMPORT_FORMATS) if f"| `{name}` |" not in PAGE] == []
    assert [name for name in metadata.tables if f"`{name}`" not in PAGE] == []


def test_every_outcome_is_named_for_programs() -> None:
    told = (ROOT / "docs" / "python.md").read_text()
    assert [name for name in get_args(Outcome) if name not in told] == []


@pytest.mark.parametrize(("group", "name"), [("context", "export"), ("context", "import"), ("conversations", "replay")])
def test_every_option_of_the_page_is_one_of_the_command(group: str, name: str) -> None:
    commands = recto.get_command(click.Context(recto), group)
    assert isinstance(commands, click.Group)
    options = {option for each in commands.commands[name].params for option in each.opts}
    told = set(re.findall(r"--[a-z-]+", PAGE))
    assert {option for option in options if option.startswith("--")} - {"--output", "--json", "--conversation"} <= told
