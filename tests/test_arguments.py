"""The Python door refuses what it cannot use, in one sentence, whatever is passed for any argument of any method."""

import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Open, Script, mostly_slow

from recto.api.arguments import CHECKED_ELSEWHERE, rule_of
from recto.api.ask_options import AskOptions
from recto.api.blocking import Desk, open_desk
from recto.api.desk import AsyncDesk, new_desk
from recto.api.talk import AsyncTalk
from recto.errors import DoesNotFit, Invalid, NotFound, RectoError, StoreError

pytestmark = pytest.mark.untraced

HOSTILE: dict[str, Any] = {
    "empty": "",
    "blank": "  ",
    "half a character": "\ud800",
    "NUL": "a\0b",
    "long": "x" * 100_000,
    "#0": "#0",
    "#-1": "#-1",
    "escape": "\x1b]52;c;eA==\x07",
    "zero": 0,
    "negative": -1,
    "huge": 2**70,
    "float": 1.5,
    "NaN": math.nan,
    "infinite": math.inf,
    "bool": True,
    "None": None,
    "bytes": b"\xff",
    "object": object(),
    "list": [],
    "list of halves": ["\ud800"],
    "dict": {"a": math.nan},
}
# What the other arguments of a call are; each names something that there is.
FITTING: dict[str, Any] = {
    **dict.fromkeys(("message", "named", "request", "requests", "given", "text", "title", "keep", "value"), "#1"),
    **dict.fromkeys(("conversation", "id"), 1),
    "names": ["rule:style"],
    "model": "scripted:script0.json",
    "name": "scripted:script0.json",
    "mode": "always",
    "source": "rule:style",
    "server": "recto",
    "tool": "recto/read_document",
    "file": "conversations.jsonl",
    "priority": 5,
    "key": "context.summary_style",
    "path": None,
    "section": "system",
    "place": 0,
    "block": 0,
    "messages": [{"role": "user", "content": "hello"}],
    "prepared": None,
    "reply": "Yes.",
    "older_than": "90d",
    "changes": [],
}
ENDS = ("close", "run")


def public(kind: type) -> dict[str, Any]:
    found = {name: each for base in reversed(kind.__mro__[:-1]) for name, each in vars(base).items()}
    return {name: each for name, each in found.items() if not name.startswith("_")}


def methods(door: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    return ((name, each) for name, each in public(door).items() if inspect.isfunction(each) and name not in ENDS)


def arguments(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return [each for each in inspect.signature(function).parameters.values() if each.name != "self"]


CALLS = [
    f"{door.__name__}.{name}.{each.name}"
    for door in (AsyncTalk, AsyncDesk)
    for name, function in methods(door)
    for each in arguments(function)
    if each.kind is not inspect.Parameter.VAR_KEYWORD
]


@pytest.fixture
def at(desk: Open, script: Script, tmp_path: Path) -> Desk:
    rules = tmp_path / "home" / "agents" / "default" / "rules"
    rules.mkdir(parents=True)
    (rules / "style.md").write_text("---\ninclude: manual\n---\nBe short.\n")
    (tmp_path / "vault").mkdir()
    opened = desk(script({"text": "Yes."}), vault=tmp_path / "vault")
    opened.conversation().ask("hello")
    return opened


async def outcome(function: Callable[..., Any], **given: Any) -> RectoError | None:
    """What a call raises; anything but an error of ours goes through."""
    try:
        done = function(**given)
        if inspect.isasyncgen(done):
            async for _ in done:
                pass
        else:
            await done
    except RectoError as why:
        return why
    return None


def test_every_argument_of_the_door_has_a_rule() -> None:
    functions = [function for door in (AsyncTalk, AsyncDesk) for _, function in methods(door)]
    named = [(function.__name__, each) for function in (*functions, new_desk) for each in arguments(function)]
    assert [
        f"{function}.{each.name}"
        for function, each in named
        if each.name not in CHECKED_ELSEWHERE and not rule_of(function, each.name, each.annotation)
    ] == []


@pytest.mark.parametrize("call", mostly_slow(CALLS, [*CALLS[::6], "AsyncTalk.fork.message"]))
def test_whatever_is_passed_is_taken_or_refused_in_one_sentence(at: Desk, call: str) -> None:
    kind, method, argument = call.split(".")
    talk = at.conversation(1)
    function = getattr(talk.asynchronous if kind == "AsyncTalk" else at.asynchronous, method)
    needed = {
        each.name: FITTING[each.name]
        for each in arguments(function)
        if each.default is each.empty and each.kind is not each.VAR_KEYWORD
    }
    rule = rule_of(method, argument, inspect.signature(function).parameters[argument].annotation)
    for what, value in HOSTILE.items():
        error = at.run(outcome(function, **needed | {argument: value}))
        if rule and value is not None and not rule.accepts(value):
            assert isinstance(error, Invalid), what
            assert error.message.startswith(f"{argument} must be "), what
        if error:
            assert isinstance(error, Invalid | NotFound), (what, error)
            assert "\n" not in error.message, what
            assert len(error.message) < 10_000, what
    assert at.conversation(1).ask("are you still there?").text == "Yes."


@pytest.mark.parametrize("option", [*AskOptions.__annotations__, "nonsense"])
def test_whatever_an_option_is_it_is_taken_or_refused_in_one_sentence(at: Desk, option: str) -> None:
    talk = at.conversation(1)
    for what, value in HOSTILE.items():
        error = at.run(outcome(talk.asynchronous.ask, given="hello", **{option: value}))
        if error:
            assert isinstance(error, Invalid | NotFound | DoesNotFit), (what, error)
            assert "\n" not in error.message, what
    assert talk.ask("are you still there?").text == "Yes."


@pytest.mark.parametrize("argument", ["home", "vault", "model", "project", "settings"])
def test_a_desk_is_opened_or_refused(tmp_path: Path, argument: str) -> None:
    for value in HOSTILE.values():
        given = {"home": tmp_path / "home", argument: value}
        with suppress(Invalid, NotFound, StoreError):
            open_desk(**given).close()


@pytest.mark.parametrize("keyword", ["limt", "Since", "from_", "a\x1b]0;x\x07b"])
@pytest.mark.parametrize("method", ["messages", "transcript", "window", "ask"])
def test_a_keyword_that_there_is_not_is_told(desk: Open, script: Script, method: str, keyword: str) -> None:
    talk = desk(script({"text": "r"})).conversation()
    given = () if method in ("messages", "transcript") else ("hello",)
    with pytest.raises(Invalid, match=r"there is no option .*; there are: ") as told:
        getattr(talk, method)(*given, **{keyword: 2})
    assert told.value.data["option"] == keyword
    assert "\x1b" not in told.value.message


def test_a_value_is_repeated_short_and_visible(desk: Open, script: Script) -> None:
    talk = desk(script({"text": "r"})).conversation()
    talk.ask("hello")
    for call in (
        lambda: talk.messages(since="\x1b[31m" + "x" * 4000),
        lambda: talk.ask("x", temperature="\n\x1b" * 50_000),  # type: ignore[arg-type]
        lambda: talk.ask("x", reasoning_effort="\x1b" * 50_000),  # type: ignore[arg-type]
        lambda: talk.ask("x", attachments=[b"\x1b" * 50_000]),  # type: ignore[list-item]
    ):
        with pytest.raises(Invalid) as told:
            call()
        assert len(told.value.message) < 300
        assert not set("\x1b\n") & set(told.value.message)
