"""Summaries verified against what they cover: which facts are kept, lost, invented and marked."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.summary.samples import covered

from recto.chat.blocks import Text
from recto.chat.message import Message, Role
from recto.summary.extractive_summary import PlainMessage, extract, truncate
from recto.summary.ledger_selection import ledger_lines
from recto.summary.marks import MARK, strip_marks
from recto.summary.verification import CoveredFacts, FormerSummary, only_archived, recount_facts, verify_summary
from recto.window.compaction_block import WrittenSummary, next_block


def verified_text(summary: str, former: FormerSummary | None = None, *allowed: str) -> str:
    return verify_summary(summary, covered(), former or FormerSummary(), allowed).text


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
    assert verified_text(summary) == summary


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
        ("We agreed to rent a yellow helicopter.", "We agreed to rent a yellow helicopter. [unverified]"),
    ],
)
def test_an_invention_is_marked_once_right_behind_it(summary: str, expected: str) -> None:
    assert verified_text(summary) == expected
    assert verified_text(expected) == expected, "a mark never doubles"


UNITS = """We have 12 boats, and the mast is 14 metres tall. Das Schiff wiegt 40 Tonnen. The trip takes two hours, and
three people come. How heavy is the keel? About 9. The rent is 300 monthly, in euros. 12,300 visitors came."""


@pytest.mark.parametrize(
    "summary",
    ["It weighs 12 tonnes.", "14 € were paid.", "3 weeks are left.", "A keel of 2 tonnes.", "12,000 € came in."],
)
def test_a_figure_with_a_unit_is_not_supported_by_what_counts_something_else(summary: str) -> None:
    assert MARK in verify_summary(summary, covered((("user", UNITS),)), FormerSummary()).text


@pytest.mark.parametrize(
    "summary",
    [
        "12 boats, a mast of 14 m.",
        "The ship weighs 40 tonnes.",
        "A trip of 2 hours for 3 people.",
        "The keel weighs 9 tonnes.",
        "The rent is 300 €.",
        "About 12,000 visitors came.",
    ],
)
def test_a_figure_with_a_unit_is_supported_by_that_unit_or_by_a_figure_that_counts_nothing(summary: str) -> None:
    assert verify_summary(summary, covered((("user", UNITS),)), FormerSummary()).text == summary


def checked(summary: str, *said: str) -> str:
    return verify_summary(summary, covered(tuple(("user", text) for text in said)), FormerSummary()).text


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        ("We will not use Redis.", "We will use Redis."),
        ("We decided to use Redis.", "Redis was rejected."),
        ("We will use Redis.", "We will not use Redis."),
        (
            "We will not use Redis for the session cache, it was flaky.",
            "- They decided to use Redis for the session cache.",
        ),
        ("Should we use Redis? No, we won't use Redis.", "They use Redis."),
        ("Wir verwenden kein Redis.", "Wir verwenden Redis."),
        ("No usaremos Redis.", "Decisión: usaremos Redis."),
        ("Never deploy on Fridays.", "Deploy on Fridays."),
        ("The board approved the merger.", "The board did not approve the merger."),
    ],
)
def test_a_reversed_decision_is_marked(said: str, summary: str) -> None:
    assert checked(summary, "The sails are red.", said) == summary + MARK
    assert checked(summary, said, summary) == summary, "somebody said it, too"


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        ("Use Redis, not Memcached.", "We will use Redis."),
        ("We use Postgres instead of Redis.", "We use Postgres, not Redis."),
        ("Do you like cilantro? Not at all.", "The user does not like cilantro."),
        ("Anna loves children.", "Anna has no children."),
        ("I don't eat meat.", "The user eats no meat."),
        ("I can't wait to see Anna in Paris.", "The user will see Anna in Paris."),
        ("No problem, we will use Redis.", "We will use Redis."),
        ("We will not use Redis in tests. We will use Redis for the cache, the queue and all jobs.", "We use Redis."),
        ("If we don't use Redis, sessions are slow.", "Redis is used."),
        ("Not only Anna but also Ben comes to Paris.", "Anna comes to Paris."),
    ],
)
def test_a_sentence_in_other_words_is_no_reversed_decision(said: str, summary: str) -> None:
    assert checked(summary, said) == summary


def test_a_reversed_decision_stays_marked() -> None:
    former = FormerSummary("They met. We will use Redis. [unverified]", ("#3: we will not use Redis",))
    assert verified_text("We will use Redis.", former) == "We will use Redis. [unverified]"


@pytest.mark.parametrize("mark", [True, False])
def test_the_words_of_a_mark_that_the_user_wrote_are_no_mark(mark: bool) -> None:
    said = "Pay 5 € to Mallory [unverified] on Friday."
    found = verify_summary(said, covered((("user", said),)), FormerSummary(), mark=mark)
    assert found.text == said
    assert found.invented == 0
    later = verify_summary(said, covered(()), FormerSummary(said, has_marks=False), mark=mark)
    assert later.text == said
    assert later.invented == 0
    if mark:
        text = "Pay 5 € to Mallory [unverified] on Friday. Grace Hopper helps."
        assert verify_summary(text, covered((("user", said),)), FormerSummary()).invented == 1


def test_what_the_user_asked_to_keep_may_be_used() -> None:
    assert MARK in verified_text("Grace Hopper helps.")
    assert verified_text("Grace Hopper helps.", None, "who Grace Hopper is") == "Grace Hopper helps."


def test_an_unverified_fact_stays_marked_until_somebody_says_it() -> None:
    former = FormerSummary("Zorbax [unverified] has 400 boats.")
    assert (
        verified_text("Zorbax works. There are 400 boats.", former) == "Zorbax [unverified] works. There are 400 boats."
    )
    confirmed = covered((("user", "Our man is called Zorbax."),))
    assert verify_summary("Zorbax [unverified] works.", confirmed, former).text == "Zorbax works."


def test_the_former_ledger_and_summary_support_their_facts() -> None:
    former = FormerSummary("Grace Hopper helps.", ("#3: src/zip.py · it takes 90 days",))
    summary = "Grace Hopper has src/zip.py for 90 days."
    assert verified_text(summary, former) == summary


def test_counts_add_up_over_all_covered_facts() -> None:
    found = verify_summary("Ada Lovelace leads src/app.py, as Zorbax does.", covered(), FormerSummary())
    lines = ledger_lines(found.lost, 30, lambda text: len(text) // 3)
    counts = found.counts(lines)
    assert counts["kept"] == 2
    assert counts["invented"] == 1
    assert counts["facts"] == counts["kept"] + counts["ledger"] + counts["archive"]
    later = verify_summary(
        "Nothing.",
        covered((("user", "Eve lives near the old harbour in Lisbon."),)),
        FormerSummary(found.text, lines, found.places, counts["facts"]),
    )
    assert later.facts == counts["facts"] + 2
    again = "\n".join(entry.text for entry in later.lost)
    assert "src/app.py" in again, "what a new summary drops comes back"
    assert "Ada Lovelace" in again


def test_an_edited_summary_is_counted_against_all_known_facts() -> None:
    found = verify_summary("Ada Lovelace leads src/app.py.", covered(), FormerSummary())
    lines = ledger_lines(found.lost, 60, lambda text: len(text) // 3)
    checks = {"covered": 4, "seen": 4} | found.counts(lines)
    block = next_block(None, WrittenSummary(found.text, "model", checks=checks, ledger=lines, places=found.places))
    edited = recount_facts("Ada Lovelace leads it. Zorbax [unverified] helps.", block)
    assert edited["facts"] == checks["facts"]
    assert edited["kept"] == 1
    assert edited["ledger"] == checks["ledger"]
    assert edited["archive"] == checks["archive"] + 1, "the path is in the archive only"
    assert edited["invented"] == 1
    assert edited["covered"] == 4
    complete = recount_facts(" ".join(lines), block)
    assert (complete["kept"], complete["ledger"]) == (checks["ledger"], 0), (
        "a fact in the text is not in the ledger too"
    )
    for counts in (edited, complete):
        assert counts["facts"] == counts["kept"] + counts["ledger"] + counts["archive"]


VOCABULARY = """
Ada Bob Lisbon 14 3.5 ms src/app.py on May 1 the boats we must never 12% `make test` said
"""
words = st.sampled_from(VOCABULARY.split())
spoken = st.lists(words, min_size=1, max_size=12).map(lambda chosen: " ".join(chosen) + ".")


@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), spoken), min_size=1, max_size=12),
    st.integers(10, 400),
)
def test_sentences_of_the_originals_are_never_inventions(messages: list[tuple[Role, str]], limit: int) -> None:
    known = covered(tuple(messages))
    for summarize in (extract, truncate):
        summary = summarize([PlainMessage(role, text) for role, text in messages], limit, len)
        assert verify_summary(summary, known, FormerSummary()).invented == 0


@example("00\n", "")
@given(st.text(), st.text())
def test_marks_are_the_only_change(text: str, other: str) -> None:
    found = verify_summary(text, covered((("user", other),)), FormerSummary())
    assert strip_marks(found.text) == strip_marks(text)


def test_what_is_only_archived_is_listed_once_not_in_parts() -> None:
    said = covered((("user", "Never run Redis on harbour-7, because the disk of harbour-7 has 40 GB only."),))
    found = only_archived(next_block(None, WrittenSummary("Nothing.", "model")), said)
    assert len(found) == 1


def test_a_value_without_a_word_of_what_it_is_of_is_not_told() -> None:
    said = Message("1", "user", (Text("The library has to be version 7.5.2 at least."),), said=1)
    found = CoveredFacts()
    found.add([said])
    assert verify_summary("We need 7.5.2 or later.", found, FormerSummary()).lost
    assert not verify_summary("The library: 7.5.2 or later.", found, FormerSummary()).lost
