"""Facts of a text: what is found, what counts, which spellings are the same, and that no text takes long."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.summary.bindings import answers, decisions, shortest
from recto.summary.facts import facts
from recto.summary.figures import date, number
from recto.summary.layout import MACHINE, PROSE


def found(text: str, by: str = "") -> set[tuple[str, str]]:
    return {fact.key for fact in facts(text, by=by) if fact.counts}


@pytest.mark.parametrize(
    "spellings",
    [
        ("3,200", "3200", "3.2k"),
        ("3.5 ms", "3500 µs", "0.0035 s"),
        ("$5M", "5 million dollars", "5,000,000 USD"),
        ("1.200,50 €", "€1,200.50", "1200.5 euros"),
        ("12%", "12 percent", "12 Prozent"),
        ("2 hours", "120 min", "7200 s"),
        ("30-minute", "30 minutes"),
        ("3000円", "3,000 yen"),
    ],
)
def test_a_number_is_the_same_in_every_spelling(spellings: tuple[str, ...]) -> None:
    assert len({number(each) for each in spellings}) == 1


@pytest.mark.parametrize(
    "written",
    [
        "2024-05-01",
        "2024/5/1",
        "01.05.2024",
        "5/1/2024",
        "May 1, 2024",
        "1 May 2024",
        "1st of May 2024",
        "1. Mai 2024",
        "1 de mayo de 2024",
        "2024年5月1日",
    ],
)
def test_a_date_is_the_same_in_every_spelling(written: str) -> None:
    assert found(f"We ship on {written} at last.") >= {("date", "2024-05-01")}
    assert date(written) == "2024-05-01"


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
    assert (kind, normal) in found(text)


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
    assert found(text) == set()


def test_of_a_machines_output_paths_outcomes_and_errors_count_and_tables_do_not() -> None:
    rows = "\n".join(f"{n} root 20 0 {n}.5m S kworker" for n in range(40))
    text = f"{rows}\nsrc/app.py:12: in test\nValueError: bad\n12 passed, 3 failed in 4.52s\ndeadbeef01 0x7ffe"
    kinds = found(text, MACHINE)
    assert {("number", "12"), ("number", "3"), ("number", "4.52 s"), ("path", "src/app.py:12")} <= kinds
    assert len(kinds) == 5


def test_a_decision_is_a_sentence_that_binds_told_by_its_content_words() -> None:
    said = "Nice weather. By the way, we decided to use PostgreSQL, because the team knows it. Do you agree?"
    (decision,) = decisions(said)
    assert shortest(decision.text) == "we decided to use PostgreSQL"
    assert "postgre" in decision.normal


def test_a_word_or_two_by_the_user_are_an_answer_unless_they_say_nothing() -> None:
    assert [fact.text for fact in answers("archive-and-ribbon", "user")] == ["archive-and-ribbon"]
    for text in ("Yes please.", "ok", "Which one?", "Not yet.", "a whole sentence about nothing much at all"):
        assert answers(text, "user") == []


@given(st.text())
def test_facts_lie_where_they_say(text: str) -> None:
    for fact in facts(text, by=PROSE):
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


@pytest.mark.parametrize("piece", HOSTILE)
def test_no_text_is_read_in_more_than_linear_time(piece: str) -> None:
    short, long = piece * (40_000 // len(piece)), piece * (320_000 // len(piece))
    assert seconds(long) < 8 * 4 * (seconds(short) + 0.02)


def seconds(text: str) -> float:
    started = time.process_time()
    facts(text)
    return time.process_time() - started
