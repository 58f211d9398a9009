"""Summaries against what they cover: what is kept, lost, made up, marked; and the ledger that carries the rest."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recto.chat.blocks import Text, ToolResult
from recto.chat.message import Message, Role
from recto.summary import ledger
from recto.summary.check import Covered, Former, check, recounted
from recto.summary.extract import Said, extract, truncate
from recto.summary.marks import MARK, unmarked
from recto.window.compact import Written, next_block

SAID: tuple[tuple[Role, str], ...] = (
    ("user", "Please build the app in src/app.py. The budget is 12,000 €. We must ship by May 1, 2024."),
    ("assistant", "Ada Lovelace leads it. The p95 was 3.47 ms with PostgreSQL 16.2.1; run `make test` first."),
    ("tool", "12 passed, 3 failed in 4.52s"),
    ("user", "We decided to deploy on Friday, never on weekends. Write it to /srv/app."),
)


def covered(said: tuple[tuple[Role, str], ...] = SAID) -> Covered:
    found = Covered()
    for number, (role, text) in enumerate(said, 1):
        block = ToolResult("c", "shell", text) if role == "tool" else Text(text)
        found.add([Message(str(number), role, (block,), said=number)])
    return found


def marked(summary: str, former: Former | None = None, *beside: str) -> str:
    return check(summary, covered(), former or Former(), beside).text


@pytest.mark.parametrize(
    "summary",
    [
        "Ada leads it, with a budget of 12k € until 1 May 2024.",
        "The app (app.py) took about 3.5 ms. PostgreSQL 16.2.1 is used.",
        "12 tests passed. It ships on 01.05.2024, in May 2024.",
        "Lovelace runs `make test`; 4.5 s in all.",
        "The user decided to deploy on Friday and never on weekends.",
        "src/app.py goes to /srv/app. The budget is 12000 EUR.",
        "Twelve passed, and 3 failed tests remain.",
    ],
)
def test_rounding_other_spellings_and_parts_are_no_inventions(summary: str) -> None:
    assert marked(summary) == summary


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        ("It is due in 90 days.", "It is due in 90 days [unverified]."),
        ("Grace Hopper helps.", "Grace Hopper [unverified] helps."),
        ("Now ask Zorbax's team.", "Now ask Zorbax's [unverified] team."),
        ("See `src/zip.py` for it.", "See `src/zip.py` [unverified] for it."),
        ("There are 77 boats. 77 boats!", "There are 77 boats [unverified]. 77 boats!"),
        ("Run `cargo fly --high` now.", "Run `cargo fly --high` [unverified] now."),
        ('He said "hello moon" twice.', 'He said "hello moon" [unverified] twice.'),
        ("Read https://example.net/x.", "Read https://example.net/x [unverified]."),
        ("It ships on 2031-07-08.", "It ships on 2031-07-08 [unverified]."),
        ("```\nsrc/other.py\n```\nDone.", "```\nsrc/other.py\n```\n[unverified]\nDone."),
        ("The budget is 12,000 $.", "The budget is 12,000 $ [unverified]."),
    ],
)
def test_what_nobody_said_is_marked_once_right_behind_it(summary: str, expected: str) -> None:
    assert marked(summary) == expected
    assert marked(expected) == expected, "a mark never doubles"


def test_what_the_user_asked_to_keep_may_be_told() -> None:
    assert MARK in marked("Grace Hopper helps.")
    assert marked("Grace Hopper helps.", None, "who Grace Hopper is") == "Grace Hopper helps."


def test_what_was_unverified_stays_so_until_somebody_says_it() -> None:
    former = Former("Zorbax [unverified] has 400 boats.")
    assert marked("Zorbax works. There are 400 boats.", former) == "Zorbax [unverified] works. There are 400 boats."
    told = covered((("user", "Our man is called Zorbax."),))
    assert check("Zorbax [unverified] works.", told, former).text == "Zorbax works."


def test_the_former_ledger_and_summary_vouch_for_what_they_say() -> None:
    former = Former("Grace Hopper helps.", ("#3 src/zip.py; 90 days",))
    summary = "Grace Hopper has src/zip.py for 90 days."
    assert marked(summary, former) == summary


def test_counts_add_up_over_everything_that_is_covered() -> None:
    found = check("Ada Lovelace leads src/app.py, as Zorbax does.", covered(), Former())
    lines = ledger.lines(found.lost, 30, lambda text: len(text) // 3)
    counts = found.counts(lines)
    assert counts["kept"] == 2
    assert counts["invented"] == 1
    assert counts["facts"] == counts["kept"] + counts["ledger"] + counts["archive"]
    later = check(
        "Nothing.", covered((("user", "Eve is in Lisbon."),)), Former(found.text, lines, found.places, counts["facts"])
    )
    assert later.facts == counts["facts"] + 2
    assert {"src/app.py", "Ada Lovelace"} <= {lead.item for lead in later.lost}, "what a new summary drops comes back"


def test_an_edited_summary_is_counted_against_all_that_is_known() -> None:
    found = check("Ada Lovelace leads src/app.py.", covered(), Former())
    lines = ledger.lines(found.lost, 60, lambda text: len(text) // 3)
    checks = {"covered": 4, "seen": 4} | found.counts(lines)
    block = next_block(None, Written(found.text, "model", checks=checks, ledger=lines, places=found.places))
    edited = recounted("Ada Lovelace leads it. Zorbax [unverified] helps.", block)
    assert edited["facts"] == checks["facts"]
    assert edited["kept"] == 1
    assert edited["ledger"] == checks["ledger"]
    assert edited["archive"] == checks["archive"] + 1, "the path is in the archive only"
    assert edited["invented"] == 1
    assert edited["covered"] == 4
    told = recounted(" ".join(lines), block)
    assert (told["kept"], told["ledger"]) == (checks["ledger"], 0), "what the text tells is not in the ledger besides"
    assert all(each["facts"] == each["kept"] + each["ledger"] + each["archive"] for each in (edited, told))


def test_a_line_names_its_message_and_tells_figures_with_what_they_are_about() -> None:
    found = check("Nothing.", covered(), Former())
    lines = ledger.lines(found.lost, 1000, len)
    assert lines[0].startswith("#1 ")
    assert "budget" in lines[0]
    assert [int(line[1:].partition(" ")[0]) for line in lines] == [1, 2, 3, 4]
    assert "12 passed" in lines[2]


def test_a_ledger_survives_as_a_ledger_and_yields_only_to_better_lines() -> None:
    former = Former("", ("#3 src/zip.py; deploy 2024-05-01", "#9 Grace Hopper"))
    kept = check("Nothing.", covered((("tool", "12 passed"),)), former)
    lines = ledger.lines(kept.lost, 1000, len)
    assert lines[1:] == former.ledger
    assert ledger.lines(kept.lost, 40, len) == ("#3 src/zip.py", "#9 Grace Hopper")


@given(st.integers(0, 400))
def test_a_ledger_is_never_larger_than_its_room(room: int) -> None:
    found = check("Nothing.", covered(), Former())
    assert len("\n".join(ledger.lines(found.lost, room, len))) <= room


VOCABULARY = """
Ada Bob Lisbon 14 3.5 ms src/app.py on May 1 the boats we must never 12% `make test` said
"""
words = st.sampled_from(VOCABULARY.split())
spoken = st.lists(words, min_size=1, max_size=12).map(lambda said: " ".join(said) + ".")


@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), spoken), min_size=1, max_size=12),
    st.integers(10, 400),
)
def test_sentences_of_the_originals_are_never_taken_for_inventions(said: list[tuple[Role, str]], cap: int) -> None:
    known = covered(tuple(said))
    for make in (extract, truncate):
        summary = make([Said(role, text) for role, text in said], cap, len)
        assert check(summary, known, Former()).invented == 0


@example("00\n", "")
@given(st.text(), st.text())
def test_marks_change_nothing_but_add_themselves(text: str, other: str) -> None:
    found = check(text, covered((("user", other),)), Former())
    assert unmarked(found.text) == unmarked(text)
