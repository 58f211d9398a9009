"""Numbers and dates have one normal form in all spellings."""

import pytest

from recto.summary.entities import normalize_date, normalize_number
from recto.summary.facts import find_facts


@pytest.mark.parametrize(
    "spellings",
    [
        ("3,200", "3200", "3.2k"),
        ("3.5 ms", "3500 µs", "0.0035 s"),
        ("$5M", "5 million dollars", "5,000,000 USD"),
        ("1.200,50 €", "€1,200.50", "1200.5 euros"),
        ("12%", "12 percent", "12 Prozent"),
        ("2 hours", "120 min", "7200 s"),
        ("30-minute", "30 minutes"),
        ("3000円", "3,000 yen"),
    ],
)
def test_a_number_is_the_same_in_every_spelling(spellings: tuple[str, ...]) -> None:
    assert len({normalize_number(spelling) for spelling in spellings}) == 1


@pytest.mark.parametrize(
    "written",
    [
        "2024-05-01",
        "2024/5/1",
        "01.05.2024",
        "5/1/2024",
        "May 1, 2024",
        "1 May 2024",
        "1st of May 2024",
        "1. Mai 2024",
        "1 de mayo de 2024",
        "2024年5月1日",
    ],
)
def test_a_date_is_the_same_in_every_spelling(written: str) -> None:
    assert ("date", "2024-05-01") in {fact.key for fact in find_facts(f"We ship on {written} at last.")}
    assert normalize_date(written) == "2024-05-01"


@pytest.mark.parametrize("row", ["1730,3.5,4", "1.5,2.5,3", "12,1.000,7.5", "3.5,1,200.5", "1'000,2.5,3,4"])
def test_a_row_of_a_table_that_looks_like_a_number_is_read(row: str) -> None:
    assert normalize_number(row)
    assert find_facts(f"year,wage,price\n{row}\n{row}")
