"""Relative dates: each gets the day that it meant when it was said; what may mean several days stays as it is."""

import re
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.summary.relative_dates import add_dates, day_of

WEDNESDAY = date(2024, 7, 17)

DAYS = """
en: The glazier comes tomorrow [2024-07-18], the scaffold went yesterday [2024-07-16].
de: Übermorgen [2024-07-19] holt Ines den Ofen ab, gestern [2024-07-16] war niemand da.
nl: Overmorgen [2024-07-19] komt de stukadoor.
fr: Hier [2024-07-16] nous avons rempli la cuve, demain [2024-07-18] on filtre.
it: L'altro ieri [2024-07-15] è arrivato il legno.
es: Pasado mañana [2024-07-19] cierran el mercado.
pt: Depois de amanhã [2024-07-19] chega o barro.
pl: Jutro [2024-07-18] odbieramy klucze.
sv: Vi hämtar båten i morgon [2024-07-18].
ru: Позавчера [2024-07-15] привезли доски.
uk: Учні приїдуть завтра [2024-07-18] вранці.
tr: Fırın yarın [2024-07-18] geliyor.
ar: سنفتح المتجر غدا [2024-07-18].
hi: दुकान आज [2024-07-17] बंद है।
zh: 她明天 [2024-07-18]去银行。
ja: 明日 [2024-07-18]は休みです。
ko: 내일 [2024-07-18] 다시 올게요.
"""
SPANS = """
en: The mill burnt four years ago [2020], and last month [2024-06] it opened again.
en: Dentist next Friday [2024-07-19] 9:40, not at noon.
de: Vor zwei Wochen [2024-07-01–07] kam der Bescheid, nächsten Montag [2024-07-22] antworte ich.
nl: Drie dagen geleden [2024-07-14] brak de ketting; volgende week [2024-07-22–28] is hij klaar.
fr: Il y a six mois [2024-01] elle est partie, elle revient mardi prochain [2024-07-23].
it: Due settimane fa [2024-07-01–07] pioveva; il mese prossimo [2024-08] si vendemmia.
es: Lo pinté hace tres días [2024-07-14], y la semana que viene [2024-07-22–28] seca.
pt: A feira foi na semana passada [2024-07-08–14].
pl: Tydzień temu [2024-07-08–14] pękła rura, w przyszły czwartek [2024-07-18] ją wymienią.
sv: Förra veckan [2024-07-08–14] sprang vi, om tre dagar [2024-07-20] vilar vi.
ru: Год назад [2023] тут был сад, на следующей неделе [2024-07-22–28] начнём снова.
uk: Минулої п'ятниці [2024-07-12] було тихо.
tr: Geçen ay [2024-06] kar yağdı, iki gün önce [2024-07-15] eridi.
zh: 下周五 [2024-07-26]交稿。
ja: 先週 [2024-07-08–14]は寒かった。
"""
DEADLINES = """
en: The kiln has to be emptied by Saturday [2024-07-20].
de: Die Fenster müssen bis Montag [2024-07-22] gestrichen sein.
fr: Rends-moi la clé avant jeudi [2024-07-18].
it: Servono le foto entro venerdì [2024-07-19].
es: Traigan las cajas antes del martes [2024-07-23].
pt: Entregue tudo até sexta-feira [2024-07-19].
pl: Oddaj książki do piątku [2024-07-19].
sv: Svara senast måndag [2024-07-22].
ru: Верни лодку до субботы [2024-07-20].
tr: Cuma'ya kadar [2024-07-19] bekleyin.
ja: 土曜日まで [2024-07-20]に送ってください。
"""
SILENT = {
    "a weekday alone is past, next or every week": "Choir on Friday. Am Montag Probe. El jueves playa.",
    "a past sentence has no deadline": "We waited until Friday. Er hat bis Montag gewartet. Мы ждали до пятницы.",
    "two weekdays are a choice": "Bring it by Monday or by Thursday. Montag bis Freitag offen.",
    "today's weekday is today or in a week": "Send it by Wednesday.",
    "a duration is no date": "We sewed the sail in five days. In zwei Tagen gebaut.",
    "a day with its number has a date": "Finish by Friday 26. Bis Freitag, den 26. fertig.",
    "a sentence with a date keeps it": "On 4 August or tomorrow. Morgen, 18.07., geht es. 明天是7月18日。",
    "the morning is not tomorrow": "Jeden Morgen Nebel. guten morgen! Sale a las 6 de la mañana. In de morgen.",
    "the place is not yesterday": "Hier ist der Schlüssel. Hier staat de fiets.",
    "a name is not a day": "She reads USA Today.",
    "a part of a number is no number": "Two or three weeks ago. 4-5 days ago. Twenty-one years ago. 1.5 years ago.",
    "a rough time is no date": "Wiele lat temu. Много лет назад. Hace muchos años. A few weeks ago.",
    "a period up to some day is not the last one": "Over the last week. The next month was dry. Last days of May.",
    "characters of other words are no dates": "请说明天气。 안내일정. 会議の3日前。",
}

PIECES = re.split(" ", "next last by in two 3 days week friday vor drei Tagen hace hier . - 's [ \n 明天")


@pytest.mark.parametrize("line", [line for block in (DAYS, SPANS, DEADLINES) for line in block.split("\n") if line])
def test_a_relative_date_gets_its_day_in_each_language(line: str) -> None:
    expected = line[len("en: ") :]
    assert add_dates(re.sub(r" \[[^\]]*\]", "", expected), WEDNESDAY) == expected
    assert add_dates(expected, WEDNESDAY) == expected, "and gets it once"


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_what_may_mean_several_days_stays(text: str) -> None:
    assert add_dates(text, WEDNESDAY) == text


def test_the_date_follows_the_whole_word() -> None:
    assert add_dates("Tomorrow's tide is low.", WEDNESDAY) == "Tomorrow's [2024-07-18] tide is low."


def test_a_sentence_with_a_date_leaves_the_next_one_alone() -> None:
    text = "The lease ends on 4 August. We sign tomorrow."
    assert add_dates(text, WEDNESDAY) == f"{text[:-1]} [2024-07-18]."


def test_without_a_day_or_beyond_the_calendar_the_text_stays() -> None:
    assert add_dates("See you tomorrow.", None) == "See you tomorrow."
    assert add_dates("See you tomorrow, not last week.", date.max) == "See you tomorrow, not last week [9999-12-20–26]."
    assert add_dates("It fell 300 years ago.", date.min) == "It fell 300 years ago."


@given(st.lists(st.sampled_from(PIECES)), st.dates())
def test_only_brackets_are_added(words: list[str], day: date) -> None:
    text = " ".join(words)
    assert re.sub(r" \[\d{4}[\d–-]*\]", "", add_dates(text, day)) == text


def test_a_time_that_cannot_be_read_has_no_day() -> None:
    assert day_of("") is day_of("some day") is None
    assert day_of("2024-07-17T12:00:00.000Z") == WEDNESDAY
