"""The chain over random clients: retries, edits, cuts, rewordings, two clients on one key: no message is lost, and
nobody is given what another said."""

import asyncio
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from recto.api.client_turn import said_path
from recto.api.desk import new_desk
from recto.base.ids import new_id
from recto.chat.blocks import Text
from recto.chat.message import Message, Role
from recto.serve.gateway import Gateway, ServeOptions
from recto.serve.placement import place
from recto.window.request import Entry

Said = tuple[Role, str]
ACTIONS = st.lists(
    st.tuples(
        st.integers(0, 2), st.sampled_from(["say", "retry", "edit", "cut", "reword", "new", "fail", "remind", "lose"])
    ),
    max_size=14,
)
NUMBERS = count()
REMINDER = "\n\nReply in English."


class Home:
    """A gateway, and a loop to use it in."""

    def __init__(self, place: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self.gateway = self.loop.run_until_complete(self._opened(place))

    async def _opened(self, place: Path) -> Gateway:
        return Gateway(new_desk(home=place, settings={"search.embedder": "none"}), ServeOptions())

    def close(self) -> None:
        self.loop.run_until_complete(self.gateway.desk.close())
        self.loop.close()

    def ask(
        self, owner: str, said: list[Said], reply: str | None, *, is_delivered: bool = True
    ) -> tuple[str, list[str]]:
        return self.loop.run_until_complete(self._ask(owner, said, reply, is_delivered=is_delivered))

    async def _ask(
        self, owner: str, said: list[Said], reply: str | None, *, is_delivered: bool = True
    ) -> tuple[str, list[str]]:
        """The conversation of a request, and what a model would be given for it."""
        given = [Entry(role, (Text(text),)) for role, text in said]
        placed = await place(self.gateway, owner, None, "scripted:x", given)
        store, session = self.gateway.store, placed.session
        path = [message.text for message in said_path(store, session.head) or ()]
        if reply is not None:
            message = Message(new_id(), "assistant", (Text(reply),), parent=session.head)
            store.tree.append(session.conversation, message)
            placed.note_reply(message.id, message.blocks)
            await placed.end_delivery(is_delivered=is_delivered)
        return session.conversation, path


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    made = Home(tmp_path_factory.mktemp("home"))
    yield made
    made.close()


def change(said: list[Said], action: str, number: int) -> list[Said]:
    """What a client sends next."""
    new: Said = ("user", f"question {number}")
    if action == "new" or not said:
        return [new]
    if action == "edit" and len(said) > 2:
        return [*said[:-2], new]
    if action == "cut" and len(said) > 4:
        return [*said[2:], new]
    if action == "reword":
        return [("user", f"{said[0][1]} at {number} o'clock"), *said[1:], new] if said[0][0] == "user" else [*said, new]
    return said if action == "retry" and said[-1][0] == "user" else [*said, new]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ACTIONS)
# questions that are alike, with the same short answers, in two conversations of one key
@example([*[(0, "say")] * 5, (1, "say"), (0, "say"), (1, "remind"), *[(0, "say")] * 2, (1, "reword")])
@example(
    [*[(0, "say")] * 4, (1, "fail"), (1, "say"), (0, "say"), (1, "remind"), *[(0, "say")] * 2, (1, "cut")],
)
def test_whatever_clients_do_nothing_is_lost_and_nobody_sees_anothers_words(
    home: Home, actions: list[tuple[int, str]]
) -> None:
    life = next(NUMBERS)
    owners = [f"ada {life}", f"ada {life}", f"bob {life}"]  # two clients on one key, and another key
    lists: list[list[Said]] = [[], [], []]
    words: dict[str, set[str]] = {owner: set() for owner in owners}
    homes: dict[str, set[str]] = {owner: set() for owner in owners}
    seen: dict[str, set[str]] = {}  # by conversation
    unheard: dict[int, str] = {}  # by client, where its first message got no reply that it knows of
    first = home.gateway.store.tree.newest_number()
    for number, (client, action) in enumerate(actions):
        owner, said = owners[client], change(lists[client], action, number * 3 + client)
        # short replies that many conversations share, and telling ones
        reply = None if action == "fail" else "Yes." if number % 2 else f"Reply {number} of {owner}, in so many words."
        # a reminder that goes with the last message alone, and is gone the next time
        sent = [*said[:-1], ("user", f"{said[-1][1]}{REMINDER}")] if action == "remind" else said
        words[owner] |= {text for _, text in (*said, *sent)} | {reply or ""}
        conversation, path = home.ask(owner, sent, reply, is_delivered=action != "lose")
        homes[owner].add(conversation)
        if (before := unheard.pop(client, None)) and sent == lists[client]:
            assert conversation == before
        if len(sent) == 1 and sent == said and (reply is None or action == "lose"):
            unheard[client] = conversation
        assert path[-1] == sent[-1][1]
        assert set(path) <= words[owner]
        stored = seen.setdefault(conversation, set())
        stored |= {*path}
        reworded = {text for _, text in sent if "o'clock" in text or f"{text}{REMINDER}" in stored}
        assert {text for _, text in sent} - reworded <= stored
        if reply:
            stored.add(reply)
        lists[client] = [*said, ("assistant", reply)] if reply and action != "lose" else said
    assert not homes[owners[0]] & homes[owners[2]]
    kept = _texts_after(home, first)
    assert all(kept[conversation] == texts for conversation, texts in seen.items())


def _texts_after(home: Home, number: int) -> dict[str, set[str]]:
    """Everything that was stored after a message, by conversation."""
    found: dict[str, set[str]] = {}
    for each in home.gateway.store.tree.after(number, most=1000):
        found.setdefault(each.home, set()).add(each.message.text)
    return found


def test_two_requests_at_once_store_a_message_once(home: Home) -> None:
    async def both() -> list[Any]:
        ask = home._ask("carol", [("user", "hello there")], None)
        again = home._ask("carol", [("user", "hello there")], None)
        return list(await asyncio.gather(ask, again))

    first, second = home.loop.run_until_complete(both())
    assert first == second


def test_the_same_first_message_begins_anew_where_its_reply_was_got_and_goes_on_where_it_was_lost(home: Home) -> None:
    said: list[Said] = [("user", "good morning")]
    first, _ = home.ask("frieda", said, "Good morning to you.")
    second, _ = home.ask("frieda", said, "Good morning again.", is_delivered=False)
    third, path = home.ask("frieda", said, "Good morning at last.")
    fourth, _ = home.ask("frieda", said, None)
    assert (second, third, path) == (third, second, ["good morning"])
    assert len({first, second, fourth}) == 3


def test_a_cut_list_of_short_answers_goes_on_in_its_own_conversation(home: Home) -> None:
    """Both conversations answer "Yes." again and again; the words of the last question came without its reminder."""
    other: list[Said] = []
    for number, reply in enumerate(("Aye.", "Yes.", "No.", "Yes.")):
        other.append(("user", f"question {number} of another"))
        home.ask("gerda", other, reply)
        other.append(("assistant", reply))
    said: list[Said] = [("user", "question 16")]
    own, _ = home.ask("gerda", said, "Yes.")
    said += [("assistant", "Yes."), ("user", "question 19"), ("user", "question 22")]
    home.ask("gerda", said, "Yes.")
    said += [("assistant", "Yes."), ("user", "question 25")]
    home.ask("gerda", said[2:], "The eighth reply.")
    said += [("assistant", "The eighth reply."), ("user", f"question 28{REMINDER}")]
    home.ask("gerda", said[2:], "Yes.")
    said[-1] = ("user", "question 28")
    said += [("assistant", "Yes."), ("user", "question 31")]
    conversation, path = home.ask("gerda", said[4:], "Yes.")
    assert (conversation, path[-1]) == (own, "question 31")
    assert "The eighth reply." in path


def test_a_history_from_elsewhere_with_common_answers_is_stored_whole(home: Home) -> None:
    home.ask("hanna", [("user", "Is it dry?"), ("assistant", "Yes."), ("user", "Is it new?")], "Yes.")
    elsewhere: list[Said] = [("user", "Shall we?"), ("assistant", "Yes."), ("user", "At noon?"), ("assistant", "Yes.")]
    _, path = home.ask("hanna", [*elsewhere, ("user", "With whom?")], None)
    assert path == [*(text for _, text in elsewhere), "With whom?"]


def test_another_question_with_the_same_short_answer_is_no_rewording(home: Home) -> None:
    home.ask("emil", [("user", "Is it dry?")], "Yes, quite so.")
    before: list[Said] = [("user", "Is it dry?"), ("assistant", "Yes, quite so.")]
    home.ask("emil", [*before, ("user", "And the mast?")], "Yes.")
    other: list[Said] = [*before, ("user", "Shall we sail on Sunday?"), ("assistant", "Yes."), ("user", "At noon?")]
    _, path = home.ask("emil", other, "Yes.")
    assert "Shall we sail on Sunday?" in path
