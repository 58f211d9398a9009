"""The ledger: word for word, within its limit, each answer with its question, and read as it was written."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.summary.samples import counters, quarter, roles

from recto.summary.ledger import (
    KeyStatement,
    ledger_items,
    ledger_lines,
    ledger_rows,
    parse_ledger,
    parse_place,
)

pytestmark = pytest.mark.untraced

words = st.sampled_from(
    ["pay", "400 €", "#12: x", "· ", " → ", " → #4: no", "user:", "никогда", "船", "\n", "ja.", "→", "a·b"]
)
sayings = st.lists(words, min_size=1, max_size=9).map(" ".join).map(str.strip) | st.text(min_size=1, max_size=60)
edges = re.compile(r"(?:^|[·→])\s*[·→]|[·→]\s*$|^\s*$")  # see the test that is expected to fail
plain = sayings.filter(lambda text: not edges.search(text))
questions = st.none() | st.builds(KeyStatement, st.just(30), st.just("assistant"), plain)
statements = st.builds(KeyStatement, st.integers(1, 30), roles, plain, st.floats(0, 1), st.floats(0, 1), questions)


def flat(text: str) -> str:
    return " ".join(text.split())


@given(st.lists(statements, max_size=12), st.integers(0, 400), counters)
def test_a_ledger_stays_within_its_limit_in_order_of_time(
    found: list[KeyStatement], limit: int, count: Callable[[str], int]
) -> None:
    lines = ledger_lines(found, limit, count)
    assert sum(count(line) for line in lines) <= limit
    assert all(line == " ".join(line.split()) for line in lines)
    numbers = [each.number for each in parse_ledger(lines)]
    assert numbers == sorted(numbers)


@given(statements)
def test_a_statement_is_read_as_it_was_written(one: KeyStatement) -> None:
    lines = ledger_lines([one], 10_000, quarter)
    (back,) = parse_ledger(lines)
    assert (back.number, back.role, back.text) == (one.number, one.role, one.item)
    if one.role == "user" and one.question:
        assert back.question is not None
        assert flat(one.question.text).replace(" → ", " -> ").replace(" · ", "; ") == back.question.text


@pytest.mark.parametrize("said", [["pay · · Ben"], ["go → → #4: no"], ["go →", "→ #4: no"]])
def test_what_looks_like_a_separator_is_never_read_as_one(said: list[str]) -> None:
    lines = ledger_lines([KeyStatement(3, "user", text, 1 - at / 9) for at, text in enumerate(said)], 400, quarter)
    assert len(ledger_items(lines)) == len(said)
    assert {each.number for each in ledger_items(lines)} == {3}


@given(
    st.lists(
        st.builds(
            KeyStatement, st.integers(1, 9), roles, st.sampled_from(["paint it red", "never on Sundays", "船は12隻"])
        ),
        max_size=9,
    )
)
def test_all_statements_of_one_message_share_a_line(found: list[KeyStatement]) -> None:  # fmt: skip
    lines = ledger_lines(found, 10_000, quarter)
    assert len(lines) == len({(each.number, each.role) for each in found})
    assert sorted((each.number, each.role, each.text) for each in ledger_items(lines)) == sorted(
        (each.number, each.role, each.item) for each in found
    )


def test_what_is_needed_and_binds_goes_first() -> None:
    said = [
        KeyStatement(1, "user", "The weather is nice in Porto", 0.5),
        KeyStatement(2, "user", "Nunca llames antes de las nueve", 0.4, 0.9),
        KeyStatement(3, "assistant", "Das Segel kostet 900 €", 0.7),
    ]
    assert ledger_lines(said, 22, quarter) == (
        "#2: Nunca llames antes de las nueve",
        "#3 assistant: Das Segel kostet 900 €",
    )


def test_only_the_end_of_a_long_statement_is_cut() -> None:
    text = "Das Boot liegt am Kai und wird gestrichen, " * 30
    (line,) = ledger_lines([KeyStatement(7, "user", text, 1.0)], 400, quarter)
    assert line.endswith("…")
    assert flat(text).startswith(line.removeprefix("#7: ").removesuffix("…"))
    assert len(line) > 250


def test_an_answer_has_its_question_before_it() -> None:
    answer = KeyStatement(3, "user", "640 m²", 0.9, 0, KeyStatement(2, "assistant", "Wie groß ist die Halle?"))
    more = KeyStatement(3, "user", "and it has no heating", 0.5)
    lines = ledger_lines([answer, more], 200, quarter)
    assert lines == ("#2 assistant: Wie groß ist die Halle? → #3: 640 m² · and it has no heating",)
    assert [each.question for each in parse_ledger(lines)] == [answer.question, None]
    assert list(ledger_rows(lines)) == [
        (3, "user", "Wie groß ist die Halle? → 640 m²"),
        (3, "user", "and it has no heating"),
    ]
    assert ledger_lines(parse_ledger(lines), 200, quarter) == lines


def test_a_place_is_read_as_it_was_written() -> None:
    for one in (
        KeyStatement(4, "assistant", "Das Segel: 900 €"),
        KeyStatement(5, "user", "Nunca"),
        KeyStatement(6, "tool", "ok: 3"),
    ):
        assert parse_place(one.place, one.number) == one


def test_lines_that_nobody_wrote_as_a_ledger_give_nothing() -> None:
    assert parse_ledger(["", "#: x", "# 3: x", "Nobody: hello", "#3 nobody: x"]) == []
