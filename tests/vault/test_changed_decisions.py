"""A decision that was taken back is not quoted alone."""

from pathlib import Path

from tests.vault.asked_notes import asked_of

ENGINE = {
    "Decisions.md": """# Decisions

## 2026-05-04

We chose the Volta as our engine, because it is quiet. The fee stays at 30 pounds.

## 2026-07-01

We switched from the Volta to the Kubota after the recall. The fee rises to 36 pounds.
""",
}


def test_what_changed_a_decision_comes_before_it(tmp_path: Path) -> None:
    with asked_of(tmp_path, ENGINE) as asked:
        quoted = asked.quoted("What is the fee?")
        assert "36 pounds" in quoted[0]
        engine = asked.quoted("Which engine did we choose?")
        assert any("Kubota" in each for each in engine[:2])


def test_who_asks_for_the_reason_or_for_what_was_before_gets_that(tmp_path: Path) -> None:
    with asked_of(tmp_path, ENGINE) as asked:
        assert "quiet" in asked.quoted("Why did we choose the Volta?")[0]
        assert "30 pounds" in asked.quoted("What was the fee before?")[0]


def test_a_change_is_found_in_another_note_that_is_newer(tmp_path: Path) -> None:
    notes = {
        "2026-01-15 Sitzung.md": "Wir nehmen für die Fahrt nach Wien den Bus, weil er billig ist.\n",
        "2026-06-20 Sitzung.md": "Statt des Busses nehmen wir den Nachtzug, weil die Jugend schlafen kann.\n",
    }
    with asked_of(tmp_path, notes) as asked:
        quoted = asked.quoted("Wie kommen wir nach Wien?")
        assert any("Nachtzug" in each for each in quoted)


def test_of_values_that_differ_only_in_their_year_the_newest_comes_first(tmp_path: Path) -> None:
    notes = {"honey 2024.md": "price: 6.20\n", "honey 2026.md": "price: 7.50\n", "honey 2025.md": "price: 6.80\n"}
    with asked_of(tmp_path, notes) as asked:
        assert asked.quoted("What is the price of honey?")[0] == "price: 7.50"
        assert asked.quoted("What was the price of honey in 2025?")[0] == "price: 6.80"


def test_an_unrelated_change_stays_where_it_is(tmp_path: Path) -> None:
    notes = {
        "2026-01-10.md": "We decided to paint the door green.\n",
        "2026-02-10.md": "The insurance moves to Marlow instead of Harbour.\n",
    }
    with asked_of(tmp_path, notes) as asked:
        assert asked.quoted("Which colour did we decide to paint the door?") == ["We decided to paint the door green."]


def test_what_holds_under_a_condition_has_changed_nothing(tmp_path: Path) -> None:
    note = """# Heating

| Valve | Room | Level |
|---|---|---|
| 2 | Hall | 1 |
| 3 | Winter garden | 4 |

The winter garden stays warm when the boiler is off.
"""
    with asked_of(tmp_path, {"Heating.md": note}) as asked:
        assert (
            asked.quoted("Which level does the winter garden have?")[0] == "Valve: 3 · Room: Winter garden · Level: 4"
        )


def test_what_holds_today_comes_before_what_a_note_calls_past(tmp_path: Path) -> None:
    notes = {
        "Server.md": "# Server\n\nBackups run at 03:40 and are kept for 21 days.\n\n"
        "Old note: backups were kept for 14 days until March.\n",
        "Verein.md": "# Verein\n\nFrüher betrug der Beitrag 40 Euro.\n\nDer Beitrag beträgt 55 Euro.\n",
    }
    with asked_of(tmp_path, notes) as asked:
        assert "21 days" in asked.quoted("How long are backups kept?")[0]
        assert "14 days" in asked.quoted("How long were backups kept before?")[0]
        assert "55 Euro" in asked.quoted("Wie hoch ist der Beitrag?")[0]


def test_what_is_past_is_quoted_where_nothing_else_answers(tmp_path: Path) -> None:
    note = "The harbour was closed until April because of ice.\n\nThe café sells soup.\n"
    with asked_of(tmp_path, {"Harbour.md": note}) as asked:
        assert "closed until April" in asked.quoted("Why is the harbour closed?")[0]
