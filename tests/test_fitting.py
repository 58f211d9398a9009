"""`recto.fit`: a client's own messages, made to fit; kept ones are the very objects that were given."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recto

Json = Any
MODEL = "openai:gpt-4o"
SYSTEM = {"role": "system", "content": "Be brief."}


def chat(turns: int) -> list[Json]:
    messages: list[Json] = [SYSTEM]
    for number in range(turns):
        messages.append({"role": "user", "content": f"Plank {number} of the hull costs {number * 7} euros. " * 4})
        messages.append({"role": "assistant", "content": f"Plank {number} is noted.", "name": "clerk"})
    return [*messages, {"role": "user", "content": "What does plank 3 cost?"}]


def agent_run(rounds: int) -> list[Json]:
    messages: list[Json] = [SYSTEM, {"role": "user", "content": "Find out why the pump fails."}]
    for number in range(rounds):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": f'{{"n":{number}}}'}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": f"line {number} of the log. " * 30})
    return messages


def anthropic_run(rounds: int) -> list[Json]:
    messages: list[Json] = [{"role": "user", "content": "Find out why the pump fails."}]
    for number in range(rounds):
        use = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {"n": number}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"line {number} of the log. " * 30}
        messages.append({"role": "assistant", "content": [{"type": "text", "text": "I read on."}, use]})
        messages.append({"role": "user", "content": [result]})
    return messages


def ids(messages: list[Json]) -> list[int]:
    return [id(message) for message in messages]


def test_messages_that_fit_come_back_as_they_are() -> None:
    messages = chat(3)
    fitted = recto.fit(messages, model=MODEL)
    assert fitted.messages == messages
    assert ids(fitted.messages) == ids(messages)
    assert (fitted.left_out, fitted.because, fitted.exact) == ([], "everything fits", False)


def test_a_long_chat_is_summed_up_and_its_latest_messages_stay_byte_for_byte() -> None:
    messages = chat(60)
    before = copy.deepcopy(messages)
    fitted = recto.fit(messages, model=MODEL, max_prompt_tokens=2000)
    assert messages == before
    assert fitted.tokens <= fitted.room == 2000
    assert fitted.messages[0] is SYSTEM
    assert fitted.messages[-1] is messages[-1]
    assert fitted.summary.startswith("[Summary of the earlier conversation")
    assert fitted.messages[1] == {"role": "user", "content": fitted.summary}
    kept = fitted.messages[2:]
    assert ids(kept) == ids(messages[-len(kept) :])
    assert ids(fitted.left_out) == ids(messages[1 : -len(kept)])
    assert "over the 2000" in fitted.because


def test_a_list_that_grows_keeps_its_beginning_until_it_is_full_again() -> None:
    messages = chat(60)
    first = recto.fit(messages, model=MODEL, max_prompt_tokens=2000)
    more = [*messages, {"role": "assistant", "content": "21 euros."}, {"role": "user", "content": "Thanks."}]
    second = recto.fit(more, model=MODEL, max_prompt_tokens=2000)
    assert second.messages[: len(first.messages)] == first.messages


def test_messages_in_the_format_of_anthropic_are_fitted_too() -> None:
    messages = anthropic_run(40)
    fitted = recto.fit(messages, model="anthropic:claude-sonnet-4-5", system="Be brief.", max_prompt_tokens=3000)
    assert fitted.left_out
    assert fitted.tokens <= 3000
    uses, results = set[str](), set[str]()
    for message in fitted.messages:
        parts = message["content"] if isinstance(message["content"], list) else []
        uses |= {part["id"] for part in parts if part["type"] == "tool_use"}
        results |= {part["tool_use_id"] for part in parts if part["type"] == "tool_result"}
    assert uses == results


def test_a_result_that_is_larger_than_the_window_keeps_its_ends() -> None:
    messages = agent_run(1)
    messages[-1] = {**messages[-1], "content": "\n".join(f"{n}: all is well" for n in range(2000)), "more": 1}
    fitted = recto.fit(messages, model=MODEL, max_prompt_tokens=1500)
    sent = fitted.messages[-1]
    assert fitted.tokens <= 1500
    assert ids(fitted.shortened) == [id(messages[-1])]
    assert sent["content"].startswith("0: all is well")
    assert sent["content"].endswith("1999: all is well")
    assert "characters are left out here …]" in sent["content"]
    assert (sent["tool_call_id"], sent["more"]) == ("c0", 1)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"messages": "hello"}, "messages must be a list"),
        ({"messages": []}, "messages must be a list"),
        ({"messages": ["hello"]}, "messages and tools must be objects"),
        ({"max_prompt_tokens": 0}, "max_prompt_tokens must be a whole number above 0"),
        ({"strategy": "none"}, "strategy must be one of"),
    ],
)
def test_what_cannot_be_fitted_is_refused_in_one_sentence(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(recto.Invalid, match=said):
        recto.fit(**{"messages": chat(1), "model": MODEL, **changes})


WORDS = st.lists(st.sampled_from(["plank", "mast", "pump 7", "we decided", "sail", "?"]), min_size=1, max_size=60)
TURNS = st.lists(st.tuples(st.integers(0, 3), WORDS), min_size=1, max_size=25)


@given(TURNS, st.integers(700, 3000), st.sampled_from(["summarize", "discard", "hybrid"]))
def test_every_message_is_sent_or_named_and_every_window_fits(
    turns: list[tuple[int, list[str]]], limit: int, strategy: str
) -> None:
    messages: list[Json] = []
    for number, (calls, words) in enumerate(turns):
        messages.append({"role": "user", "content": " ".join(words)})
        for call in range(calls):
            name = f"{number}.{call}"
            function = {"id": name, "type": "function", "function": {"name": "read", "arguments": "{}"}}
            messages.append({"role": "assistant", "content": None, "tool_calls": [function]})
            messages.append({"role": "tool", "tool_call_id": name, "content": " ".join(words) * call})
        messages.append({"role": "assistant", "content": " ".join(reversed(words))})
    messages.append({"role": "user", "content": "And now?"})
    fitted = recto.fit(messages, model=MODEL, max_prompt_tokens=limit, strategy=strategy)
    assert fitted.tokens <= limit
    own = [each for each in fitted.messages if id(each) in set(ids(messages))]
    rest = [each for each in messages if id(each) not in set(ids(own))]
    places = {id(each): at for at, each in enumerate(messages)}
    assert sorted(places[id(each)] for each in (*fitted.left_out, *fitted.shortened)) == [places[id(e)] for e in rest]
    assert [places[id(each)] for each in own] == sorted(places[id(each)] for each in own)
    _assert_paired(fitted.messages)


def _assert_paired(messages: list[Json]) -> None:
    calls = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    results = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert calls == results
