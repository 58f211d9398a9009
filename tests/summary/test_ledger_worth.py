"""Which lines a ledger has: a reader who goes on tomorrow understands each of them, and misses none that binds."""

import pytest
from tests.summary.test_ledger import Said, ledger

from recto.chat.blocks import Text, ToolCall, ToolResult
from recto.chat.message import Message
from recto.summary.ledger import ledger_items, ledger_quotations, parse_item, parse_ledger, parse_place
from recto.summary.ledger_selection import ledger_lines
from recto.summary.people import introductions
from recto.summary.verification import CoveredFacts, FormerSummary, verify_summary


def listed(*said: Said, summary: str = "Nothing.") -> str:
    return "\n".join(ledger(*said, limit=600, summary=summary))


# -- questions and answers


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How deep is the pond?", "2.40 m"),
        ("Wie viele Stände gibt es?", "31"),
        ("¿Cuánto cuesta el alquiler del salón?", "740 al mes"),
        ("Quelle est la surface de l'atelier ?", "85 m²"),
        ("Hoe hoog is het plafond?", "3,10 m"),
        ("Quanti posti ha il furgone?", "9 posti"),
        ("Jaka jest cena działki?", "184 000"),
        ("Where does the smoke come out?", "at the back, near the hinge"),
        ("Who keeps the register?", "that'd be Ines Haddad, she's the deputy of the archive"),
    ],
)
def test_a_short_answer_is_one_line_with_its_question(question: str, answer: str) -> None:
    lines = ledger(("assistant", question), ("user", answer), ("assistant", "Noted."))
    assert lines == [f"#1 assistant: {question} → #2: {answer}"]
    assert ledger_items(lines) == [(1, question), (2, answer)]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("When did you move in?", "We moved into the mill house in Tarland on 4 March 2019."),
        ("Habt ihr schon einen Termin?", "Wir feiern am 9. Mai 2027 ab 15 Uhr im Garten von Oma Hilde."),
        ("¿Ya tenéis monitor?", "El monitor de vela se llama Iker Goñi y cobra 45 euros por hora."),
        ("Is er al een aannemer?", "De aannemer is Joost Veldman uit Weesp, hij begint op 3 juni."),
    ],
)
def test_a_question_is_not_quoted_where_the_answer_stands_alone(question: str, answer: str) -> None:
    told = listed(("assistant", f"Nice. {question}"), ("user", answer), ("assistant", "Noted."))
    assert question not in told
    assert answer.rstrip(".") in told


def test_a_question_without_an_answer_is_no_line_unless_somebody_waits_for_it() -> None:
    asked: Said = ("assistant", "When did you start with the choir?")
    assert listed(asked, ("user", "let's talk about the hall first")) == ""
    assert listed(asked, ("user", "reden wir erst mal über den Saal")) == ""
    open_question = "Who repairs the organ of St. Vitus? Nobody could tell me yet"
    assert open_question in listed(("user", open_question + "."), ("assistant", "Good question."))


def test_a_line_with_question_and_answer_is_read_again_as_it_was_written() -> None:
    line = "#4 assistant: How deep is the pond? → #5: 2.40 m · The pump is a Hailea V30"
    assert list(ledger_quotations([line])) == [
        (4, "assistant", "How deep is the pond?"),
        (5, "user", "2.40 m"),
        (5, "user", "The pump is a Hailea V30"),
    ]
    asked = {entry.question.text for entry in parse_ledger([line]) if entry.question}
    assert asked == {"How deep is the pond?"}
    assert ledger(("user", "ok"), former=FormerSummary("", (line,))) == [line]


def test_words_that_look_like_an_answer_in_the_ledger_are_not_quoted() -> None:
    lines = ledger(("user", "The path of the file is a → #7: b, it has 4,210 rows and must never be deleted."))
    assert all(number == 1 for number, _ in ledger_items(lines))


def test_answers_of_an_exercise_are_no_lines_even_where_one_was_not_judged() -> None:
    said: tuple[Said, ...] = (
        ("assistant", "What is the capital of Mongolia?"), ("user", "Ulan Bator"),
        ("assistant", "Correct! How high is Mont Blanc?"), ("user", "4,806 m"),
        ("assistant", "Right. Which river flows through Turin?"), ("user", "the Po, 652 km"),
        ("assistant", "Next: how many cantons has Switzerland?"), ("user", "26"),
        ("assistant", "Let's go on tomorrow."),
    )  # fmt: skip
    assert listed(*said) == ""


# -- talk that looks like an answer or a decision


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        ("- enjoy the quiet, it may be loud again in spring", "don't say that"),
        ("The cat will surely come back by itself.", "please don't jinx it"),
        ("That sounds like a long day.", "no, not that"),
    ],
)
def test_a_reaction_to_a_remark_is_no_decision(said: str, reply: str) -> None:
    assert listed(("assistant", said), ("user", reply), ("assistant", "All right.")) == ""


@pytest.mark.parametrize(
    ("said", "item"),
    [
        ("It is. Booked the ferry, reference QX-40117", "Booked the ferry, reference QX-40117"),
        ("Perfect, the deposit for the barn is 350 euros", "the deposit for the barn is 350 euros"),
        ("Genau, der Vermieter heißt Uwe Brandes", "der Vermieter heißt Uwe Brandes"),
        ("Vale, la monitora se llama Itziar Goñi", "la monitora se llama Itziar Goñi"),
        ("That's our story. We have 34 essays in the reader", "We have 34 essays in the reader"),
    ],
)
def test_an_item_begins_where_its_content_begins(said: str, item: str) -> None:
    assert ledger(("user", said), ("assistant", "Good.")) == [f"#1: {item}"]


def test_what_was_agreed_to_is_named() -> None:
    agreed = "Shall I move the delivery to Thursday 22 May, 8–12?"
    assert ledger(("assistant", agreed), ("user", "yes please")) == [f"#1 assistant: {agreed} → #2: yes please"]
    assert listed(("assistant", "ugh, beers?"), ("user", "yes please")) == ""


# -- machine text


@pytest.mark.parametrize(
    "pasted",
    [
        "Planning Time: 0.310 ms\nExecution Time: 51442.120 ms",
        "Here is the plan\nBuffers: shared hit=812 read=44",
        "2031-02-03 04:05:06,120 INFO jobs.mail connected to mail-3.internal:2525",
        "rows = pq.read_table(path, columns=wanted)",
        "AssertionError: 0 != 2",
    ],
)
def test_what_a_program_printed_is_no_line_by_itself(pasted: str) -> None:
    assert listed(("user", pasted), ("assistant", "I see.")) == ""


def test_addresses_that_only_stand_in_calls_and_old_errors_of_tools_are_no_lines() -> None:
    found = CoveredFacts()
    call = ToolCall("c1", "shell", '{"cmd": "curl -s https://shop.example/cart/9; nc shop.example:443"}')
    output = ToolResult("c1", "shell", "AssertionError: 0 != 2\nValueError: unknown currency code in the order")
    found.add(
        [
            Message("1", "assistant", (call,), said=1),
            Message("2", "tool", (output,), said=2),
            Message("30", "user", (Text("The shop opens on 4 May, never before."),), said=30),
        ]
    )
    lost = verify_summary("Nothing.", found, FormerSummary()).lost
    assert ledger_lines(lost, 400, len) == ("#30: The shop opens on 4 May, never before",)


# -- lists and fragments


def test_rows_of_a_plan_are_no_lines_but_what_binds_in_it_is() -> None:
    plan = """Our plan for the orchard:
    March 2031: prune
    April–June 2031: same again
    water for 6 weeks
    never spray before 4 May
    Oct 2031: sell"""
    assert listed(("user", plan), ("assistant", "A good plan.")) == "#1: never spray before 4 May"


def test_a_row_that_stands_alone_is_a_line() -> None:
    minutes = """Minutes of the parents' council
    Choir: Frau Selig needs 1,200 euros for new music stands
    Next meeting: 28 May
    Roof: postponed"""
    told = listed(("user", minutes), ("assistant", "Thanks."))
    assert "Frau Selig needs 1,200 euros for new music stands" in told
    assert "postponed" not in told


@pytest.mark.parametrize(
    "text",
    [
        "310 each so 9,920", "File is 410 MB", "480 MB now", "I've got this in `export/reader.py`", "9 minutes 40",
        "It's in a file sales_2025.db", "Something like \"3 parts, 29 pages\"",
    ],
)  # fmt: skip
def test_a_piece_that_nobody_understands_alone_is_no_line(text: str) -> None:
    assert listed(("user", text), ("assistant", "Good.")) == ""


@pytest.mark.parametrize(
    "text",
    [
        "The chain has 6,400 km on it", "We go for 12.50 a visit and 48 a month", "Umzugstag ist der 29. August",
        "Weeks should start on Monday", "The backup is in /srv/backup/daily", "Meine Kundennummer ist KD-88213",
    ],
)  # fmt: skip
def test_few_words_are_enough_where_they_name_what_they_are_about(text: str) -> None:
    assert listed(("user", text), ("assistant", "Good.")) == f"#1: {text}"


# -- what the summary tells


def test_of_an_item_only_what_the_summary_does_not_tell_is_listed() -> None:
    first, second = "The migration 0231_rule.py updates all rows.", "The trigger is called touch_rows_at."
    told = listed(("user", f"{first} {second}"), ("assistant", "I see."), summary=f"User: {first}")
    assert told == f"#1: {second.rstrip('.')}"


def test_what_the_summary_tells_with_a_day_added_is_not_told_again() -> None:
    said = "Yesterday I paid the second rate to Alma Reyes."
    summary = "User: Yesterday [2031-03-04] I paid the second rate to Alma Reyes."
    assert listed(("user", said), ("assistant", "Good."), summary=summary) == ""


def test_an_item_that_another_contains_in_other_words_is_listed_once() -> None:
    told = listed(
        ("user", "The caterer Wye Table gets a deposit of 1,550 pounds by 27 May."),
        ("assistant", "Noted."),
        ("user", "So the deposit of 1,550 pounds for the caterer Wye Table by 27 May."),
    )
    assert told.count("1,550") == 1


# -- who is who


@pytest.mark.parametrize(
    "text",
    [
        "The night porter is called Ewan", "Uwe ist unser Kassenwart", "Der Fahrer heißt Ivo", "La jefa es Pilar",
        "Notre voisin s'appelle Marcel", "De voorzitter is mevrouw Hoekstra", "il signor Bartoli è il proprietario",
        "会場の担当者は森下さんです", "My study partner is Yusuf", "Antje, our designer, makes the cover",
    ],
)  # fmt: skip
def test_a_single_name_with_a_role_is_a_line_also_from_a_former_ledger(text: str) -> None:
    lines = ledger(("user", text), ("assistant", "Noted."))
    assert lines == [f"#1: {text}"]
    assert ledger(("user", "ok"), former=FormerSummary("", tuple(lines))) == lines


@pytest.mark.parametrize(
    "text", ["The meeting is Tuesday?", "It is our turn", "Who is our driver?", "Das ist unser Ziel"]
)
def test_what_only_looks_like_a_name_introduces_nobody(text: str) -> None:
    assert list(introductions(text)) == []


def test_what_is_told_in_a_script_without_spaces_is_a_line() -> None:
    assert listed(("user", "倉庫の家賃は月84,000円です"), ("assistant", "はい。")) == "#1: 倉庫の家賃は月84,000円です"


@pytest.mark.parametrize(
    "log",
    [
        "here:\n[10-Feb-2031 08:12:51 UTC] PHP Fatal error: Maximum execution time of 30 seconds exceeded on line 231",
        "Feb 10 08:12:44 web1 sshd[812]: session opened for user deploy by uid 1000",
        '10.0.0.7 - - [10/Feb/2031:08:12:44 +0000] "GET /cart/9 HTTP/1.1" 500 812',
    ],
)
def test_a_log_is_known_by_its_dates_of_any_form(log: str) -> None:
    assert listed(("user", log), ("assistant", "I see.")) == ""


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        ("Are you better now?", "have you called the dentist"),
        ("Jaki masz budżet?", "dlaczego liście są zielone"),
        ("How many seats do you need?", "I hate these phone loops, 25 minutes and then thrown out"),
    ],
)
def test_who_asks_back_or_complains_answers_nothing(question: str, reply: str) -> None:
    assert listed(("assistant", question), ("user", reply), ("assistant", "Hm.")) == ""


def test_a_question_is_answered_by_a_list_with_something_open_in_it() -> None:
    question = "What do juries usually dislike about our kind of garden?"
    assert question in listed(("user", question), ("assistant", "No idea yet, I have to ask."))
    reply = "Weak soil data, an unclear role of the neighbours, and no plan for the years after."
    assert question not in listed(("user", question), ("assistant", reply))


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (
            "The opening is planned for 15 June 2031.",
            "The works are late: the opening is on 29 June instead of 15 June.",
        ),
        ("Ouverture prévue le 15 juin 2031.", "L'ouverture est repoussée au 29 juin au lieu du 15 juin."),
        ("Die Eröffnung ist am 15. Juni.", "Die Eröffnung ist erst am 29. Juni, nicht am 15. Juni."),
    ],
)
def test_a_day_that_is_denied_later_is_no_line(before: str, now: str) -> None:
    said: tuple[Said, ...] = (("user", before), ("assistant", "Noted."), ("user", now), ("assistant", "Noted."))
    assert [number for number, _ in ledger_items(ledger(*said))] == [3]


def test_a_count_that_corrects_is_a_line() -> None:
    said: tuple[Said, ...] = (
        ("assistant", "How many chairs do we have?"), ("user", "783, I counted them this morning."),
        ("assistant", "Noted."), ("user", "I miscounted the chairs btw. It's 968 chairs."), ("assistant", "Noted."),
    )  # fmt: skip
    assert "It's 968 chairs" in listed(*said)


@pytest.mark.parametrize(
    ("said", "item"),
    [
        ("wages typed in for the watch. 41 years", "wages typed in for the watch. 41 years"),
        ("ok. the rent is 930 euros", "the rent is 930 euros"),
    ],
)
def test_a_figure_brings_the_sentence_before_it_that_names_what_it_is_of(said: str, item: str) -> None:
    assert ledger(("user", said), ("assistant", "Good.")) == [f"#1: {item}"]


def test_what_a_name_is_given_for_is_quoted_with_it() -> None:
    said = "You will get a mail from Pavel Okafor. She is the new project lead."
    assert ledger(("user", said), ("assistant", "Good.")) == [f"#1: {said.rstrip('.')}"]


def test_a_correction_of_a_name_brings_the_right_one() -> None:
    said = "Not Aarhus, I mixed that up with last year. The workshop is in Bergen."
    assert ledger(("user", said), ("assistant", "Good.")) == [f"#1: {said.rstrip('.')}"]


def test_a_task_for_later_is_open() -> None:
    for said in (
        "When we are done with all this, write a letter of thanks to Lucy Penhallow.",
        "Cuando acabemos con todo, escribe una carta a Lucía Peñalver.",
    ):
        assert parse_item(said, 1, "user")[0].fact.kind == "request"


def test_what_is_open_stays_open_in_the_next_ledger() -> None:
    item = "Somebody has to find out whether Papyra still supports the old scanners"
    assert parse_item(item, 1, "user")[0].fact.kind == "question"
    assert parse_place(item, 1)[0].fact.kind == "question"
    assert all(entry.fact.kind != "question" for entry in parse_place("Who brings the tent?", 1))
