"""The conversations that summaries are judged by, and when a statement counts as told."""

import re

import pytest
from bench.planted import KINDS, SORTS, Chat, Statement, chat, has, is_outdated, is_told


@pytest.mark.parametrize("kind", KINDS)
def test_a_conversation_is_the_same_again_and_has_one_statement_of_every_sort(kind: str) -> None:
    made = chat(kind, 3, 6_000)
    assert made == chat(kind, 3, 6_000)
    assert made != chat(kind, 4, 6_000)
    assert sorted(each.sort for each in made.statements) == sorted(SORTS)
    assert all(is_told(each, made.text) and each.question for each in made.statements)
    assert not re.search(r"\{[a-z]+2?\}", made.text)


def test_a_corrected_value_was_said_before() -> None:
    made = chat("german", 5, 6_000)
    [corrected] = [each for each in made.statements if each.sort == "correction"]
    [at] = [place for place, turn in enumerate(made.turns) if corrected in turn.statements]
    earlier = Chat(made.kind, made.turns[:at]).text
    assert has(corrected.was, earlier)
    assert not has(corrected.told_by[0], earlier)


@pytest.mark.parametrize(
    ("value", "text", "found"),
    [
        ("3 May", "We meet on 3 May.", True),
        ("3 May", "We meet on 13 May.", False),
        ("src/a.py", "See src/a.py, line 3", True),
        ("src/a.py", "See lib/src/a.py", False),
        ("4.5.1", "It is 4.5.17", False),
        ("1,200 euros", "It costs 1,200 Euros.", True),
    ],
)
def test_only_a_whole_value_counts(value: str, text: str, found: bool) -> None:
    assert has(value, text) is found


OPENING = Statement("correction", ("9 June", "opening"), was="3 May")


def test_a_statement_is_told_where_its_parts_stand_together() -> None:
    assert is_told(OPENING, "Assistant: When is the opening?\nUser: 9 June")
    assert not is_told(OPENING, "The opening comes nearer.\nWe need chairs.\nRent is due on 9 June.")


def test_a_former_value_alone_is_outdated() -> None:
    assert is_outdated(OPENING, "The opening is on 3 May.")
    assert not is_outdated(OPENING, "The opening is on 3 May.\nIt has moved to 9 June.")
    assert not is_outdated(OPENING, "Rent is due on 3 May.")
