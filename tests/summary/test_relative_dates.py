"""Relative dates: each gets its day behind it, in five languages; what is no date stays as it is."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.summary.relative_dates import add_dates, day_of

MONDAY = date(2023, 5, 8)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I'll come over tomorrow.", "I'll come over tomorrow [2023-05-09]."),
        ("I first watched it around 3 years ago.", "I first watched it around 3 years ago [2020]."),
        ("We met two weeks ago at the lake.", "We met two weeks ago [2023-04-24–30] at the lake."),
        ("The review is next Friday.", "The review is next Friday [2023-05-12]."),
        ("Last month we sold 40 boats.", "Last month [2023-04] we sold 40 boats."),
        ("The day after tomorrow is free.", "The day after tomorrow [2023-05-10] is free."),
        ("It will be ready in 10 days.", "It will be ready in 10 days [2023-05-18]."),
        ("We built it in 10 days.", "We built it in 10 days."),
        ("Last weekend we sailed.", "Last weekend [2023-05-06–07] we sailed."),
        ("Ich komme morgen vorbei.", "Ich komme morgen [2023-05-09] vorbei."),
        ("Jeden Morgen regnet es.", "Jeden Morgen regnet es."),
        (
            "Gestern war er da, vor drei Tagen nicht.",
            "Gestern [2023-05-07] war er da, vor drei Tagen [2023-05-05] nicht.",
        ),
        ("Nächsten Freitag ist Abgabe.", "Nächsten Freitag [2023-05-12] ist Abgabe."),
        ("Mañana llega el barco.", "Mañana [2023-05-09] llega el barco."),
        ("Llega a las 9 de la mañana.", "Llega a las 9 de la mañana."),
        ("Lo vimos hace dos años.", "Lo vimos hace dos años [2021]."),
        ("El lunes que viene empezamos.", "El lunes que viene [2023-05-15] empezamos."),
        ("On se voit demain, pas après-demain.", "On se voit demain [2023-05-09], pas après-demain [2023-05-10]."),
        ("Il y a trois jours, il pleuvait.", "Il y a trois jours [2023-05-05], il pleuvait."),
        ("De monteur komt overmorgen.", "De monteur komt overmorgen [2023-05-10]."),
        ("Vorige week was het droog.", "Vorige week [2023-05-01–07] was het droog."),
        ("The invoice of 3 May is paid.", "The invoice of 3 May is paid."),
        ("I'll come tomorrow (2023-05-09).", "I'll come tomorrow (2023-05-09)."),
    ],
)
def test_a_relative_date_gets_its_day(text: str, expected: str) -> None:
    assert add_dates(text, MONDAY) == expected
    assert add_dates(expected, MONDAY) == expected, "and gets it once"
    assert add_dates(text, None) == text


@given(st.text(), st.dates())
def test_any_text_can_be_dated(text: str, day: date) -> None:
    assert len(add_dates(text, day)) >= len(text)


def test_a_time_that_cannot_be_read_has_no_day() -> None:
    assert day_of("") is None
    assert day_of("some day") is None
    assert day_of("2023-05-08T12:00:00.000Z") == MONDAY


TUESDAY = date(2026, 3, 10)


@pytest.mark.parametrize(
    ("text", "dated"),
    [
        ("Send the keys by Friday.", "by Friday [2026-03-13]"),
        ("The plans must be ready before Monday noon.", "before Monday [2026-03-16] noon"),
        ("Dentist next Thursday 8:15", "next Thursday [2026-03-12] 8:15"),
        ("Der Lack muss bis Freitag trocken sein.", "bis Freitag [2026-03-13]"),
        ("Hay que pagar antes del viernes.", "antes del viernes [2026-03-13]"),
        ("Il faut répondre avant vendredi.", "avant vendredi [2026-03-13]"),
        ("De sleutel moet voor zondag terug.", "voor zondag [2026-03-15]"),
        ("Morgen um 9 kommt der Maler.", "Morgen [2026-03-11] um 9"),
        ("Hier soir la pompe fuyait.", "Hier [2026-03-09] soir"),
    ],
)
def test_a_weekday_that_somebody_waits_for_gets_its_date(text: str, dated: str) -> None:
    assert dated in add_dates(text, TUESDAY)


@pytest.mark.parametrize(
    "text",
    [
        "We met on Friday and talked.",
        "A plumber stood in the hall on Friday.",
        "El jueves playa, si no llueve.",
        "Am Samstag fährt sie mit dem Laster.",
        "niet op zondag",
        "Choir is always on Friday.",
        "Jeden Montag bis Freitag ist offen.",
        "Wir haben am Samstag gestrichen.",
        "On Tuesday the van comes.",
        "The party is on Saturday, 14 March.",
        "Wir treffen uns am Samstag, den 14.",
        "Cada viernes, antes del viernes, paga.",
        "Hier gilt Parkverbot, bitte vermerken.",
        "Wasser muss hier bis Juni laufen.",
        "In de morgen mag niemand zagen.",
        "Morgen Anna, alles klar?",
        "The van costs more this year.",
        "By Friday or by Sunday, I do not know.",
    ],
)
def test_what_happened_what_recurs_and_what_is_a_place_gets_no_date(text: str) -> None:
    assert add_dates(text, TUESDAY) == text
