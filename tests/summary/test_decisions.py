"""Decisions and answers: found wherever they are in a sentence, and told from words that only sound like them."""

import pytest

from recto.summary.decisions import find_answers, find_decisions, shorten_decision


def test_a_decision_is_a_binding_sentence_identified_by_its_content_words() -> None:
    text = "Nice weather. By the way, we decided to use PostgreSQL, because the team knows it. Do you agree?"
    (decision,) = find_decisions(text)
    assert shorten_decision(decision.text) == "we decided to use PostgreSQL"
    assert "postgre" in decision.normal


def test_one_or_two_words_of_the_user_are_an_answer_unless_they_say_nothing() -> None:
    assert [fact.text for fact in find_answers("archive-and-ribbon", "user")] == ["archive-and-ribbon"]
    for text in ("Yes please.", "ok", "Which one?", "Not yet.", "a whole sentence about nothing much at all"):
        assert find_answers(text, "user") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "We looked at three, so after all that we went with SQLite because it needs no server.",
            "we went with SQLite",
        ),
        ("ok, SQLite it is", "SQLite it is"),
        ("I'd rather keep it in one file", "I'd rather keep it in one file"),
        ("Hm, then let's do Tuesday", "let's do Tuesday"),
        ("I talked to Ada yesterday and in the end we chose the smaller venue.", "we chose the smaller venue"),
        ("We looked at five of them, some quite slow, so we decided to use Redis.", "we decided to use Redis"),
        ("Am Ende haben wir uns auf Hamburg geeinigt.", "Am Ende haben wir uns auf Hamburg geeinigt"),
        ("Bon, ce sera mardi alors.", "Bon, ce sera mardi alors"),
        ("Al final optamos por el hotel pequeño.", "Al final optamos por el hotel pequeño"),
        ("预算改为三千元。", "预算改为三千元"),
    ],
)
def test_a_decision_is_found_wherever_it_is_in_a_sentence(text: str, expected: str) -> None:
    (decision,) = find_decisions(text)
    assert shorten_decision(decision.text) == expected
    assert text[decision.start : decision.end] == decision.text


@pytest.mark.parametrize(
    "text",
    [
        "It is what it is.",
        "I know how hard it is, believe me.",
        "I went with my sister to the lake.",
        "She picked me up at the station.",
        "Let's do it!",
        "Which one would you have picked?",
        "The winner was chosen by lot.",
    ],
)
def test_words_that_only_sound_like_a_decision_are_none(text: str) -> None:
    assert find_decisions(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "fumar prohibido",
        "Rauchen verboten.",
        "Le chien est interdit.",
        "Nein, kein Buffet!",
        "nada de mariscos",
        "Pas de fruits de mer.",
        "And no phones at the table.",
        "Ohne Zwiebeln bitte.",
        "Don't use plastic.",
        "Bitte nicht über Amazon bestellen.",
        "We stay with Postgres.",
        "Wir bleiben bei Hetzner.",
        "Das Gesamtbudget bleibt.",
        "Seguimos con Postgres.",
        "On reste sur Postgres.",
        "Remember to water the plants.",
        "Denk bitte an den Schlüssel.",
        "Acuérdate de llamar a Luis.",
        "Anna will do that by Friday.",
        "Jonas schickt die Pläne bis Mittwoch.",
        "Marta lo hará antes del viernes.",
        "Paul s'en occupe d'ici vendredi.",
        "Bitte nie nach 18 Uhr anrufen.",
        "Das Treffen fällt aus.",
        "La cita se cancela.",
        "记得带合同原件。",
        "不要花生。",
        "别告诉李总。",
        "就订柳莺宾馆。",
    ],
)
def test_prohibitions_commitments_and_orders_to_remember_bind(text: str) -> None:
    assert len(find_decisions(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "No worries, mate!",
        "No, I do not think so.",
        "No sé.",
        "I have no time today.",
        "Keine Ahnung, ehrlich gesagt.",
        "Sin duda.",
        "Pas de problème.",
        "Bis Montag!",
        "It was finished by Monday.",
        "We met from Monday until Friday.",
        "We stayed with my aunt.",
        "Nicht schlecht.",
        "The shop stays open late.",
        "特别好。",
    ],
)
def test_what_only_sounds_like_a_rule_does_not_bind(text: str) -> None:
    assert find_decisions(text) == []
