"""Which sources were in every request, what its reply shows of them, and what that comes to."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import examples

from recto.base.ids import new_id
from recto.chat.blocks import Text
from recto.chat.message import Message
from recto.errors import Invalid, NotFound
from recto.sources.advice import SIGNS, Sign, SourceStats
from recto.sources.source import Mode, SourceId
from recto.store import source_uses
from recto.store.source_uses import SourceUse
from recto.store.store import Store
from recto.window.request import Piece, Purpose, Request

STYLE = SourceId("rule", "style")
API = SourceId("reference", "api")
ISSUE = SourceId("tool", "create_issue", "github")
OTHER_ISSUE = SourceId("tool", "create_issue", "gitlab")


class Chat:
    """A conversation whose requests are noted as the engine does it."""

    def __init__(self, store: Store, agent: str = "default") -> None:
        self.store = store
        self.head: str | None = None
        self.id = store.tree.create(agent=agent).id
        self.at = 0

    def ask(self, text: str) -> str:
        said = Message(new_id(), "user", (Text(text),), parent=self.head)
        self.head = said.id
        return self.store.tree.append(self.id, said).message.id

    def send(self, message: str | None, *rows: SourceUse, purpose: Purpose = "reply", day: int = 1) -> str:
        self.at += 1
        created = f"2026-03-{day:02d}T12:00:{self.at:02d}.000Z"
        body = (Piece("message", f"{self.id} {self.at}".encode()),)
        sent = Request(new_id(), self.id, purpose, "a:b", "openai", {}, body, message=message, created=created)
        self.store.records.save(sent, None)
        self.store.source_uses.note(sent.id, rows)
        return sent.id

    def turn(self, text: str, signs: dict[SourceId, Sign], *, mode: Mode = "agent", day: int = 1) -> str:
        request = self.send(self.ask(text), *(SourceUse(id, mode, 10) for id in signs), day=day)
        self.store.source_uses.signs(request, signs)
        return request


def stat(store: Store, id: SourceId, agent: str | None = None, since: str | None = None) -> SourceStats:
    (found,) = [each for each in store.source_uses.stats(agent, since) if each.id == id]
    return found


def test_what_was_noted_is_read_again(store: Store) -> None:
    chat = Chat(store)
    rows = [SourceUse(STYLE, "always", 40), SourceUse(API, "agent", 900, 0.82), SourceUse(ISSUE, "manual", 120)]
    request = chat.send(chat.ask("Hello"), *rows)
    assert store.source_uses.of(request) == rows
    assert all(each.sign is None for each in store.source_uses.of(request)), "nobody has looked yet"
    store.source_uses.signs(request, {STYLE: "", API: "quoted", ISSUE: "called"})
    assert [each.sign for each in store.source_uses.of(request)] == ["", "quoted", "called"]


def test_an_unknown_sign_or_request_is_refused_in_words(store: Store) -> None:
    chat = Chat(store)
    request = chat.send(chat.ask("Hello"), SourceUse(STYLE, "always", 40))
    with pytest.raises(Invalid, match="'guessed' is not a sign of use; use called, quoted, paraphrased"):
        store.source_uses.signs(request, {STYLE: "guessed"})
    with pytest.raises(NotFound, match="no request nowhere"):
        store.source_uses.note("nowhere", [])
    with pytest.raises(NotFound, match="no request nowhere"):
        store.source_uses.of("nowhere")


def test_the_rounds_of_a_turn_are_one_reply_and_cost_what_each_cost(store: Store) -> None:
    chat = Chat(store)
    message = chat.ask("File it, please.")
    first = chat.send(message, SourceUse(ISSUE, "always", 100), SourceUse(STYLE, "always", 40))
    last = chat.send(message, SourceUse(ISSUE, "always", 100), SourceUse(STYLE, "always", 40))
    store.source_uses.signs(first, {ISSUE: "called"})
    store.source_uses.signs(last, {ISSUE: "", STYLE: ""})
    found = stat(store, ISSUE)
    assert (found.replies, found.always, found.tokens, found.looked, found.called) == (1, 1, 200, 1, 1)
    assert (found.last_in, found.last_used) == ("2026-03-01T12:00:02.000Z", "2026-03-01T12:00:02.000Z")
    assert stat(store, STYLE).used == 0


def test_modes_signs_and_conversations_are_counted(store: Store) -> None:
    one, two = Chat(store), Chat(store)
    one.turn("a", {API: "quoted"}, mode="agent")
    one.turn("b", {API: ""}, mode="manual", day=2)
    two.turn("c", {API: "paraphrased"}, mode="manual", day=3)
    two.send(two.ask("d"), SourceUse(API, "manual", 10), day=4)
    found = stat(store, API)
    assert (found.replies, found.always, found.manual, found.by_agent) == (4, 0, 3, 1)
    assert (found.looked, found.called, found.quoted, found.paraphrased, found.used) == (3, 0, 1, 1, 2)
    assert (found.conversations, found.added, found.tokens, found.mode) == (2, 2, 40, "manual")
    assert (found.last_in[:10], found.last_used[:10]) == ("2026-03-04", "2026-03-03")


def test_only_answers_count(store: Store) -> None:
    chat = Chat(store)
    message = chat.ask("Hello")
    chat.send(message, SourceUse(STYLE, "always", 40), purpose="summary")
    chat.send(message, SourceUse(STYLE, "always", 40), purpose="gist")
    assert store.source_uses.stats() == []


def test_agents_are_told_apart_and_time_can_be_bounded(store: Store) -> None:
    Chat(store).turn("a", {API: "quoted"}, day=1)
    Chat(store, "boats").turn("b", {API: ""}, day=5)
    assert [(each.agent, each.used) for each in store.source_uses.stats()] == [("boats", 0), ("default", 1)]
    assert stat(store, API, agent="boats").replies == 1
    assert stat(store, API, since="2026-03-03").agent == "boats"
    assert store.source_uses.stats(agent="boats", since="2026-04-01") == []


def test_past_turns_tell_what_was_used_for_which_message_the_latest_first(store: Store) -> None:
    chat = Chat(store)
    chat.turn("How do I log in?", {API: "quoted", ISSUE: ""})
    chat.turn("Thanks", {API: "", ISSUE: ""})
    chat.turn("File a bug", {ISSUE: "called", API: "paraphrased"})
    chat.turn("Be brief", {STYLE: "quoted"}, mode="always")
    Chat(store, "boats").turn("Ahoy", {API: "quoted"})
    assert store.source_uses.past("default") == [
        ("File a bug", frozenset({ISSUE, API})),
        ("How do I log in?", frozenset({API})),
    ]
    assert store.source_uses.past("default", most=1) == [("File a bug", frozenset({ISSUE, API}))]
    assert store.source_uses.past("boats") == [("Ahoy", frozenset({API}))]
    assert store.source_uses.past("nobody") == []


def test_the_latest_past_turns_are_read_without_sorting_all(store: Store) -> None:
    """The plan of the query walks the small index backwards."""

    with store.database.read() as connection:
        statement = source_uses._USED.sql(connection.dialect)
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", ("",)).all()
    told = " ".join(str(row) for row in plan)
    assert "source_uses_learnt" in told
    assert "TEMP B-TREE" not in told


IDS = st.sampled_from([STYLE, API, ISSUE, OTHER_ISSUE])
ROWS = st.lists(
    st.builds(SourceUse, IDS, st.sampled_from(["always", "manual", "agent"]), st.integers(0, 999)),
    max_size=4,
    unique_by=lambda row: row.id,
)
TURNS = st.lists(
    st.lists(st.tuples(ROWS, st.dictionaries(IDS, st.sampled_from(SIGNS))), min_size=1, max_size=3), max_size=5
)


@settings(max_examples=examples(25, few=10), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TURNS)
def test_stats_are_what_counting_by_hand_gives(
    store: Store, turns: list[list[tuple[list[SourceUse], dict[SourceId, Sign]]]]
) -> None:
    chat = Chat(store, agent=new_id())
    tokens: dict[SourceId, int] = {}
    best: dict[tuple[SourceId, int], int] = {}
    for place, rounds in enumerate(turns):
        message = chat.ask(f"turn {place}")
        for rows, signs in rounds:
            request = chat.send(message, *rows)
            store.source_uses.signs(request, signs)
            for row in rows:
                tokens[row.id] = tokens.get(row.id, 0) + row.tokens
                rank = SIGNS.index(signs[row.id]) if row.id in signs else len(SIGNS)
                best[row.id, place] = min(best.get((row.id, place), 9), rank)
    ranks = {id: [rank for (of, _), rank in best.items() if of == id] for id in tokens}
    found = {each.id: each for each in store.source_uses.stats(agent=chat_agent(store, chat))}
    assert {id: (each.tokens, each.replies) for id, each in found.items()} == {
        id: (tokens[id], len(ranks[id])) for id in tokens
    }
    for id, each in found.items():
        assert [each.called, each.quoted, each.paraphrased] == [ranks[id].count(rank) for rank in range(3)]
        assert each.looked == sum(rank < len(SIGNS) for rank in ranks[id])
        assert each.always + each.manual + each.by_agent == each.replies
        assert bool(each.last_used) == bool(each.used)


def chat_agent(store: Store, chat: Chat) -> str:
    return store.tree.conversation(chat.id).agent
