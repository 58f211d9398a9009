"""Which sources replies use, told as a table with suggestions; and the context data of every reply, exported."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import text
from tests.cli.conftest import failure, rows
from tests.store.test_source_uses import API, ISSUE, STYLE, Chat

from recto.base.ids import new_id
from recto.base.locations import STORE_FILE
from recto.chat.blocks import Text
from recto.chat.message import Message
from recto.cli.main import recto
from recto.sources.source import BUILT_IN_SERVER, Pick, SourceId
from recto.store.source_uses import SourceUse
from recto.store.store import Store
from recto.window.account import RequestAccount, Section
from recto.window.request import Piece, Request


def run(*args: str) -> Result:
    return CliRunner(env={"COLUMNS": "80"}).invoke(recto, ["sources", *args])


@pytest.fixture
def kept(home: Path) -> Iterator[Store]:
    """What the commands read, open for a test to write into."""
    with Store(home / STORE_FILE) as store:
        yield store


@pytest.fixture
def talked(kept: Store) -> Store:
    chat = Chat(kept)
    for number in range(25):
        chat.turn(f"question {number}", {ISSUE: "", STYLE: ""}, mode="always")
    chat.turn("How do I log in?", {API: "quoted"}, day=2)
    chat.turn("And then?", {API: "paraphrased"}, day=3)
    return kept


def test_an_agent_that_nobody_knows_is_told_and_one_that_is_gone_is_not(talked: Store, home: Path) -> None:
    (home / "agents/boats").mkdir(parents=True)
    for name in ("stats", "export"):
        assert "there is no agent boas: did you mean boats?" in failure(run(name, "--agent", "boas"))
    Chat(talked, "gone").turn("ahoy", {STYLE: ""}, mode="always")
    assert "rule:style" in run("stats", "--agent", "gone").stdout
    assert run("export", "--agent", "gone").exit_code == 0


def test_the_report_says_what_is_used(talked: Store) -> None:
    lines = run("stats").stdout.splitlines()
    issue, api = lines.index("tool:github/create_issue"), lines.index("reference:api")
    assert lines[issue + 1].startswith("  always · in 25 replies · no signs · 250 tokens")
    assert lines[api + 1] == "  agent · in 2 replies · 1 quoted, 1 paraphrased · 20 tokens · last 2026-03-03"


def test_suggestions_name_the_command_that_does_it(talked: Store, home: Path) -> None:
    out = " ".join(run("stats").stdout.split())
    assert "· tool:github/create_issue took 250 tokens in 25 replies and was called in none" in out
    assert "recto sources mode tool:github/create_issue agent" in out
    assert "rule:style took" not in out, "25 replies say nothing of a rule"
    chat = Chat(talked)
    for number in range(25):
        chat.turn(f"more {number}", {STYLE: ""}, mode="always")
    assert "shows no signs of use (rules often show none)" in " ".join(run("stats").stdout.split())


def test_a_source_that_nobody_looked_at_is_not_said_to_be_unused(kept: Store) -> None:
    chat = Chat(kept)
    chat.send(chat.ask("Hello"), SourceUse(STYLE, "always", 3))
    assert "not looked at" in run("stats").stdout


def test_agents_are_shown_where_there_are_several(talked: Store) -> None:
    for number in range(50):
        Chat(talked, "boats").turn(f"ahoy {number}", {STYLE: ""}, mode="always")
    out = run("stats").stdout
    assert "rule:style · boats" in out
    assert "recto sources mode rule:style agent --agent boats" in out
    assert "recto sources mode tool:github/create_issue agent --agent default" in out
    assert "boats" not in run("stats", "--agent", "default").stdout


def recorded(store: Store) -> tuple[str, str, str]:
    """A reply with its account: request, user's message and reply."""
    home = store.tree.create(agent="boats").id
    asked = store.tree.append(home, Message(new_id(), "user", (Text("How do I log in?"),))).message
    picks = [
        ("rules", Pick("rule", "style", "its agent always includes it", 40, sha256="ab" * 32)),
        ("tools", Pick("tool", "read_document", "offered", 90, server=BUILT_IN_SERVER)),
        ("sources", Pick("reference", "api", "near in meaning", 900, "agent", 0.82, "cd" * 32)),
        ("documents", Pick("document", "Boat.md", "linked as [[Boat]]", 70, "manual")),
        ("message", Pick("message", asked.id, "the message that is answered", 9)),
    ]
    sections = tuple(Section(name, 1, 100, (pick,)) for name, pick in picks)
    passed = Pick("tool", "create_issue", "score 0.31 is below min_score 0.4", 0, "agent", 0.31, server="github")
    account = RequestAccount(sections=sections, not_picked=(passed,))
    sent = Request(
        new_id(), home, "reply", "scripted:x", "openai", {}, (Piece("head", b"{}"),), account, asked.id,
        "2026-03-05T10:00:00.000Z",
    )  # fmt: skip
    store.records.save(sent, None)
    own = SourceId("tool", "read_document", BUILT_IN_SERVER)
    store.source_uses.note(
        sent.id, [SourceUse(STYLE, "always", 40), SourceUse(API, "agent", 900, 0.82), SourceUse(own, "always", 90)]
    )
    store.source_uses.signs(sent.id, {STYLE: "", API: "quoted", own: "called"})
    answer = Message(new_id(), "assistant", (Text("With a token."),), parent=asked.id, request=sent.id)
    return sent.id, asked.id, store.tree.append(home, answer).message.id


def test_an_export_tells_what_was_picked_used_and_left_out(kept: Store) -> None:
    request, asked, reply = recorded(kept)
    (line,) = rows(run("export"))
    assert list(line) == [
        "request", "conversation", "message", "reply", "agent", "model", "created", "picks", "not_picked"
    ]  # fmt: skip
    assert (line["request"], line["message"], line["reply"]) == (request, asked, reply)
    assert (line["agent"], line["model"], line["created"]) == ("boats", "scripted:x", "2026-03-05T10:00:00.000Z")
    picks: dict[str, dict[str, Any]] = {pick["name"]: pick for pick in line["picks"]}
    assert set(picks) == {"style", "read_document", "api", "Boat.md"}, "what every window has is no choice"
    assert picks["api"] == {
        "section": "sources", "kind": "reference", "name": "api", "tokens": 900, "because": "near in meaning",
        "mode": "agent", "score": 0.82, "sha256": "cd" * 32, "sign": "quoted",
    }  # fmt: skip
    assert picks["style"]["sign"] == ""
    assert picks["read_document"]["sign"] == "called"
    assert "sign" not in picks["Boat.md"]
    [passed] = line["not_picked"]
    assert (passed["server"], passed["score"]) == ("github", 0.31)


def test_an_export_goes_into_a_file_and_can_be_bounded(talked: Store, tmp_path: Path) -> None:
    recorded(talked)
    out = tmp_path / "context.jsonl"
    result = run("export", "-o", str(out))
    assert (result.exit_code, result.stdout) == (0, "")
    assert "28 requests written to" in result.stderr
    assert len([json.loads(line) for line in out.read_text("utf-8").splitlines()]) == 28
    assert len(rows(run("export", "--agent", "boats"))) == 1
    assert len(rows(run("export", "--since", "2026-03-03"))) == 2


def test_a_damaged_record_is_left_out_and_said(kept: Store) -> None:
    request, _, _ = recorded(kept)
    with kept.database.write() as connection:
        connection.execute(text("UPDATE requests SET account = x'01ff'"))
    result = run("export")
    assert rows(result) == []
    assert f"left out: the account of request {request} cannot be read" in result.stderr
