"""Realistic chats between a user and an assistant: the answer is among the first hits.

No names, long answers, tool output in its own lane. Every chat is drowned in another talk, so that finding is work.
"""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from recto.search.finder import Finder, Query
from recto.search.keyword_index import IndexItem, KeywordIndex

Said = tuple[str, str]

SCHOOLS = """Then I would look at these three first. The Redbridge School is small and takes children until twelve.
The Lycée français is cheaper but teaches in French. Saint Dominic's lies far out, in Carcavelos, an hour by train.

For seven-year-olds, waiting lists are usually short in spring. I would write to all of them now, and ask for a visit
in April."""
HOUSE: list[Said] = [
    (
        "user",
        "We are moving to Lisbon in September, and I have to find a school for my daughter Ines. She is seven.",
    ),
    (
        "assistant",
        "Congratulations! Do you prefer a public school or an international one, and which part of the city?",
    ),
    ("user", "International, near Campo de Ourique. We can pay at most 900 euros a month."),
    ("assistant", SCHOOLS),
    ("user", "She is allergic to peanuts, so the canteen matters."),
    ("assistant", "Good to know: ask each of them for its allergy plan before the visit."),
    ("user", "My landlord wants the keys back on 28 August. What has to be done until then?"),
    ("assistant", "Give notice three months before, have the flat painted, cancel the electricity, forward your mail."),
    ("user", "The deposit was 2,400 euros, by the way, and the cat comes along."),
    ("assistant", "For the cat you need a chip, a rabies vaccination and a passport from your vet."),
]
CODE: list[Said] = [
    ("user", "The nightly import fails since yesterday. Can you look at it?"),
    ("assistant", "I will look at the log of the last run first."),
    (
        "tool",
        "\n".join(f"02:{minute:02} INFO importer: batch {minute} written, 500 rows" for minute in range(30))
        + "\n02:31 ERROR importer: psycopg.errors.UniqueViolation: duplicate key value violates unique constraint "
        "orders_external_id_key\n" + "\n".join(f"02:{minute} INFO importer: retrying" for minute in range(32, 59)),
    ),
    (
        "assistant",
        "A duplicate external id stops the batch. I suggest an upsert: ON CONFLICT DO UPDATE in write_batch().",
    ),
    ("user", "No, we must not overwrite: finance corrects rows by hand. Skip the duplicates and write them to a file."),
    ("assistant", "Then ON CONFLICT DO NOTHING, and what was skipped goes to rejected.csv, one line per order."),
    ("user", "Our staging database runs on port 5433, production on 5432. Try it on staging first."),
    ("assistant", "Done on staging: 14,512 rows written, 37 rejected."),
    ("user", "We agreed with Marta that deployments only happen on Tuesdays."),
    ("assistant", "Understood, I will prepare the pull request and leave the merge for Tuesday."),
]
TALK = "Today it rains again and nothing much happens. The coffee was good though, so there is that, I suppose."

QUESTIONS = [
    (HOUSE, "How much can we pay for the school?", 2),
    (HOUSE, "What is my daughter's name?", 0),
    (HOUSE, "Which schools did you suggest?", 3),
    (HOUSE, "What is Ines allergic to?", 4),
    (HOUSE, "When do I have to give back the keys?", 6),
    (HOUSE, "How large was the deposit?", 8),
    (HOUSE, "What did you say the cat needs?", 9),
    (HOUSE, "Is Carcavelos far away?", 3),
    (CODE, "Why did the import fail, which constraint was violated?", 2),
    (CODE, "Why must we not overwrite rows?", 4),
    (CODE, "Which file holds what was skipped?", 5),
    (CODE, "On which port does staging run?", 6),
    (CODE, "How many rows were rejected?", 7),
    (CODE, "When are deployments allowed?", 8),
    (CODE, "What did you suggest about the duplicates?", 3),
]


def finder(path: Path, chat: list[Said]) -> Finder:
    start = datetime(2024, 5, 6, 9)
    said = [*[("user", TALK), ("assistant", TALK)] * 40, *chat, *[("user", TALK), ("assistant", TALK)] * 40]
    items = [
        IndexItem(
            number,
            text,
            number,
            kind=role,
            time=(start + timedelta(minutes=number)).isoformat(),
            channel=role == "tool",
        )
        for number, (role, text) in enumerate(said)
    ]
    index = KeywordIndex(path / "search.db")
    index.add({"talk": items})
    return Finder(index)


@pytest.mark.parametrize(("chat", "asked", "answer"), QUESTIONS, ids=[asked for _, asked, _ in QUESTIONS])
def test_the_answer_is_among_the_first_three_messages(
    tmp_path: Path, chat: list[Said], asked: str, answer: int
) -> None:
    found = finder(tmp_path, chat).find(Query(asked, "talk"))
    messages = list(dict.fromkeys(hit.passage.item - 80 for hit in found.hits))
    assert answer in messages[:3]


def test_long_tool_output_returns_the_passage_with_the_answer(tmp_path: Path) -> None:
    room = finder(tmp_path, CODE)
    best = next(hit for hit in room.find(Query("unique constraint violated", "talk")).hits if hit.passage.item == 82)
    piece = CODE[2][1][best.passage.start : best.passage.end]
    assert "orders_external_id_key" in piece
    assert len(piece) < len(CODE[2][1]) / 2


def test_tool_output_does_not_separate_a_question_from_its_answer(tmp_path: Path) -> None:
    hits = finder(tmp_path, CODE).find(Query("nightly import", "talk")).hits
    near = {hit.passage.item - 80: hit.because for hit in hits}
    assert near[0].startswith("holds")
    assert {1, 3} <= set(near)
