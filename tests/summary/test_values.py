"""Values: numbers, dates, times, names, paths and the like, each with one normal form for all its spellings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.summary.samples import texts

from recto.summary.evidence import Evidence
from recto.summary.values import find_values

pytestmark = pytest.mark.untraced


def keys(text: str) -> list[tuple[str, str]]:
    return [value.key for value in find_values(text)]


def kinds(text: str) -> dict[str, str]:
    return {value.text: value.kind for value in find_values(text)}


written = st.lists(
    st.sampled_from(["12,000 €", "May 3", "3.", "2024", "src/a.py", "Ada ", "14:30", "--x", "v1.2", "`a b`", "„Nein“"])
    | st.sampled_from(["٣", "²", "5月", "中", "$", "-", "–", "'", "/", ".", " ", "\n", "0x1", "a@b.de", "http://a"]),
    max_size=9,
).map("".join)


digits = st.text("0123456789.,-–/:x€ kg\n", max_size=60)


@given(texts | written | digits)
def test_every_value_is_cut_from_its_place_and_stated_by_its_text(text: str) -> None:
    evidence = Evidence()
    evidence.add(text)
    for value in find_values(text):
        assert value.text in text[value.start : value.end + 8]
        assert evidence.states(value)
        assert evidence.supports(value)
        Evidence().supports(value)


@pytest.mark.parametrize(
    "spellings",
    [
        ["It is 3,200 €.", "3200 Euro.", "C’est €3.2k.", "Het is 3'200 EUR.", "是 EUR 3,200"],
        ["1.5 million dollars were paid", "$1.5M", "$1,500,000", "1,500,000 USD"],
        ["12.5 %", "12,5 Prozent", "12.5 percent", "12,5%"],
        ["it takes 2 hours", "2 h", "120 min", "2 horas", "7200 s", "2 heures", "2時間", "2小时"],
        ["16 GB", "16GB", "16-GB"],
        ["−5 °C", "-5 °C", "-5℃"],
        ["we need 30,000円", "30000 yen", "¥30,000"],
        ["4 days", "4 Tage", "4 jours", "4 días", "4 dagen", "4天"],
        ["1.25 kg", "1250 g", "1,25 kilo"],
        ["from 10-12 people", "10–12 personas", "10 - 12 люди"],
        ["90 min", "90 Minuten"],  # the M of a German unit is no million
        ["3 months", "3 Monate"],
        ["about 5–7 kg", "about 5−7 kg", "about 5 — 7 kg", "about 5‑7 kg"],
        ["12,000 €", "12 000 €", "12\u202f000 €"],
        ["1,250,000 €", "1.250.000 €"],
        ["30,000円", "3万円"],
        ["$45", "US$45"],
    ],
    ids=lambda spellings: spellings[0],
)
def test_a_number_has_one_normal_form_in_any_spelling(spellings: list[str]) -> None:
    assert {tuple(keys(text)) for text in spellings} == {tuple(keys(spellings[0]))}
    assert [kind for kind, _ in keys(spellings[0])] == ["number"]


@pytest.mark.parametrize(
    "text", ["it costs 1900 euros", "We use Python 3.12 now.", "In Room 14 at last.", "Budget 50 €", "Haus 12 ist frei"]
)
def test_a_number_after_a_word_is_found(text: str) -> None:
    assert "number" in dict(keys(text)) or "version" in dict(keys(text))


@pytest.mark.parametrize("text", ["预算是12000元", "予算は30,000円です", "ราคา500บาท"])
def test_a_number_is_found_in_a_text_without_spaces(text: str) -> None:
    assert [kind for kind, _ in keys(text)] == ["number"]


@pytest.mark.parametrize(
    ("normal", "spellings"),
    [
        (
            "2024-05-01",
            "2024-05-01; 01.05.2024; 05/01/2024; 1 May 2024; May 1st, 2024; 1. Mai 2024; 1er mai 2024",
        ),
        (
            "2024-05-01",
            "1 de mayo de 2024; 1 maggio 2024; 1 de maio de 2024; 1 maja 2024; 1 Mayıs 2024; 2024年5月1日",
        ),
        ("--05-01", "on May 1; am 1. Mai; le 1er mai; 1 мая; 5月1日"),
        ("2024-05", "in May 2024; im Mai 2024; 2024年5月"),
    ],
)
def test_a_date_has_one_normal_form_in_many_languages(normal: str, spellings: str) -> None:
    assert {text: keys(text) for text in spellings.split("; ") if keys(text) != [("date", normal)]} == {}


def test_a_time_has_one_normal_form() -> None:
    assert {key for text in ("14:30", "2:30 pm", "14h30", "at 2:30 p.m.") for key in keys(text)} == {("time", "14:30")}


@pytest.mark.parametrize("text", ["um 14 Uhr", "14.00 Uhr"])
def test_a_time_with_its_german_word_is_a_time(text: str) -> None:
    assert keys(text) == [("time", "14:00")]


def test_paths_addresses_versions_identifiers_and_quotations_are_values() -> None:
    text = (
        "Look at src/app.py:12, C:\\data\\x.txt and ~/notes; run `make all` with --force for FERN-2231 on v16.2.1, see "
        "https://a.org/x?y=1, ask me@example.org, call read_file() in parseRow and/or say “never again”, «nie mehr»."
    )
    assert kinds(text) == {
        "src/app.py:12": "path",
        "C:\\data\\x.txt": "path",
        "~/notes": "path",
        "make all": "code",
        "--force": "identifier",
        "FERN-2231": "identifier",
        "v16.2.1": "version",
        "https://a.org/x?y=1": "url",
        "me@example.org": "url",
        "read_file()": "identifier",
        "parseRow": "identifier",
        "“never again”": "quote",
        "«nie mehr»": "quote",
    }


def test_names_are_capitals_that_no_sentence_start_explains() -> None:
    assert kinds("Yes. We met Ada Lovelace’s team in Paris. Later that day it rained.") == {
        "Ada Lovelace": "name",
        "Paris": "name",
    }
    assert kinds("Wczoraj dzwonił Jan Kowalski z Gdańska.") == {"Jan Kowalski": "name", "Gdańska": "name"}
    assert kinds("Вчера звонил Иван Петров из Москвы.") == {"Иван Петров": "name", "Москвы": "name"}


def test_in_a_language_that_writes_nouns_with_capitals_a_noun_is_not_missed() -> None:
    text = "Nachts schläft die Mannschaft im Hafen, und der Koch streitet am Abend mit dem Kapitän im Keller."
    assert not any(value.is_significant for value in find_values(text) if value.kind == "name")


@pytest.mark.parametrize(
    "text",
    ["In Paris it rained.", "Later Paris was ours.", "Aber Paris war nass.", "Luego Paris calló.", "The Paris office"],
)
def test_the_word_that_begins_a_sentence_is_no_part_of_a_name(text: str) -> None:
    assert keys(text) == [("name", "paris")]


def test_the_number_of_an_item_is_no_value() -> None:
    assert keys("1. Buy paint\n2) sand it\n- 3. Sail") == []
