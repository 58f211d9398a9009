"""Facts of a text: which are found, which are significant, and that no text takes long."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.summary.facts import find_facts
from recto.summary.machine_output import MACHINE, PROSE


def significant(text: str, author: str = "") -> set[tuple[str, str]]:
    return {fact.key for fact in find_facts(text, author=author) if fact.is_significant}


@pytest.mark.parametrize(
    ("text", "kind", "normal"),
    [
        ("It took 3.5 ms at last.", "number", "0.0035 s"),
        ("We met Ada Lovelace there.", "name", "ada lovelace"),
        ("Ada's sister came. We like Ada.", "name", "ada"),
        ("Look into src/app.py:42, please.", "path", "src/app.py:42"),
        ("It is in /etc/hosts now.", "path", "/etc/hosts"),
        ("See https://example.com/a?b=1.", "url", "https://example.com/a?b=1"),
        ("Write to ada@example.org!", "url", "ada@example.org"),
        ("Run `make test` first.", "command", "make test"),
        ("```\ngit push origin main\n```", "command", "git push origin main"),
        ("It sets max_retries to five.", "identifier", "max_retries"),
        ("We use PostgreSQL here.", "identifier", "postgresql"),
        ("It is ticket ABC-123.", "identifier", "abc-123"),
        ("Since commit 9fceb02a it works.", "identifier", "9fceb02a"),
        ("Since v2.3.1 it works.", "version", "2.3.1"),
        ('He called it "the red thread" then.', "quote", "the red thread"),
        ("We meet on Friday.", "date", "friday"),
        ("The call is at 2:30 pm today.", "time", "14:30"),
        ("It holds 10-20 MB of text.", "number", "10–20 MB"),
        ("There are 14 boats.", "number", "14"),
        ("ValueError: no such boat", "error", "valueerror: no such boat"),
        ("费用大约是3000元。", "number", "3000 cny"),
        ("请读《人民日报》。", "quote", "人民日报"),
        ("これはマイクロソフトです。", "name", "マイクロソフト"),
    ],
)
def test_each_kind_is_found(text: str, kind: str, normal: str) -> None:
    assert (kind, normal) in significant(text)


@pytest.mark.parametrize(
    "text",
    [
        "Yesterday we walked and/or talked, e.g. about the weather.",
        "1. First\n2. Second",
        "Next steps: think it over.",
        "There is one of 2 ways.",
        "I think I'm OK with that.",
        "Das Haus hat einen Garten und die Nachbarn haben einen Hund.",
    ],
)
def test_plain_words_are_no_facts(text: str) -> None:
    assert significant(text) == set()


def test_in_machine_output_paths_outcomes_and_errors_are_significant_and_tables_are_not() -> None:
    rows = "\n".join(f"{n} root 20 0 {n}.5m S kworker" for n in range(40))
    text = f"{rows}\nsrc/app.py:12: in test\nValueError: bad\n12 passed, 3 failed in 4.52s\ndeadbeef01 0x7ffe"
    kinds = significant(text, MACHINE)
    assert {("number", "12"), ("number", "3"), ("number", "4.52 s"), ("path", "src/app.py:12")} <= kinds
    assert len(kinds) == 5


@given(st.text())
def test_facts_lie_where_they_say(text: str) -> None:
    for fact in find_facts(text, author=PROSE):
        assert 0 <= fact.start < fact.end <= len(text)
        assert fact.text in text[fact.start : fact.end]


HOSTILE = (
    "a.",
    "1",
    '"',
    "/",
    "a/",
    "漢",
    "a+",
    "`",
    "1,",
    "-a",
    "a@",
    "_",
    "f1",
    "(",
    "1-",
    "\n",
    "'",
    "\\",
    "#",
    "12:",
    "Ab ",
)


@pytest.mark.untraced
@pytest.mark.parametrize("piece", HOSTILE)
def test_no_text_is_read_in_more_than_linear_time(piece: str) -> None:
    short, long = piece * (40_000 // len(piece)), piece * (320_000 // len(piece))
    assert seconds(long) < 8 * 4 * (seconds(short) + 0.02)


def seconds(text: str) -> float:
    started = time.process_time()
    find_facts(text)
    return time.process_time() - started
