"""Search from the command line: what is found and how it is told, and the index that is made for it."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run, Spawn, failure, one, rows
from tests.cli.terminal import Terminal
from tests.conftest import Open, Script
from tests.recall.test_message_index import MAST, garbage, half, other_version, say, server

from recto.api.blocking import open_desk
from recto.cli.drawing.transcripts import snippet_around

pytestmark = pytest.mark.untraced

__all__ = ["server"]


def fill(home: Path, *texts: str, count: int = 1) -> None:
    """A store with conversations of these texts, without an index."""
    with open_desk(home=home, model="scripted:none.json") as desk:
        for _ in range(count):
            say(desk, *texts)


# -- search


def test_search_finds_by_conversation_role_and_time(run: Run, script: Script) -> None:
    model = script({"text": "The mast is tall."})
    first = one(run("ask", "-m", model, "How tall is the mast?", "--json"))["conversation"]
    second = one(run("ask", "-m", model, "Is the hull sound?", "--json"))["conversation"]

    def found(*options: str) -> list[dict[str, Any]]:
        return rows(run("conversations", "search", "mast", "--json", *options))

    assert {hit["conversation"] for hit in found()} == {first, second}
    assert [(hit["conversation"], hit["role"]) for hit in found("tall", "--role", "user")] == [(first, "user")]
    assert len(found("-c", second)) == len(found("--limit", "1")) == 1
    middle = rows(run("conversations", "show", second, "--json"))[0]["created"]
    assert {hit["conversation"] for hit in found("--since", middle)} == {second}
    assert {hit["conversation"] for hit in found("--before", middle)} == {first}
    failure(run("conversations", "search", "mast", "-c", "01X"))
    failure(run("conversations", "search", "mast", "--since", "yesterday"), 2)


def test_archived_messages_and_other_branches_are_marked(run: Run, script: Script) -> None:
    run("chat", "-m", script({"text": "Yes."}), input="the heron flies\nthe heron stays\n")
    path = rows(run("conversations", "show", "--json"))
    run("conversations", "fork", path[1]["id"])
    run("ask", "--continue", "another one")
    run("context", "clear")
    told = run("conversations", "search", "heron").stdout
    assert "#1 in conversation #1 (the heron flies)" in told
    assert "  user  archived\n" in told
    assert f"  user  on another branch ({path[2]['id']})\n" in told, "a number names a message of the path only"
    places = {hit["text"]: hit["place"] for hit in rows(run("conversations", "search", "heron", "--json"))}
    assert places == {"the heron flies": "archived", "the heron stays": "branch"}


def test_operators_are_words_like_others(run: Run, home: Path) -> None:
    fill(home, MAST)
    for query in ('"mast" OR (', "mast NEAR/3 hull*", "NOT mast", "mast " * 10_000, "mast'); DROP TABLE messages; --"):
        assert [hit["text"] for hit in rows(run("conversations", "search", query, "--json"))] == [MAST]


def test_bytes_that_are_no_text_are_searched_for_all_the_same(fork: Spawn, home: Path) -> None:
    fill(home, MAST)
    done = fork("conversations", "search", "mast", os.fsdecode(b"\xff\xfe"))
    assert (done.returncode, MAST in done.stdout.decode()) == (0, True)


# -- the index


@pytest.mark.parametrize(("harm", "why"), [(garbage, "damaged"), (half, "damaged"), (other_version, "another version")])
def test_a_harmed_index_is_made_anew_and_the_answer_is_whole(run: Run, home: Path, harm: object, why: str) -> None:
    assert callable(harm)
    fill(home, "a mast", count=120)
    run("conversations", "search", "x")
    harm(home / "search.db")
    done = run("conversations", "search", "mast", "--limit", "200", "--json")
    assert len(done.stdout.splitlines()) == 120
    assert why in done.stderr
    assert done.stderr.count("note: ") == 1
    assert run("conversations", "search", "mast").stderr == ""


def test_an_index_damaged_within_is_made_anew_before_the_answer(run: Run, home: Path) -> None:
    fill(home, "a mast and some more words to take up pages " * 20, count=300)
    run("conversations", "search", "x")
    path = home / "search.db"
    with closing(sqlite3.connect(path)) as db:
        pages = "SELECT pageno FROM dbstat WHERE name IN ('words_data', 'words_idx', 'passages')"
        numbers = [row[0] for row in db.execute(pages)]
    whole = bytearray(path.read_bytes())
    for number in numbers:
        whole[(number - 1) * 4096 : number * 4096] = os.urandom(4096)
    path.write_bytes(whole)
    done = run("conversations", "search", "mast", "--limit", "500", "--json")
    assert len(done.stdout.splitlines()) == 300
    assert "the search index was damaged" in done.stderr


# -- at a terminal


def test_a_long_filling_shows_a_bar_at_a_terminal(terminal: type[Terminal], home: Path, desk: Open) -> None:
    with open_desk(home=home, model="scripted:none.json") as at:
        say(at, *(f"mast number {number}" for number in range(1200)))
    search = terminal("conversations", "search", "mast", "--limit", "2")
    search.wait_for("indexing")
    search.wait_for("mast number ")
    assert search.code() == 0


@pytest.mark.parametrize(
    ("text", "wanted", "marked"),
    [
        ("Das Café am Hafen", "cafe", ["Café"]),
        ("昨日東京へ行きました", "東京", ["東京"]),
        ("she was running home", "runs", ["running"]),
        ("한국어 문장", "한국", ["한국"]),
        ("nothing of it", "mast", []),
        ("", "mast", []),
    ],
)
def test_the_passage_shows_where_the_words_are_in_every_script(text: str, wanted: str, marked: list[str]) -> None:
    shown, places = snippet_around(text, wanted)
    assert (shown, [shown[first:last] for first, last in places]) == (text, marked)
    shown, _ = snippet_around("word " * 200 + "the tall mast of Sorrel " + "word " * 200, "masts tall")
    assert ("the tall mast of Sorrel" in shown, shown[0], shown[-1]) == (True, "…", "…")
