"""Where sentences end, in prose, lists, code and scripts without spaces; no text is lost."""

import re

import pytest
from hypothesis import given
from tests.summary.samples import texts

from recto.summary.sentences import is_question, sentences, terms


def without_whitespace(text: str) -> str:
    return re.sub(r"\s", "", text)


@given(texts)
def test_only_whitespace_is_lost_and_the_order_stays(text: str) -> None:
    found = sentences(text)
    assert without_whitespace("".join(found)) == without_whitespace(text)
    assert all(sentence and sentence == sentence.strip() for sentence in found)


@given(texts)
def test_every_sentence_is_in_the_text_as_written(text: str) -> None:
    at = 0
    plain = "\n".join(text.splitlines())
    for sentence in sentences(text):
        lines = [re.escape(line.strip()) for line in sentence.splitlines()]
        found = re.compile(r"\s*\n\s*".join(lines)).search(plain, at)
        assert found, sentence
        at = found.end()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        (
            "Dr. Smith met Mrs. Jones, e.g. at 5 p.m. on Monday.",
            ["Dr. Smith met Mrs. Jones, e.g. at 5 p.m. on Monday."],
        ),
        ("Das ist z.B. gut, d.h. fertig. Am 3. Mai kam er.", ["Das ist z.B. gut, d.h. fertig.", "Am 3. Mai kam er."]),
        ("Pi is 3.14. We run 1.2.3 now.", ["Pi is 3.14.", "We run 1.2.3 now."]),
        ("See https://a.org/b.c?d=e.f for more. Then go.", ["See https://a.org/b.c?d=e.f for more.", "Then go."]),
        ("Open main.py. It is in src/app.", ["Open main.py.", "It is in src/app."]),
        ("Well... maybe. Wait… What?", ["Well... maybe.", "Wait…", "What?"]),
        ("See fig. 3 and No. 5. No. Use the other.", ["See fig. 3 and No. 5.", "No.", "Use the other."]),
        ('"Really?" she said. "Yes." He left.', ['"Really?" she said.', '"Yes."', "He left."]),
        ("J. R. Tolkien wrote it. I read it.", ["J. R. Tolkien wrote it.", "I read it."]),
        ("Our auditor Mrs. Kowal agrees. El Sr. Pérez no.", ["Our auditor Mrs. Kowal agrees.", "El Sr. Pérez no."]),
        ("Nimm z. B. Holz. Das gilt d. h. immer.", ["Nimm z. B. Holz.", "Das gilt d. h. immer."]),
        ("Trae algo, p. ej. Uvas. A las 5 p. m. Bien.", ["Trae algo, p. ej. Uvas.", "A las 5 p. m.", "Bien."]),
        ("Kündigen bis 31. Jänner. Siehe Nr. 5.", ["Kündigen bis 31. Jänner.", "Siehe Nr. 5."]),
        ("Wir nehmen die 2. Variante. Am 5. Bitte.", ["Wir nehmen die 2. Variante.", "Am 5.", "Bitte."]),
        ("It weighs approx. 5 kg. On Sept. 9 we go.", ["It weighs approx. 5 kg.", "On Sept. 9 we go."]),
        (
            "Plan: 1. Buy paint. 2. Paint. We have 14. Good.",
            ["Plan: 1. Buy paint.", "2. Paint.", "We have 14.", "Good."],
        ),
        ("i went home. it was late! then i slept", ["i went home.", "it was late!", "then i slept"]),
        ("1. First one. And more\n2. Second\n- a bullet", ["1. First one.", "And more", "2. Second", "- a bullet"]),
        ("first line\nsecond line", ["first line", "second line"]),
        ("**Bold.** Next.", ["**Bold.**", "Next."]),
        ("今日は晴れです。散歩しますか？はい！", ["今日は晴れです。", "散歩しますか？", "はい！"]),
        ("他说：“好。”然后走了。", ["他说：“好。”", "然后走了。"]),
        ("好!走吧", ["好!", "走吧"]),
        ("यह अच्छा है। हाँ।", ["यह अच्छा है।", "हाँ।"]),
        ("", []),
        (" \n\t ", []),
    ],
)
def test_sentences_end_here(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_a_line_of_code_is_one_sentence() -> None:
    text = 'Look. Here:\n```python\nprint("One. Two.")\n\n    return 1. \n```\nThen. Done.'
    code = ["```python", 'print("One. Two.")', "return 1.", "```"]
    assert sentences(text) == ["Look.", "Here:", *code, "Then.", "Done."]


def test_wrapped_prose_is_joined_again() -> None:
    text = "The server was moved to another rack in the night and has\nbeen slow ever since. We looked at it.\nNew line"
    assert sentences(text) == [
        "The server was moved to another rack in the night and has\nbeen slow ever since.",
        "We looked at it.",
        "New line",
    ]


def test_terms_are_stems_numbers_and_pairs() -> None:
    assert terms("Deploying the deployment") == {"deployi", "deploym", "the"}
    assert terms("v1.2.3 in src/app.py costs 400") == {"v1.2.3", "in", "src/app.py", "costs", "400"}
    assert terms("東京都") == {"東京", "京都"}
    assert terms("👍") == set()


def test_the_same_log_line_a_second_later_has_the_same_terms() -> None:
    assert terms("2024-05-01 10:00:01 disk is full") == terms("2024-05-01 10:00:02 disk is full")


@pytest.mark.parametrize(
    "text", ["wir machen am Samstag den 11. weiter, bis 16 uhr", "er kommt am 17.01. zwischen 13 und 15 Uhr"]
)
def test_a_day_within_a_sentence_does_not_end_it(text: str) -> None:
    assert sentences(text) == [text]


@pytest.mark.parametrize(
    "text",
    ["what do I need to tell the council", "y cuánto cuesta", "wie lang soll die Frist sein", "combien ça fait"],
)
def test_a_question_is_one_without_its_mark(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize("text", ["what I need is a van", "Was wir brauchen, ist Zeit.", "Qué va, es en Teruel"])
def test_a_sentence_that_begins_as_a_question_may_be_none(text: str) -> None:
    assert not is_question(text)


@pytest.mark.parametrize(
    "text",
    [
        "My offer is 480, and I stay below that. don't name the figure in any letter",
        "The boat is at pier 12. not on Sundays though",
        "Der Kahn liegt am Steg zwölf. aber nicht sonntags",
        "El barco está en el muelle doce. ojo, no los domingos",
    ],
)
def test_a_sentence_ends_before_a_small_letter_of_one_who_writes_on_a_phone(text: str) -> None:
    assert len(sentences(text)) == 2


@pytest.mark.parametrize(
    "text", ["Bring nails, screws etc. and the ladder.", "See vol. i of the atlas.", "At 8 a.m. we sail."]
)
def test_a_small_letter_after_an_abbreviation_starts_no_sentence(text: str) -> None:
    assert len(sentences(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Antrag eines Mitglieds (Herr Bühler, Parz. 12) liegt vor",
        "Abfahrt 8.8. 11:26 ab Altona",
        "Haus Nr. 5 und Whg. 3 sind frei",
        "ul. Długa 5 jest wolna",
    ],
)
def test_a_day_with_its_dot_and_an_abbreviation_end_no_sentence(text: str) -> None:
    assert sentences(text) == [text]


def test_a_day_at_the_end_does() -> None:
    assert sentences("Termin am 4.10. Wir kommen.") == ["Termin am 4.10.", "Wir kommen."]
