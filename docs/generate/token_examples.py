"""The tables of docs/tokens.md: a conversation over the example vault that the real engine holds, and what it counted.

The model is scripted, so that nothing is sent; its replies and their length are those of every run.
"""

import json
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from docs.generate.limits import ROOT

from recto.blocking import Desk, Talk, open_desk
from recto.chat.message import Usage
from recto.providers.catalog import ModelCatalog
from recto.providers.model import Model
from recto.providers.prices import Prices
from recto.text import dollars
from recto.window.window import Window

LIMIT = 32_768
PRICED = "anthropic:claude-sonnet-4-5"
QUIET = {"search.embedder": "none", "store.backup": False, "references.gists": False, "context.prepare_at": 0}
QUESTION = "Which reef goes in when? See [[Rigging#Reefing]]."
ANSWER = "The second reef goes in from 24 knots on, and the jib comes in as well. " * 12
LONG = "Please compare the survey, the budget and the plan for the next season, and say what is still open. " * 4
FILE = "@notes/boat/Survey report.md"
"""A path is a file that goes in whole."""


def token_parts() -> dict[str, str]:
    """The tables by their names."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "script.json")
        script.write_text(json.dumps({"limit": LIMIT, "steps": [{"text": ANSWER}]}))
        with open_desk(
            home=Path(folder, "home"), model=f"scripted:{script}", vault=ROOT / "examples" / "vault", settings=QUIET
        ) as desk:
            return {
                "budget": _budget(desk.conversation().window(QUESTION)),
                "costs": _costs(desk),
                "compaction": _compaction(desk.conversation()),
                "cache": _cache(desk.conversation()),
            }


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "".join(f"| {' | '.join(_shown(cell) for cell in line)} |\n" for line in lines)


def _shown(cell: object) -> str:
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
