"""Two requests side by side, in a real store."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import examples

from recto.base.ids import new_id
from recto.chat.blocks import Text
from recto.chat.message import Message, Role
from recto.errors import NotFound
from recto.providers.anthropic import AnthropicFormat
from recto.providers.openai import OpenAIFormat
from recto.providers.registry import format_named
from recto.sources.source import Tool
from recto.store.comparison import ComparedRequest, Difference, compare
from recto.store.store import Store
from recto.turn.preamble import list_pieces
from recto.window.account import RequestAccount
from recto.window.request import Entry, Format, Parameters, Purpose, Request

PARAMETERS = Parameters(max_tokens=100)


def pick(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "name": name, "tokens": 10, "because": "asked for", "mode": "always", "score": None, **more}


def tool(name: str, description: str = "does it") -> Tool:
    return Tool(name, description, {"type": "object"}, server="github")


class Chat:
    """A conversation in a store, and requests that are made of what is given here."""

    def __init__(self, store: Store, format: Format | None = None) -> None:
        self.store, self.format = store, format or OpenAIFormat()
        self.id = store.tree.create().id
        self.said: list[Message] = []
        self.last: str | None = None

    def compare(self, before: str, after: str) -> Difference:
        return self.store.records.compare(before, after, format_named)

    def broken_by(self, before: str, after: str) -> str | None:
        return self.compare(before, after).prefix.broken_by

    def say(self, *texts: str) -> None:
        for text in texts:
            role: Role = "assistant" if len(self.said) % 2 else "user"
            parent = self.said[-1].id if self.said else None
            message = Message(new_id(), role, (Text(text),), parent=parent)
            self.said.append(self.store.tree.append(self.id, message).message)

    def send(
        self,
        *,
        system: str = "Be kind.",
        tools: tuple[Tool, ...] = (),
        sections: dict[str, list[dict[str, Any]]] | None = None,
        first: int = 0,
        purpose: Purpose = "reply",
        model: str = "openai:gpt-5",
        **account: Any,
    ) -> str:
        """Everything said from `first` on; the last message is the one that is answered."""
        *history, current = self.said[first:]
        preamble = self.format.preamble(model.partition(":")[2], PARAMETERS, system, tools)
        wires = [tuple(self.format.entry(Entry(each.role, each.blocks), "openai")) for each in self.said[first:]]
        pieces = (*preamble, *list_pieces(wires, self.format.opened(system)), self.format.closing(PARAMETERS))
        told = {"system": [pick("system", "system prompt")], **(sections or {})}
        if tools:
            told["tools"] = [
                pick("tool", each.id.name, server=each.server, mode="manual", sha256=each.sha256) for each in tools
            ]
        if history:
            told["history"] = [pick("messages", f"{history[0].id}…{history[-1].id}")]
        told["message"] = [pick("message", current.id)]
        rows = [
            {"name": name, "tokens": sum(each["tokens"] for each in picks), "budget": 100, "picks": picks}
            for name, picks in told.items()
        ]
        total = sum(row["tokens"] for row in rows)
        given = {"sections": rows, "total": total, "limit": 1000, "strategy": "hybrid", "compaction": None}
        request = Request(
            id=new_id(),
            conversation=self.id,
            purpose=purpose,
            model=model,
            format=self.format.name,
            parameters=PARAMETERS.given(),
            pieces=pieces,
            account=RequestAccount.from_json({**given, "messages": {"current": current.id}, **account}),
            message=current.id,
            created="2026-01-31T12:00:00.000Z",
            stable=len(preamble) + len(history),
        )
        self.store.records.save(request, self.last)
        self.last = request.id
        return request.id


@pytest.fixture
def chat(store: Store) -> Chat:
    made = Chat(store)
    made.say("Hello", "Hi", "How high is the mast?")
    return made


def test_the_next_turn_brings_its_messages_and_breaks_nothing(chat: Chat) -> None:
    one = chat.send()
    chat.say("14 metres.", "And the keel?")
    found = chat.compare(one, chat.send())
    assert [said.number for said in found.said_in] == [4, 5]
    assert (found.said_out, found.came_in, found.went_out, found.changed, found.facts) == ((), (), (), (), ())
    assert found.prefix.broken_by is None
    assert found.prefix.pieces == 5, "the former's message came again too: nothing was picked for it alone"
    assert found.prefix.of == 4
    assert found.prefix.first is not None
    assert found.prefix.first.kind == "message"
    totals = {shift.name: (shift.before, shift.after) for shift in found.sections}
    assert totals == {"system": (10, 10), "history": (10, 10), "message": (10, 10), "total": (30, 30)}


def test_what_was_sent_twice_is_the_same(chat: Chat) -> None:
    found = chat.compare(chat.send(), chat.send())
    assert (found.said_in, found.said_out, found.came_in, found.went_out, found.changed) == ((), (), (), (), ())
    assert (found.prefix.first, found.prefix.broken_by) == (None, None)
    body = chat.store.records.rebuild(found.after)
    assert (found.prefix.bytes, found.prefix.tokens) == (len(body), 30)


def test_a_changed_rule_is_shown_line_by_line_and_broke_the_prefix(chat: Chat) -> None:
    old, new = "Write short.\nWrite well.", "Write long.\nWrite well."
    hashes = [chat.store.blobs.put(text.encode()) for text in (old, new)]
    sent = [
        chat.send(system=f"Be kind.\n{text}", sections={"rules": [pick("rule", "style", sha256=sha256)]})
        for text, sha256 in zip((old, new), hashes, strict=True)
    ]
    found = chat.compare(*sent)
    (change,) = found.changed
    assert (change.after.name, change.what) == ("style", ("text",))
    assert change.text == ("@@ -1,2 +1,2 @@", "-Write short.", "+Write long.", " Write well.")
    assert found.prefix.broken_by == "the instructions changed: rule style changed"
    assert found.prefix.first is not None
    assert (found.prefix.pieces, found.prefix.first.number, found.prefix.first.kind) == (1, 2, "system")


@pytest.mark.parametrize("format", [OpenAIFormat(), AnthropicFormat()])
def test_tools_that_came_and_went_are_named(store: Store, format: Format) -> None:
    chat = Chat(store, format)
    chat.say("Hello")
    one = chat.send(tools=(tool("github__list"), tool("github__close")))
    more = chat.send(tools=(tool("github__list"), tool("github__close"), tool("github__create_issue")))
    none = chat.send()
    assert chat.broken_by(one, more) == "the tools changed: github__create_issue came in"
    found = chat.compare(more, none)
    gone = "github__list went out, github__close went out, github__create_issue went out"
    assert found.prefix.broken_by == f"the tools changed: {gone}"
    assert [item.name for item in found.went_out] == ["github__list", "github__close", "github__create_issue"]
    assert {item.server for item in found.went_out} == {"github"}
    many = chat.send(tools=tuple(tool(f"github__{n}") for n in range(5)))
    told = chat.broken_by(none, many)
    assert told == "the tools changed: github__0 came in, github__1 came in, github__2 came in and 2 more"


def test_a_tool_with_another_description_changed(chat: Chat) -> None:
    old, new = tool("search"), tool("search", "does it better")
    for each in (old, new):
        chat.store.blobs.put(each.text.encode())
    found = chat.compare(chat.send(tools=(old,)), chat.send(tools=(new,)))
    assert found.prefix.broken_by == "the tools changed: search changed"
    (change,) = found.changed
    assert '-  "description": "does it",' in change.text
    assert '+  "description": "does it better",' in change.text
    swapped = [(tool("a"), tool("b")), (tool("b"), tool("a"))]
    one, other = (chat.send(tools=tools) for tools in swapped)
    assert chat.broken_by(one, other) == "the tools changed: their order changed"


def test_another_mode_score_or_section_is_told(chat: Chat) -> None:
    before = {"sources": [pick("rule", "a", mode="agent", score=0.8), pick("reference", "b", mode="agent", score=0.7)]}
    after = {"rules": [pick("rule", "a", mode="manual")], "sources": [pick("reference", "b", mode="agent", score=0.6)]}
    found = chat.compare(chat.send(sections=before), chat.send(system="Be kind. A.", sections=after))
    assert {change.after.name: change.what for change in found.changed} == {
        "a": ("mode", "score", "section"),
        "b": ("score",),
    }
    assert found.prefix.broken_by == "the instructions changed: rule a came in"


def test_a_compaction_is_named_with_what_it_left_out(chat: Chat) -> None:
    one = chat.send()
    chat.say("14 metres.", "And the keel?")
    summary = {"summary": [pick("summary", "compaction 1")]}
    two = chat.send(first=3, compaction=1, sections=summary)
    found = chat.compare(one, two)
    assert [said.number for said in found.said_out] == [1, 2, 3]
    assert found.prefix.broken_by == "compaction 1"
    assert [shift.name for shift in found.facts] == ["compaction"]
    assert [item.name for item in found.came_in] == ["compaction 1"]
    with_tool = chat.send(first=3, compaction=2, sections=summary, tools=(tool("recall"),))
    assert chat.broken_by(two, with_tool) == ("compaction 2, and with it the tools changed: recall came in")
    back = chat.compare(two, one)
    assert back.prefix.broken_by == "another branch, before the compaction"


def test_another_model_and_another_branch_are_named(chat: Chat) -> None:
    one = chat.send()
    other = chat.send(model="openai:gpt-6")
    found = chat.compare(one, other)
    assert found.prefix.broken_by == "another model: openai:gpt-5 → openai:gpt-6"
    assert [(shift.name, shift.before, shift.after) for shift in found.facts] == [
        ("model", "openai:gpt-5", "openai:gpt-6")
    ]
    chat.said = chat.said[:1]
    chat.say("Ahoy", "How deep is the keel?", "2 metres.")
    assert chat.broken_by(one, chat.send()) == ("another branch: message #2 is another one")


def test_what_is_left_out_anew_and_what_is_summed_up_is_said(chat: Chat) -> None:
    chat.say("14 metres.", "And the keel?")
    one, passing = chat.send(), chat.send(first=2, passing=True)
    told = chat.broken_by(one, passing)
    assert told == "what does not fit is left out anew with every request"
    summary = chat.send(purpose="summary")
    assert chat.broken_by(one, summary) is None
    apart = chat.send(system="Sum up.", purpose="summary")
    assert chat.broken_by(one, apart) == "a transcript of its own"


def test_two_conversations_are_told_as_such_and_never_as_branches(chat: Chat, store: Store) -> None:
    other = Chat(store)
    other.say("Ahoy", "Aye", "How deep is the keel?")
    cut = Chat(store)
    cut.say("Ahoy", "Aye", "How deep is the keel?")
    one = chat.send()
    rounds = {"current": cut.said[-1].id, "rounds": [cut.said[0].id]}
    for two in (other.send(), cut.send(compaction=1), cut.send(compaction=1, messages=rounds)):
        found = chat.compare(one, two)
        assert found.prefix.broken_by == "another conversation"
        assert found.facts[0].name == "conversation"
        assert found.facts[0].before == chat.id
        assert chat.broken_by(two, one) == "another conversation"
    assert chat.compare(one, chat.send()).facts == ()
    wordy = Chat(store)
    wordy.say("Hello")
    assert wordy.compare(one, wordy.send(system="Be brief.")).prefix.broken_by == (
        "the instructions changed: the system prompt changed"
    )


def test_the_one_before_is_the_base_or_the_last_reply_before(chat: Chat) -> None:
    records = chat.store.records
    one = chat.send()
    chat.last = None
    two = chat.send()
    chat.last = None
    gist = chat.send(purpose="gist")
    chat.last = None
    three = chat.send()
    assert [records.before(id) for id in (two, gist, three)] == [one, two, two]
    with pytest.raises(NotFound, match="nothing was sent before"):
        records.before(one)


def test_a_request_is_found_by_its_reply_and_by_its_question(chat: Chat) -> None:
    records = chat.store.records
    chat.send()
    last = chat.send()
    reply = Message(new_id(), "assistant", (Text("Yes."),), parent=chat.said[-1].id, request=last)
    chat.store.tree.append(chat.id, reply)
    assert records.named(last) == records.named(reply.id) == records.named(chat.said[-1].id) == last
    with pytest.raises(NotFound, match="No context data available"):
        records.named(chat.said[0].id)
    with pytest.raises(NotFound, match="there is no request nowhere"):
        records.named("nowhere")


# -- laws

NAMES = st.sampled_from(["a", "b", "c", "d"])
PICKS = st.builds(
    lambda kind, name, server, mode, score, sha256: pick(
        kind, name, server=server if kind == "tool" else "", mode=mode, score=score, sha256=sha256
    ),
    st.sampled_from(["rule", "reference", "tool", "document"]),
    NAMES,
    st.sampled_from(["", "x", "y"]),
    st.sampled_from(["always", "manual", "agent"]),
    st.none() | st.sampled_from([0.4, 0.8]),
    st.none() | st.sampled_from(["0" * 64, "1" * 64]),
)
SECTIONS = st.dictionaries(
    st.sampled_from(["rules", "references", "tools", "sources", "documents"]), st.lists(PICKS, max_size=6)
)
PIECES = st.lists(
    st.sampled_from([b"", b"{", b"]", b',{"role":"user"}', b'{"function":{}}', b"\xff", b"[1]"]), max_size=6
)


def side(sections: dict[str, list[dict[str, Any]]], pieces: list[bytes], stable: int) -> ComparedRequest:
    rows = [{"name": name, "tokens": 0, "budget": 0, "picks": picks} for name, picks in sections.items()]
    account = RequestAccount.from_json({"sections": rows})
    return ComparedRequest("id", "c", "reply", account, tuple(pieces), min(stable, len(pieces)), format=OpenAIFormat())


SIDES = st.builds(side, SECTIONS, PIECES, st.integers(0, 6))


@settings(max_examples=examples(100))
@given(SIDES, SIDES)
def test_what_came_in_went_out_and_stayed_makes_up_both(one: ComparedRequest, other: ComparedRequest) -> None:
    found: Difference = compare(one, other)
    came, went = ({item.key for item in items} for items in (found.came_in, found.went_out))
    assert came == other.items.keys() - one.items.keys()
    assert went == one.items.keys() - other.items.keys()
    assert {change.after.key for change in found.changed} <= one.items.keys() & other.items.keys()
    back = compare(other, one)
    assert (back.came_in, back.went_out) == (found.went_out, found.came_in)
    assert (back.prefix.pieces, back.prefix.bytes) == (found.prefix.pieces, found.prefix.bytes)
    shared = found.prefix.pieces
    assert one.pieces[:shared] == other.pieces[:shared]
    assert one.pieces[shared : shared + 1] != other.pieces[shared : shared + 1] or not one.pieces[shared:]
    assert (found.prefix.broken_by is None) == (shared >= one.stable)


@given(SIDES)
def test_nothing_differs_from_itself(one: ComparedRequest) -> None:
    found = compare(one, one)
    assert (found.came_in, found.went_out, found.changed, found.facts) == ((), (), (), ())
    assert (found.prefix.first, found.prefix.broken_by) == (None, None)
