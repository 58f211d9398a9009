"""What tools returned and the user had asked for is a statement like any other."""

from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Open, Script

from recto.api.blocking import Talk

# Each note says one figure that the user asks for, in the middle of others.
ASKED = {
    "Boiler": ("hot water temperature", "58"),
    "Car": ("torque of the wheel nuts", "118"),
    "Garden": ("depth of the pond", "84"),
    "Freezer": ("power it draws", "143"),
    "Piano": ("year it was tuned last", "2023"),
    "Roof": ("number of tiles in the shed", "376"),
    "Bicycle": ("length of the spare spokes", "262"),
    "Cellar": ("humidity in August", "71"),
    "Tent": ("weight of the poles", "1940"),
    "Router": ("port of the admin page", "8443"),
}


@pytest.fixture
def read_notes(desk: Open, script: Script, tmp_path: Path) -> Talk:
    """A conversation in which the user asks ten notes for one figure each. The model reads every note by a tool, keeps
    its replies short, and repeats no figure."""
    vault = tmp_path / "vault"
    vault.mkdir()
    steps = list[dict[str, Any]]()
    for name, (what, figure) in ASKED.items():
        (vault / f"{name}.md").write_text(
            f"# {name}\n\nBought second hand, papers in the blue folder.\n\nThe {what} is {figure}.\n\nNothing else.\n"
        )
        steps += [
            {"tool_calls": [{"name": "read_document", "arguments": {"path": f"{name}.md"}}]},
            {"text": f"I have it from the note about the {name.lower()}."},
        ]
    summary = {"text": "The user asks notes about the house for figures. Rent is 900 euros.", "when": "summary"}
    talk = desk(script(*steps, summary, tools=True), vault).conversation()
    for name, (what, _) in ASKED.items():
        talk.ask(f"What is the {what} in the note {name}? I need it at the end.")
    talk.compact()
    return talk


def told(talk: Talk) -> str:
    block = talk.summary_block()
    return "\n".join((block.summary, *block.ledger))


def test_a_compaction_keeps_the_figures_that_the_user_asked_notes_for(read_notes: Talk) -> None:
    text = told(read_notes)
    covered = [figure for name, (_, figure) in ASKED.items() if name not in ("Tent", "Router")]  # the last are as said
    assert [figure for figure in covered if figure not in text] == []
