"""Messages without a time of their own: no summary, recall or search gives them a day that nobody knows."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Open, Script
from tests.said import user_sentences

from recto.api.blocking import Desk, Talk

Json = Any
SAID = "We decided last Friday that Ada Lovelace pays 4,200 euros for the winch."
HISTORY = [
    {"role": role, "content": text}
    for said in (SAID, *user_sentences()[:20])
    for role, text in (("user", said), ("assistant", "Yes."))
]
NOW = "We decided yesterday that Grace Hopper pays 310 euros for the crane."
DAY = re.compile(r"20\d\d-\d\d")
STEPS = ({"text": "Fine."}, {"error": "unreachable", "when": "summary"})


def imported(at: Desk, file: Path) -> Talk:
    file.write_text(json.dumps(HISTORY))
    talk = at.conversation(at.import_file(file).conversations[0].id)
    talk.ask(NOW)
    return talk


def given(at: Desk, _: Path) -> Talk:
    talk = at.conversation()
    talk.extend([*HISTORY, {"role": "user", "content": NOW}])
    return talk


@pytest.mark.parametrize("brought", [imported, given])
def test_no_message_gets_a_day(
    desk: Open, script: Script, tmp_path: Path, brought: Callable[[Desk, Path], Talk]
) -> None:
    at = desk(script(*STEPS, limit=3000))
    talk = brought(at, tmp_path / "history.json")
    for start in range(100, 200, 10):
        talk.ask(" ".join(user_sentences()[start : start + 10]))
    block = talk.summary_block()
    told = f"{block.summary}\n{block.ledger}"
    assert "last Friday that Ada Lovelace" in told
    assert DAY.findall(told) == []
