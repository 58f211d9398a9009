"""Two requests side by side, in a real store."""

from collections.abc import Iterable
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
from recto.sources.source import Pick, Tool
from recto.store.comparison import ComparedPick, Difference, compare
from recto.store.store import Store
from recto.turn.preamble import list_pieces
from recto.window.account import PrefixReuse, RequestAccount
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
        return self.store.records.compare(before, after)

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


def test_the_next_turn_breaks_nothing(chat: Chat) -> None:
    one = chat.send()
    chat.say("14 metres.", "And the keel?")
    found = chat.compare(one, chat.send())
    assert (found.came_in, found.went_out, found.changed, found.facts) == ((), (), (), ())
    assert found.prefix == PrefixReuse(one, 4, 4, None)
    totals = {shift.name: (shift.before, shift.after) for shift in found.sections}
    assert totals == {"system": (10, 10), "history": (10, 10), "message": (10, 10), "total": (30, 30)}
    chat.send()
    assert chat.last is not None
    assert chat.compare(one, chat.last).prefix is None, "another request was sent between"


@pytest.mark.parametrize("format", [OpenAIFormat(), AnthropicFormat()])
def test_what_broke_the_prefix_is_recorded(store: Store, format: Format) -> None:
    chat = Chat(store, format)
    chat.say("Hello", "Hi", "How high is the mast?")
    summary = {"summary": [pick("summary", "compaction 1")]}
    steps: list[tuple[str, dict[str, Any]]] = [
        ("the instructions changed", {"system": "Be brief."}),
        ("the tools changed", {"system": "Be brief.", "tools": (tool("github__list"),)}),
        ("another model", {"system": "Be brief.", "tools": (tool("github__list"),), "model": "openai:gpt-6"}),
        ("compaction 1", {"first": 1, "compaction": 1, "sections": summary}),
        ("another branch, before the compaction", {}),
        ("what does not fit is left out anew with every request", {"first": 1, "passing": True}),
    ]
    before = chat.send()
    for broken_by, sent in steps:
        if broken_by.startswith("compaction"):
            before = chat.send()
        found = chat.compare(before, chat.send(**sent))
        assert found.prefix is not None
        assert found.prefix.broken_by == broken_by
        before = found.after
    apart = chat.compare(before, chat.send(system="Sum up.", purpose="summary"))
    assert apart.prefix is not None
    assert apart.prefix.broken_by == "a transcript of its own"


def test_sources_that_came_went_and_changed_are_named(chat: Chat) -> None:
    before = {
        "sources": [
            pick("rule", "a", mode="agent", score=0.8, sha256="0" * 64),
            pick("reference", "b", mode="agent", score=0.7),
            pick("document", "c"),
        ]
    }
    after = {
        "rules": [pick("rule", "a", mode="manual", sha256="1" * 64)],
        "sources": [pick("reference", "b", mode="agent", score=0.6), pick("document", "d", tokens=5)] * 2,
    }
    found = chat.compare(chat.send(sections=before), chat.send(system="Be kind. A.", sections=after))
    assert {change.after.name: change.what for change in found.changed} == {
        "a": ("text", "mode", "score", "section"),
        "b": ("score",),
    }
    assert [(each.name, each.tokens) for each in found.came_in] == [("d", 10)], "two passages of one document"
    assert [each.name for each in found.went_out] == ["c"]
    other = chat.compare(found.after, chat.send(model="openai:gpt-6"))
    assert [(each.name, each.after) for each in other.facts] == [("model", "openai:gpt-6")]


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


def side(sections: dict[str, list[dict[str, Any]]]) -> RequestAccount:
    rows = [{"name": name, "tokens": 0, "budget": 0, "picks": picks} for name, picks in sections.items()]
    return RequestAccount.from_json({"sections": rows})


def keys(picks: Iterable[Pick | ComparedPick]) -> set[tuple[str, str, str]]:
    return {(each.kind, each.name, each.server) for each in picks}


SIDES = st.builds(side, SECTIONS)


@settings(max_examples=examples(100))
@given(SIDES, SIDES)
def test_what_came_in_went_out_and_stayed_makes_up_both(one: RequestAccount, other: RequestAccount) -> None:
    found = compare(one, other, ("one", "other"))
    ours, theirs = keys(one.picks()), keys(other.picks())
    assert (keys(found.came_in), keys(found.went_out)) == (theirs - ours, ours - theirs)
    assert keys(change.after for change in found.changed) <= ours & theirs
    back = compare(other, one, ("other", "one"))
    assert (back.came_in, back.went_out) == (found.went_out, found.came_in)
    same = compare(one, one, ("one", "one"))
    assert (same.came_in, same.went_out, same.changed, same.facts) == ((), (), (), ())
