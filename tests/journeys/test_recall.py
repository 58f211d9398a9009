"""Nothing is out of reach: what a compaction covers comes back when it matters, to the model and to the user."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.journeys.boat import ASKED, REPLY, SAID, last_text, tell, write_script

from recto.api.blocking import open_desk


@pytest.fixture
def home(tmp_path: Path, real_embedder: None) -> Path:
    """With the real embedder, as it is installed."""
    return tmp_path / "home"


def test_what_is_archived_comes_back_when_it_is_asked_for_in_other_words(home: Path, tmp_path: Path) -> None:
    model = write_script(tmp_path / "script.json", REPLY)
    tell(home, model)
    with open_desk(home=home, model=model) as desk:
        talk = desk.latest()
        assert talk is not None
        reply = talk.ask(ASKED)
        assert f"#1 user: {SAID[0]}\n" in last_text(desk, reply.request_id)
        # the question itself is found too, once its vector is made
        places = {each.message.text: each.place for each in desk.search("who repaired the wood under the mast")[:2]}
        assert places[SAID[0]] == "archived"
        talk.clear()
        cleared = talk.ask(ASKED)
        assert "Harlan" not in desk.rebuild(cleared.request_id).decode()
        assert desk.search("Harlan")[0].message.text == SAID[0]


def _delete(index: Path) -> None:
    index.unlink()


def _overwrite(index: Path) -> None:
    index.write_bytes(b"\x07 nothing that SQLite knows " * 300)


@pytest.mark.parametrize("harm", [_delete, _overwrite])
def test_an_index_that_is_lost_is_made_again_from_the_store(
    home: Path, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    model = write_script(tmp_path / "script.json", REPLY)
    tell(home, model)
    harm(home / "search.db")
    with open_desk(home=home, model=model) as desk:
        assert desk.search("Harlan")[0].message.text == SAID[0], "words alone find it meanwhile"
        status = desk.index(vectors=True)
        assert (status.indexed, status.waiting, status.embedder) == (status.messages, 0, "local")
        assert desk.search("Harlan")[0].message.text == SAID[0]


def test_a_model_asks_for_a_message_that_the_ledger_names(home: Path, tmp_path: Path) -> None:
    call = {"tool_calls": [{"name": "recall", "arguments": {"messages": ["#9"]}}]}
    tell(home, write_script(tmp_path / "script.json", REPLY, limit=8192))
    answers = write_script(tmp_path / "asks.json", call, {"text": "In March."}, limit=8192)
    with open_desk(home=home, model=answers, settings={"context.recall_tokens": 1}) as desk:
        talk = desk.latest()
        assert talk is not None
        block = talk.compaction()
        assert block is not None
        assert any(line.startswith("#9: ") for line in block.ledger), block.ledger
        assert talk.ask("When does our insurance end?").text == "In March."
        (result,) = talk.messages()[-2].results
        assert f"#9 user: {SAID[4]}" in result.text


def test_the_chat_goes_on_where_there_can_be_no_index(home: Path, tmp_path: Path) -> None:
    model = write_script(tmp_path / "script.json", REPLY)
    tell(home, model)
    (home / "search.db").unlink()
    (home / "search.db").mkdir()
    with open_desk(home=home, model=model) as desk:
        talk = desk.latest()
        assert talk is not None
        assert talk.ask(ASKED).text == REPLY["text"]
