"""The golden home: a store with every kind of thing that a store can hold, as today's code wrote it. Whatever changes,
a copy of it opens, is whole, and goes through an export unchanged."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.store.golden.home import restore_dump, unpack_world

from recto.cli.main import recto

# Each is asked of the file as it is committed, before any code of ours has opened it.
BLOCK = "SELECT m.n FROM messages m, json_each(m.blocks) b WHERE json_extract(b.value, '$.type') = "
COMPACTION = f"{BLOCK}'context_compaction' AND json_extract(b.value, '$."
DETAIL = "SELECT n FROM messages WHERE json_extract(details, '$."
RUN = "SELECT m.n FROM messages m, json_each(m.details, '$.task_runs') r WHERE json_extract(r.value, '$."


def several(named: str, query: str, *values: str) -> dict[str, str]:
    return {named.format(value): query.format(value) for value in values}


KINDS = {
    "a summary by a model": f"{COMPACTION}made_by') = 'model'",
    "a summary written ahead": f"{COMPACTION}checks.ahead') = 1",
    "a summary of chosen sentences": f"{COMPACTION}made_by') = 'extractive'",
    "a summary by the user": f"{COMPACTION}made_by') = 'user'",
    "a compaction after a summary failed": f"{COMPACTION}notes[0]') LIKE 'attempt 1 %'",
    "a compaction that discards": f"{COMPACTION}made_by') = 'discard'",
    "a cleared conversation": f"{COMPACTION}cleared') IS NOT NULL",
    "a compaction that was asked for": f"{COMPACTION}because') = 'the user asked for it'",
    "an edited summary": f"{COMPACTION}action') = 'edit'",
    "an undone compaction": f"{COMPACTION}takes_back') > 0 AND json_extract(b.value, '$.restored_size') > 0",
    "a pin": f"{COMPACTION}action') = 'pin'",
    "a pin that was taken away": f"{COMPACTION}action') = 'unpin'",
    "lifted messages without a pin": f"{COMPACTION}lifted[0]') <> '' AND json_extract(b.value, '$.pinned') IS NULL",
    "a ledger": f"{COMPACTION}ledger[0]') IS NOT NULL",
    "what was set aside": f"{COMPACTION}set_aside[0]') IS NOT NULL",
    "contents of what was set aside": f"{COMPACTION}contents[0]') IS NOT NULL",
    "a condensed message": f"{COMPACTION}excerpts') LIKE '%characters are left out here%'",
    "tool results in a line each": f"{COMPACTION}excerpts') LIKE '%/call_%'",
    "a work log": f"{COMPACTION}summary') LIKE 'Work log:%'",
    **several("a block of type {}", BLOCK + "'{}'", "text", "thinking", "tool_call", "tool_result"),
    "an image": f"{BLOCK}'image' AND json_extract(b.value, '$.media_type') = 'image/png'",
    "a PDF": f"{BLOCK}'file' AND json_extract(b.value, '$.media_type') = 'application/pdf'",
    "a text file": f"{BLOCK}'file' AND json_extract(b.value, '$.name') = 'paste.txt'",
    "a signed thought": f"{BLOCK}'thinking' AND json_extract(b.value, '$.signature') IS NOT NULL",
    "a failed tool": f"{BLOCK}'tool_result' AND json_extract(b.value, '$.is_error')",
    "references to documents": f"{BLOCK}'document_references'",
    "a broken link": "SELECT n FROM uses WHERE path IS NULL",
    "documents that a tool read": "SELECT n FROM uses WHERE NOT direct",
    "branches": "SELECT conversation FROM messages GROUP BY conversation HAVING min(branch) < max(branch)",
    "a head before the newest message": "SELECT c.n FROM messages m JOIN conversations c ON m.parent = c.head",
    **several("a run that is {}", RUN + "status') = '{}'", "done", "blocked", "stopped", "out of steps"),
    "a goal": f"{RUN}goal') IS NOT NULL",
    "a plan": f"{BLOCK}'tool_call' AND json_extract(b.value, '$.name') = 'update_plan'",
    "an agent of its own": "SELECT n FROM conversations WHERE agent = 'clerk'",
    "sources added by hand": "SELECT n FROM conversations WHERE json_extract(details, '$.sources.added') IS NOT NULL",
    "sources removed by hand": "SELECT n FROM conversations WHERE json_extract(details, '$.sources.removed') <> ''",
    "settings of a conversation": "SELECT n FROM conversations WHERE json_extract(details, '$.settings') IS NOT NULL",
    **several("a source that is {}", "SELECT request FROM source_uses WHERE sign = '{}'", "called", "quoted"),
    **several("a source by {}", "SELECT request FROM source_uses WHERE mode = '{}'", "always", "manual", "agent"),
    "a learned point": f"{DETAIL}learning_points') IS NOT NULL",
    "a remembered fact in a window": f"{DETAIL}memory_references') IS NOT NULL",
    **several(
        "a fact of kind {}", "SELECT n FROM facts WHERE kind = '{}'", "preference", "person", "project", "decision"
    ),
    "a fact about a note": "SELECT n FROM facts WHERE note IS NOT NULL",
    "a superseded fact": "SELECT n FROM facts WHERE replaced_by IS NOT NULL",
    "a reworded fact": "SELECT n FROM facts WHERE history <> '[]'",
    "a forgotten fact": "SELECT n FROM facts WHERE forgotten IS NOT NULL AND text = ''",
    "a fact by a model": "SELECT n FROM facts WHERE learned_by LIKE 'scripted:%'",
    "facts of one topic": "SELECT topic FROM facts GROUP BY topic HAVING count(topic) > 1",
    "a key with a limit": "SELECT n FROM access_keys WHERE details LIKE '%spend_day%'",
    "a key with a mode": "SELECT n FROM access_keys WHERE details LIKE '%record%'",
    "a client's own name": "SELECT conversation FROM client_conversations WHERE name IS NOT NULL",
    "a client's chain": "SELECT message FROM client_messages",
    "an awaited reply": "SELECT message FROM awaited_replies",
    "a waiting message": "SELECT n FROM waiting",
    "an open reply": "SELECT m.n FROM messages m JOIN deltas d ON d.message = m.n WHERE m.status = 'unfinished'",
    "a reply whose tools the client runs": "SELECT n FROM messages WHERE status = 'pending'",
    "a failed reply": "SELECT n FROM messages WHERE status = 'error'",
    "a hidden conversation": "SELECT n FROM conversations WHERE archived IS NOT NULL",
    "a conversation in the trash": "SELECT n FROM conversations WHERE deleted IS NOT NULL",
    "an imported conversation": "SELECT n FROM conversations WHERE details = '{}'",
    "a title": "SELECT n FROM conversations WHERE title = 'By a model'",
    "a title of several scripts": "SELECT n FROM conversations WHERE title LIKE '文字 · أحرف · अक्षर'",
    "priorities": "SELECT n FROM messages GROUP BY priority HAVING priority IN (2, 7, 9)",
    **several(
        "a request for a {}",
        "SELECT n FROM requests WHERE purpose = '{}'",
        "reply",
        "summary",
        "ahead",
        "gist",
        "facts",
    ),
    "a request to OpenAI": "SELECT n FROM requests WHERE model LIKE 'openai:%'",
    "a request to Anthropic with marks": "SELECT n FROM requests WHERE model LIKE 'anthropic:%' AND marks IS NOT NULL",
    "a cost": "SELECT n FROM requests WHERE cost > 0",
    "a chain of requests": "SELECT n FROM requests WHERE base IS NOT NULL",
    "a record packed with its messages": "SELECT n FROM requests WHERE substr(account, 1, 1) = x'02'",
    "a piece packed with its messages": "SELECT n FROM pieces WHERE substr(data, 1, 1) = x'02'",
    "a piece packed alone": "SELECT n FROM pieces WHERE substr(data, 1, 1) = x'01'",
    "a blob": "SELECT n FROM kept",
    "counted tokens": "SELECT meter FROM counts",
    "reported usage": "SELECT n FROM usage_reports",
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return unpack_world(tmp_path)


def run(*args: str) -> str:
    done = CliRunner().invoke(recto, list(args))
    assert done.exit_code == 0, (args, done.output)
    return done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_it_holds_every_kind_of_thing(kind: str, committed: sqlite3.Connection) -> None:
    assert committed.execute(KINDS[kind]).fetchone(), f"the golden home has lost {kind}"


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    store = unpack_world(tmp_path_factory.mktemp("golden")) / "recto.db"
    with closing(sqlite3.connect(store)) as connection:
        yield connection


def test_a_copy_is_whole(home: Path) -> None:
    is_whole()


def test_a_copy_goes_through_an_export_unchanged(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exported = export(tmp_path / "golden.jsonl")
    monkeypatch.setenv("RECTO_HOME", str(tmp_path / "empty"))
    report = rows("context", "import", str(tmp_path / "golden.jsonl"), "--json")
    assert {each["outcome"] for each in report} == {"added"}
    assert export(tmp_path / "again.jsonl") == exported


def test_a_copy_in_postgresql_is_whole_and_exports_the_same(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgresql: Callable[[], str]
) -> None:
    exported = export(tmp_path / "golden.jsonl")
    monkeypatch.setenv("RECTO_DB", url := postgresql())
    restore_dump(url)
    is_whole()
    assert export(tmp_path / "copy.jsonl") == exported


@pytest.mark.slow
def test_a_copy_goes_from_postgresql_to_postgresql_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgresql: Callable[[], str]
) -> None:
    monkeypatch.setenv("RECTO_DB", url := postgresql())
    restore_dump(url)
    exported = export(tmp_path / "copy.jsonl")
    monkeypatch.setenv("RECTO_DB", postgresql())
    run("context", "import", str(tmp_path / "copy.jsonl"))
    assert export(tmp_path / "again.jsonl") == exported


def is_whole() -> None:
    (report,) = rows("store", "check", "--json")
    assert report["problems"] == []
    requests = rows("request", "verify", "--all", "--json")
    assert [each for each in requests if not each["ok"]] == []
    assert len(requests) == report["requests"]


def export(file: Path) -> bytes:
    run("context", "export", "--all", "-o", str(file))
    return file.read_bytes()


def rows(*args: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(*args).splitlines()]
