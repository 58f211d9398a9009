"""The chain: where a client's list of messages continues a stored path."""

from hypothesis import given
from hypothesis import strategies as st

from recto.chat.blocks import Image, Text, Thinking, ToolCall, ToolResult
from recto.chat.chain import ChainLink, Continuation, chained, continuation, print_of


def user(text: str) -> ChainLink:
    return ChainLink("user", print_of("user", (Text(text),)))


def reply(text: str) -> ChainLink:
    return ChainLink("assistant", print_of("assistant", (Text(text),)))


def result(text: str) -> ChainLink:
    return ChainLink("tool", print_of("tool", (ToolResult("1", "read", text),)))


PATH = [user("hello"), reply("hi"), user("how long?"), reply("7 m"), user("how wide?"), reply("2 m")]


def test_a_list_that_says_one_thing_more_goes_on_at_the_end() -> None:
    assert continuation([*PATH, user("how deep?")], PATH) == Continuation(6, 6)


def test_a_list_that_is_known_says_nothing_new() -> None:
    assert continuation(PATH, PATH) == Continuation(6, 6)
    assert continuation(PATH[:3], PATH) == Continuation(3, 3)


def test_an_old_message_that_differs_with_replies_behind_it_is_a_rewording() -> None:
    given = [user("hello at 9:01"), *PATH[1:], user("how deep?")]
    assert continuation(given, PATH) == Continuation(6, 6, reworded=((0, 0),))


def test_a_message_that_differs_without_replies_behind_it_is_an_edit() -> None:
    assert continuation([*PATH[:4], user("how deep?")], PATH) == Continuation(4, 4)


def test_a_client_that_cuts_its_history_is_noticed() -> None:
    assert continuation([*PATH[2:], user("how deep?")], PATH) == Continuation(6, 4, cut=2)


def test_a_message_that_the_path_has_in_no_form_is_not_lost() -> None:
    given = [PATH[0], PATH[1], reply("by the way"), *PATH[2:], user("how deep?")]
    found = continuation(given, PATH)
    assert (found.at, found.new) == (2, 2)


def test_replies_that_say_the_same_are_told_apart_by_what_stands_before_them() -> None:
    path = [user("a"), reply("ok"), user("b"), reply("ok"), user("c"), reply("ok")]
    assert continuation([*path[:4], user("d")], path) == Continuation(4, 4)
    assert continuation([user("a, again"), reply("ok"), user("d")], path) == Continuation(2, 2, reworded=((0, 0),))


def test_thinking_white_space_and_the_order_of_keys_do_not_count() -> None:
    call = ToolCall("1", "read", '{"a": 1, "b": 2}')
    same = ToolCall("1", "read", '{"b":2,"a":1}')
    assert print_of("assistant", (Text("Yes.\n"), call)) == print_of("assistant", (Thinking("Hm."), Text("Yes."), same))
    assert print_of("tool", (ToolResult("1", "read", "x"),)) != print_of("tool", (ToolResult("2", "read", "x"),))


def test_a_picture_is_the_same_as_data_and_in_the_store() -> None:
    stored = Image("image/png", sha256="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
    assert print_of("user", (Image("image/png", "dGVzdA=="),)) == print_of("user", (stored,))


def test_a_chain_tells_everything_before_a_message() -> None:
    assert chained(PATH)[:3] == chained(PATH[:3])
    assert chained([user("x"), *PATH[1:]])[-1] != chained(PATH)[-1]


LINKS = st.lists(
    st.builds(lambda make, text: make(text), st.sampled_from([user, reply, result]), st.sampled_from("abc")),
    max_size=12,
)


@given(LINKS, LINKS)
def test_nothing_that_a_client_says_is_lost(given: list[ChainLink], path: list[ChainLink]) -> None:
    found = continuation(given, path)
    assert 0 <= found.at <= len(path)
    assert 0 <= found.new <= len(given)
    reworded = dict(found.reworded)
    places = [place for _, place in sorted(reworded.items())]
    assert places == sorted(places)
    # what counts as stored is on the path in this order, word for word but for rewordings of the same role
    at = 0
    for number, link in enumerate(given[: found.new]):
        if number in reworded:
            assert path[reworded[number]].role == link.role
            at = reworded[number] + 1
        else:
            at = next(n for n in range(at, found.at) if path[n].print == link.print) + 1
    if found.reworded:
        last = max(number for number, _ in found.reworded)
        assert any(link.role == "assistant" for link in given[last + 1 : found.new])
