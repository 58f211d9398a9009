from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.conftest import Open, Script

from recto import wire
from recto.api.blocking import Talk
from recto.errors import Invalid, NotFound

CALL = {"text": "Let me look.", "tool_calls": [{"name": "read_document", "arguments": {"path": "Welcome.md"}}]}


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    root.mkdir()
    (root / "Welcome.md").write_text("# Welcome\n\nThe boat is called Heron, and she was built in 1934.")
    return root


def test_tool_tokens_are_the_calls_of_a_reply_with_their_results(desk: Open, script: Script, vault: Path) -> None:
    talk = desk(script(CALL, {"text": "Heron."}), vault=vault).conversation()
    talk.ask("What is she called?")
    asked, called, results, replied = talk.messages()
    assert asked.tokens.tools is None
    assert (asked.tokens.descriptions or 0) > 100
    own, calls = results.tokens.own or 0, called.block_tokens[1] or 0
    assert own > 10
    assert calls > 5
    assert called.tokens.tools == calls + own
    assert replied.tokens.tools == 0
    told = wire.message_to_json(asked, active=True)
    assert told["tool_tokens"] is None
    assert told["tool_description_tokens"] == asked.tokens.descriptions


def test_every_block_has_its_tokens_and_they_add_up(desk: Open, script: Script, vault: Path) -> None:
    talk = desk(script(CALL, {"thinking": "Hm, a name.", "text": "Heron."}), vault=vault).conversation()
    talk.ask("What is [[Welcome]] about?")
    for message in talk.messages():
        told = wire.message_to_json(message, active=True)["blocks"]
        assert [block["tokens"] for block in told] == list(message.block_tokens)
        assert all(isinstance(tokens, int) for tokens in message.block_tokens)
        sent = [tokens for block, tokens in zip(told, message.block_tokens, strict=True) if block["type"] != "thinking"]
        assert sum(tokens or 0 for tokens in sent) == message.tokens.own
    assert talk.messages()[-1].block_tokens[0], "thinking has its tokens, although it is not sent back"


def test_a_compaction_has_the_tokens_of_its_summary(desk: Open, script: Script) -> None:
    talk = desk(script({"text": "ok"}, {"text": "They counted words.", "when": "summary"})).conversation()
    for number in range(8):
        talk.ask(f"question {number} " + "word " * 40)
    block = talk.compact()
    assert 3 < (block.summary_tokens or 0) < 300
    assert talk.messages()[-1].block_tokens == (block.summary_tokens,)
    edited = talk.edit_summary("They counted words, and then they counted some more of them.")
    assert edited.summary_tokens != block.summary_tokens
    assert talk.compaction() == edited


def test_a_window_tells_system_tools_and_messages_with_their_budgets(desk: Open, script: Script, vault: Path) -> None:
    talk = desk(script({"text": "ok"}), vault=vault, system_prompt="Be kind.").conversation()
    talk.ask("hello")
    window = talk.window("x")
    parts = window.components
    assert list(parts) == ["system", "tools", "messages"]
    assert sum(part.used for part in parts.values()) == window.total
    assert parts["tools"].budget == int((window.limit - window.reserve) * 0.3)
    assert parts["tools"].percent == round(100 * parts["tools"].used / parts["tools"].budget, 1)
    assert window.to_json()["components"]["system"] == {
        "used": parts["system"].used,
        "budget": parts["system"].budget,
        "percent": parts["system"].percent,
    }
    plain = desk(script({"text": "ok"})).conversation().window("x").components
    assert plain["tools"].used == 0
    assert plain["tools"].budget > 0


@pytest.fixture
def talk(desk: Open, script: Script, vault: Path) -> Talk:
    """Four messages, one of them results of tools, then a compaction, then two more."""
    made = desk(script(CALL, {"text": "Heron."}, {"text": "fine"}, {"text": "They talked.", "when": "summary"}), vault)
    found = made.conversation()
    found.ask("What is she called?")
    found.ask("word " * 300)
    found.clear()
    found.ask("And now?")
    return found


def numbers(talk: Talk, **wanted: object) -> list[int]:
    return [message.said for message in talk.messages(**wanted) if not message.compaction]  # type: ignore[arg-type]


def test_messages_are_bounded_by_number_id_and_time(talk: Talk) -> None:
    every = talk.messages()
    assert numbers(talk) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert numbers(talk, since="#3") == numbers(talk, since="3") == [3, 4, 5, 6, 7, 8]
    assert numbers(talk, before="#3") == [1, 2]
    assert numbers(talk, since="#2", before="#5") == [2, 3, 4]
    assert numbers(talk, since=every[3].id) == [4, 5, 6, 7, 8]
    assert numbers(talk, since=every[0].created) == numbers(talk)
    assert numbers(talk, before="2001-01-01") == []
    assert numbers(talk, before="#7", limit=2, with_system=False) == [5, 6]
    assert numbers(talk, since=3) == numbers(talk, since="#3")
    assert numbers(talk, since=datetime.now(UTC)) == []
    entries = talk.transcript(since="#2", before="#5")
    assert [entry.message.said for entry in entries] == [2, 3, 4]


def test_a_bound_that_is_none_is_named(talk: Talk) -> None:
    with pytest.raises(Invalid, match="'yesterday' is neither a time such as"):
        talk.messages(since="yesterday")
    with pytest.raises(NotFound, match="#99"):
        talk.messages(before="#99")
    for limit in (-1, "9", 2.5):
        with pytest.raises(Invalid, match="limit must be a whole number from 1"):
            talk.messages(limit=limit)  # type: ignore[arg-type]
