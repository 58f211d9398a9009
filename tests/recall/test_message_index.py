"""The archive through the Python door: what is found, with which filters, and what happens to the index meanwhile."""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import Open, Script, examples
from tests.search.test_embedding_endpoint import Answer, Server, says, vectors

from recto.api.blocking import Desk, open_desk
from recto.base.ids import new_id
from recto.chat.blocks import File, Text, ToolCall, ToolResult
from recto.chat.message import Message, Role
from recto.errors import Invalid, NotFound
from recto.recall import message_search

MAST, HULL = "The mast of Sorrel is 14 metres tall.", "The hull was painted green in April."
ROLES: tuple[Role, Role] = ("user", "assistant")


@pytest.fixture
def at(desk: Open, script: Script) -> Desk:
    """A desk that searches words alone, as all do here."""
    return desk(script({"text": "Noted."}))


def say(desk: Desk, *texts: str, home: str | None = None, created: str = "2026-03-01T12:00:00.000Z") -> list[Message]:
    """Appends texts in turn as user and assistant, to a new conversation unless one is named."""
    tree = desk.store.tree
    home = home or tree.create(title=texts[0]).id
    made: list[Message] = []
    with desk.store.database.write():  # thousands of messages in one transaction
        head = tree.conversation(home).head
        for number, text in enumerate(texts):
            message = Message(new_id(), ROLES[number % 2], (Text(text),), parent=head, created=created)
            made.append(tree.append(home, message).message)
            head = message.id
    return made


def texts(found: message_search.FoundMessages) -> list[str]:
    return [each.message.text for each in found]


# -- what is found


def test_a_hit_tells_the_message_its_conversation_and_the_passage(at: Desk) -> None:
    long = "\n\n".join(f"Paragraph {number} is about rope and paint and nothing else. " * 5 for number in range(20))
    (said,) = say(at, f"{long}\n\nThe anchor lies in the shed. {long}")
    (hit,) = at.search("anchor")
    assert (hit.message.id, hit.conversation) == (said.id, at.store.tree.owner(said.id))
    assert hit.place == "active"
    assert "anchor" in hit.text
    assert len(hit.text) < 2000
    assert said.text[hit.start : hit.end] == hit.text
    assert 0 < hit.score <= 1
    assert hit.because == "holds anchor"


def test_whoever_holds_all_the_words_comes_first_and_then_who_holds_some(at: Desk) -> None:
    say(at, "A mast is a mast is a mast.", "Tall, tall, tall.", MAST, "Neither.")
    found = at.search("tall mast")
    assert texts(found)[0] == MAST
    assert set(texts(found)) == {MAST, "A mast is a mast is a mast.", "Tall, tall, tall."}
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)


def test_a_long_message_that_holds_a_word_everywhere_is_found_once_and_hides_nobody(at: Desk) -> None:
    long = "\n\n".join(f"The mast again, number {number}, {'and more words ' * 40}." for number in range(60))
    say(at, long, "There is a mast here too.")
    assert sorted(map(len, texts(at.search("mast", limit=2)))) == [25, len(long)]


def test_files_calls_and_what_tools_gave_out_are_found(at: Desk) -> None:
    tree = at.store.tree
    home = tree.create().id
    asked = Message(new_id(), "user", (Text("See this"), File("boats.md", "The dinghy is called Thistle.")))
    call = ToolCall("c1", "read_document", '{"path": "Winches"}')
    called = Message(new_id(), "assistant", (call,), parent=asked.id)
    gave = Message(new_id(), "tool", (ToolResult("c1", "read_document", "Four capstans."),), parent=called.id)
    for message in (asked, called, gave):
        tree.append(home, message)
    for word, message in (("thistle", asked), ("winches", called), ("capstans", gave)):
        (hit,) = at.search(word)
        assert (hit.message.id, word in hit.text.lower()) == (message.id, True)


def test_branches_and_archived_parts_are_found_and_told_apart(desk: Open, script: Script) -> None:
    at = desk(script({"text": "Noted."}))
    talk = at.conversation()
    talk.ask("the heron flies south")
    first = talk.messages()[-1]
    talk.ask("the heron flies north")
    talk.fork(first.id)
    talk.ask("the heron stays")
    assert {hit.message.text: hit.place for hit in at.search("heron")} == {
        "the heron flies south": "active",
        "the heron flies north": "branch",
        "the heron stays": "active",
    }
    talk.clear()
    assert {hit.place for hit in at.search("heron")} == {"archived", "branch"}


def test_nothing_leads_from_a_message_that_was_taken_back_whole(at: Desk) -> None:
    talk = at.conversation()
    talk.ask("the heron flies")
    talk.undo()
    assert [(hit.place, hit.message.text) for hit in at.search("heron")] == [("branch", "the heron flies")]


# -- filters


def test_filters_narrow_by_conversation_role_and_time(at: Desk) -> None:
    early = say(at, MAST, "A mast, yes.", created="2026-01-10T08:00:00.000Z")
    late = say(at, "The mast is down.", "A pity for the mast.", created="2026-02-10T08:00:00.500Z")
    home = at.store.tree.owner(late[0].id)
    assert len(at.search("mast")) == 4
    assert {hit.message.id for hit in at.search("mast", conversation=home)} == {each.id for each in late}
    assert {hit.message.role for hit in at.search("mast", role="assistant")} == {"assistant"}
    assert {hit.message.id for hit in at.search("mast", since="2026-02-01")} == {each.id for each in late}
    assert {hit.message.id for hit in at.search("mast", before="2026-02-01")} == {each.id for each in early}
    exact = late[0].created
    assert len(at.search("mast", since=exact)) == 2
    assert len(at.search("mast", before=exact)) == 2
    assert not at.search("mast", since=datetime(2026, 2, 10, 8, 0, 0, 501_000, tzinfo=UTC))
    with pytest.raises(NotFound):
        at.search("mast", conversation="01X")
    with pytest.raises(Invalid, match="is not a time"):
        at.search("mast", since="yesterday")


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the zone of a process cannot be set here")
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "UTC"])
def test_times_are_exact_on_every_clock_also_when_it_is_put_back(
    at: Desk, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        moments = [f"2026-10-25T{hour:02}:{minute}:00.000Z" for hour in range(6) for minute in (10, 50)]
        for moment in moments:
            say(at, "mast", created=moment)
        for since in moments:
            found = {hit.message.created for hit in at.search("mast", since=since, limit=50)}
            assert found == {moment for moment in moments if moment >= since}
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()


def test_the_limit_counts_messages(at: Desk) -> None:
    say(at, *(f"mast number {number}" for number in range(30)))
    at.index()
    assert [len(at.search("mast", limit=limit)) for limit in (1, 7, 100)] == [1, 7, 30]


# -- queries of every kind


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ('"mast" OR (NEAR hull*', {MAST, HULL}),
        ("NOT mast", {MAST}),
        ("mast^2 text:hull", {MAST, HULL}),
        ("東京", {"昨日東京へ行きました"}),
        ("京", {"昨日東京へ行きました"}),
        ("Παλιό ΚΑΪΚΙ", {"Το παλιό καΐκι"}),
        ("cafe", {"Das Café am Hafen"}),
        ("⛵", {"ahoi ⛵"}),
        ("mast " * 10_000, {MAST}),
        (" ".join(f"w{number}" for number in range(10_000)), set()),
        ("the of and", {MAST, HULL}),
        ("\x00\ud800'; DROP TABLE words; --", set()),
        ("   ", set()),
        ("", set()),
        ("*", set()),
    ],
)
def test_queries_of_every_kind_are_answered(at: Desk, query: str, wanted: set[str]) -> None:
    for text in (MAST, HULL, "昨日東京へ行きました", "Το παλιό καΐκι", "Das Café am Hafen", "ahoi ⛵"):
        say(at, text)
    assert set(texts(at.search(query))) == wanted


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text())
def test_no_query_fails(at: Desk, query: str) -> None:
    if not at.store.tree.newest_number():
        say(at, MAST, HULL)
    assert len(at.search(query)) <= 2


def test_an_empty_store_and_a_conversation_of_one_message(at: Desk) -> None:
    assert not at.search("mast")
    assert at.search("mast").note == ""
    say(at, MAST)
    assert texts(at.search("mast")) == [MAST]


# -- the index


def index_path(desk: Desk) -> Path:
    return desk.home / "search.db"


def closed_with(desk: Open, script: Script, count: int = 40) -> Path:
    """A store with messages and an index, closed; where the index is."""
    at = desk(script({"text": "Noted."}))
    say(at, *(f"mast number {number}" for number in range(count)))
    at.index()
    at.close()
    return index_path(at)


def garbage(path: Path) -> None:
    path.write_bytes(os.urandom(path.stat().st_size))


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def holes(path: Path) -> None:
    """The first pages are whole: it opens, and fails when it is read."""
    whole = path.read_bytes()
    path.write_bytes(whole[: 4096 * 8] + bytes(len(whole) - 4096 * 8))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def other_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE marks SET value = 'none of ours' WHERE name = 'version'")


def other_store(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE marks SET value = '01X' WHERE name = 'first'")


def ahead(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE marks SET value = '4000' WHERE name = 'messages'")


HARM: dict[Callable[[Path], object], str] = {
    garbage: "was damaged",
    half: "was damaged",
    holes: "was damaged",
    empty: "",
    Path.unlink: "",
    other_version: "another version",
    other_store: "another store",
    ahead: "another store",
}


@pytest.mark.parametrize("harm", HARM)
def test_a_harmed_index_is_made_anew_and_says_why(desk: Open, script: Script, harm: Callable[[Path], object]) -> None:
    harm(closed_with(desk, script))
    at = desk(script({"text": "Noted."}))
    found = at.search("mast", limit=100)
    assert (len(found), found.note) == (40, at.engine.message_index.was_renewed)
    assert HARM[harm] in found.note


@pytest.mark.parametrize("harm", [garbage, half, holes])
def test_an_index_that_is_harmed_while_it_is_filled_is_made_anew(
    desk: Open, script: Script, harm: Callable[[Path], object]
) -> None:
    path = closed_with(desk, script)
    at = desk(script({"text": "Noted."}))
    say(at, *(f"spar number {number}" for number in range(40)))
    harm(path)
    at.index()
    assert (len(at.search("mast", limit=100)), len(at.search("spar", limit=100))) == (40, 40)


def test_a_chat_goes_on_while_its_index_is_damaged(desk: Open, script: Script) -> None:
    garbage(closed_with(desk, script))
    at = desk(script({"text": "Noted."}))
    assert at.conversation().ask("Is the mast tall?").text == "Noted."
    at.index()
    assert len(at.search("mast", limit=100)) == 41


def test_an_index_can_be_thrown_away_by_wish(at: Desk) -> None:
    say(at, MAST)
    at.index()
    told: list[tuple[int, int]] = []
    status = at.index(lambda done, total: told.append((done, total)), anew=True)
    assert (status.messages, status.indexed, status.vectors, status.embedder) == (1, 1, 0, None)
    assert texts(at.search("mast")) == [MAST]


def test_progress_is_told_and_ends(at: Desk) -> None:
    say(at, *("mast" for _ in range(1200)))
    told: list[tuple[int, int]] = []
    at.index(lambda done, total: told.append((done, total)))
    assert told
    assert told == sorted(told)
    assert {total for _, total in told} == {1200}


def test_a_search_waits_for_no_index_and_says_so(at: Desk) -> None:
    say(at, *(f"mast number {number}" for number in range(2000)))
    assert "messages are not in it yet" in at.search("mast").note
    at.index()
    assert at.search("mast").note == ""


def test_an_unfinished_message_is_found_when_it_is_finished(at: Desk) -> None:
    tree, home = at.store.tree, at.store.tree.create().id
    growing = Message(new_id(), "assistant", (), status="unfinished")
    tree.append(home, growing)
    tree.grow(growing.id, [["text", "the heron"]])
    assert not at.search("heron")
    say(at, MAST)
    assert texts(at.search("mast")) == [MAST]
    tree.finish(Message(growing.id, "assistant", (Text("the heron"),)))
    assert texts(at.search("heron")) == ["the heron"]


def test_what_came_of_a_reply_that_was_never_finished_is_found(at: Desk) -> None:
    tree, home = at.store.tree, at.store.tree.create().id
    growing = Message(new_id(), "assistant", (), status="unfinished", created="2026-01-01T00:00:00.000Z")
    tree.append(home, growing)
    tree.grow(growing.id, [["text", "the heron"]])
    assert texts(at.search("heron")) == ["the heron"]


def test_two_desks_fill_one_index_at_once_and_nothing_is_doubled(desk: Open, script: Script) -> None:
    model = script({"text": "Noted."})
    one, two = (desk(model) for _ in range(2))
    say(one, *(f"mast number {number}" for number in range(3000)))
    threads = [threading.Thread(target=each.index) for each in (one, two)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    with closing(sqlite3.connect(index_path(one))) as db:
        assert db.execute("SELECT count(*), count(DISTINCT item) FROM passages").fetchone() == (3000, 3000)
    assert len(two.search("mast", limit=1000)) == 1000


def test_a_desk_that_only_searched_lets_go_of_the_index(desk: Open, script: Script) -> None:
    at = desk(script({"text": "Noted."}))
    say(at, MAST)
    at.search("mast")
    at.close()
    assert not list(at.home.glob("search.db-*"))


# -- embedders


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    server = Server()
    monkeypatch.setenv("RECTO_BOX_BASE_URL", server.url)
    yield server
    server.close()


@pytest.fixture
def boxed(tmp_path: Path, server: Server) -> Iterator[Callable[..., Desk]]:
    """Desks on one home whose vectors come from the box."""
    opened: list[Desk] = []

    def make(embedder: str = "box:m", **more: object) -> Desk:
        given = {"search.embedder": embedder, "search.timeout_s": 1, **more}
        opened.append(open_desk(home=tmp_path / "home", model="scripted:none.json", settings=given))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


def asked(server: Server) -> list[str]:
    """What was embedded; a single full stop only tries whether anybody is there."""
    return [text for batch in server.inputs for text in batch if text != "."]


def test_without_an_embedder_words_are_all_and_nothing_is_noted(at: Desk) -> None:
    say(at, MAST)
    found = at.search("mast")
    assert (texts(found), found.note) == ([MAST], "")
    assert at.index(vectors=True).embedder is None


@pytest.mark.parametrize("name", ["nobody:m", "scripted:m", "openai:text-embedding-3-small", "nonsense"])
def test_an_embedder_that_cannot_be_had_leaves_words_and_a_note(boxed: Callable[..., Desk], name: str) -> None:
    at = boxed(name)
    say(at, MAST)
    found = at.search("mast")
    assert texts(found) == [MAST]
    assert "words only" in found.note
    assert at.index(vectors=True).embedder is None


def test_no_text_is_embedded_twice_whoever_says_it_and_however_often_the_embedder_is_switched(
    boxed: Callable[..., Desk], server: Server
) -> None:
    at = boxed()
    say(at, MAST, HULL, MAST)
    say(at, HULL, "Something else.")
    status = at.index(vectors=True)
    assert (status.vectors, status.waiting, status.embedder) == (3, 0, "box:m")
    assert sorted(asked(server)) == sorted([MAST, HULL, "Something else."])
    at.close()
    other = boxed("box:another")
    assert other.index(vectors=True).vectors == 3
    assert sorted(asked(server)) == sorted([MAST, HULL, "Something else."] * 2)
    other.close()
    again = boxed()
    say(again, HULL, "New.")
    assert again.index(vectors=True).vectors == 4
    assert sorted(asked(server)) == sorted([MAST, HULL, "Something else."] * 2 + ["New."])


def never(texts: list[str]) -> Answer:
    return says({"error": {"message": "out of order"}}, 400)


def not_finite(texts: list[str]) -> Answer:
    return 200, {}, b'{"data": [%s]}' % b",".join(b'{"embedding": [NaN, 1]}' for _ in texts)


def uneven(texts: list[str]) -> Answer:
    return says({"data": [{"embedding": [1.0] * (2 + number)} for number, _ in enumerate(texts)]})


@pytest.mark.parametrize(("rule", "why"), [(never, "out of order"), (not_finite, "infinity"), (uneven, "length")])
def test_vectors_that_are_none_are_refused_and_words_go_on(
    boxed: Callable[..., Desk], server: Server, rule: Callable[[list[str]], Answer], why: str
) -> None:
    server.rules = [rule] * 100
    at = boxed()
    say(at, MAST, HULL)
    status = at.index(vectors=True)
    assert why in status.why or rule is uneven, "one at a time they are even"
    assert texts(at.search("mast"))[0] == MAST


def test_an_embedder_that_fails_half_way_goes_on_where_it_stopped(boxed: Callable[..., Desk], server: Server) -> None:
    said = [f"mast number {number}" for number in range(100)]
    server.rules = [vectors, vectors, *[never] * 200]
    at = boxed()
    say(at, *said)
    status = at.index(vectors=True)
    assert (status.vectors, status.waiting) == (64, 36)
    assert "out of order" in status.why
    at.close()
    server.rules = []
    server.bodies.clear()
    again = boxed()
    status = again.index(vectors=True)
    assert (status.vectors, status.waiting) == (100, 0)
    assert sorted(asked(server)) == sorted(said[64:])


def test_an_embedder_that_stops_in_the_middle_of_a_batch_loses_nothing(
    boxed: Callable[..., Desk], server: Server
) -> None:
    """Its batch fails, one text alone succeeds, then nothing does: that says nothing about the other texts."""
    said = [f"mast number {number}" for number in range(10)]
    server.rules = [never, vectors, *[never] * 200]
    at = boxed()
    say(at, *said)
    at.index(vectors=True)
    at.close()
    server.rules = []
    again = boxed()
    assert again.index(vectors=True).vectors == 10
    with closing(sqlite3.connect(index_path(again))) as db:
        assert db.execute("SELECT count(*) FROM vectors WHERE length(vector) > 0").fetchone() == (10,)


def test_one_text_that_cannot_be_embedded_keeps_nobody_back(boxed: Callable[..., Desk], server: Server) -> None:
    def picky(texts: list[str]) -> Answer:
        return never(texts) if any("poison" in text for text in texts) else vectors(texts)

    server.rules = [picky] * 200
    at = boxed()
    say(at, MAST, "the poison", HULL)
    status = at.index(vectors=True)
    assert status.waiting == 0
    assert texts(at.search("poison"))[0] == "the poison"


def test_a_slow_embedder_is_not_waited_for(boxed: Callable[..., Desk], server: Server) -> None:
    at = boxed()
    say(at, MAST, HULL)
    at.index(vectors=True)
    free = threading.Event()

    def slow(texts: list[str]) -> Answer:
        free.wait(60)
        return vectors(texts)

    server.rules = [slow]
    found = at.search("mast")
    free.set()
    assert texts(found) == [MAST]
    assert "did not answer within 1 s" in found.note


def test_meaning_finds_what_shares_no_word(desk: Open, script: Script) -> None:
    at = desk(script({"text": "Noted."}), search__embedder="minilm", search__timeout_s=60)
    say(at, "What shall we cook tonight?", "I suggest a risotto with mushrooms and white wine.")
    say(at, "The deploy failed with exit code 137.")
    assert at.index(vectors=True).why == ""
    assert "risotto" in " ".join(texts(at.search("dinner")))
    assert not at.search("xyzzy"), "what is only far from everything is not found"
