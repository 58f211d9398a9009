"""What is quoted: each thing once, of lists and tables as much as was asked."""

from pathlib import Path

from tests.vault.asked_notes import asked_of


def test_the_same_sentence_in_several_notes_is_quoted_once(tmp_path: Path) -> None:
    same = "The crane of Veldt lifts nine tons.\n"
    notes = {"A.md": same, "B.md": f"# Harbour\n\n{same}", "C.md": "The crane of Veldt was built by Ostrom.\n"}
    with asked_of(tmp_path, notes) as asked:
        quoted = asked.quoted("How much does the crane of Veldt lift?")
        assert [each for each in quoted if "nine tons" in each] == ["The crane of Veldt lifts nine tons."]


def test_a_list_of_single_words_is_quoted_as_a_whole(tmp_path: Path) -> None:
    notes = {"Packing.md": "# Packing list\n\n- lamp\n- tent\n- cash\n", "Other.md": "The lamp is red.\n"}
    with asked_of(tmp_path, notes) as asked:
        assert asked.quoted("Show me the packing list")[0] == "lamp · tent · cash"


def test_short_answers_are_quoted(tmp_path: Path) -> None:
    notes = {
        "Wifi.md": "Network: spoke\nPassword: chain42\n",
        "Tuner.md": "# Piano tuner\n\nSalt\n",
    }
    with asked_of(tmp_path, notes) as asked:
        assert asked.quoted("What is the wifi password?")[0] == "Password: chain42"
        assert asked.quoted("Who is the piano tuner?") == ["Salt"]


def test_a_question_for_several_gets_more_rows_of_one_table_and_how_many_are_left(tmp_path: Path) -> None:
    names = ("Ann", "Ben", "Cid", "Dot", "Eli", "Fay", "Gus", "Hal")
    rows = "".join(f"| {name} | mechanic |\n" for name in names)
    table = f"# Crew\n\n| Name | Role |\n|---|---|\n{rows}| Ida | cook |\n"
    with asked_of(tmp_path, {"Crew.md": table}) as asked:
        quoted = asked.quoted("Which members of the crew are mechanics?")
        assert [each.split()[0] for each in quoted] == list(names[:6])
        assert quoted[-1].endswith("… and 2 more rows")
        assert asked.quoted("What is the role of Ida?")[0] == "Ida · Role: cook"


def test_other_rows_of_the_table_that_answers_are_not_quoted(tmp_path: Path) -> None:
    codes = "| code | meaning |\n|---|---|\n| 0 | saved |\n| 3 | incomplete |\n| 11 | it is locked |\n"
    costs = "| item | plan | paid |\n|---|---|---|\n| Fence | £240 | £215 |\n| Gate | £79 | £83 |\n"
    with asked_of(tmp_path, {"Backup.md": f"# Exit codes\n\n{codes}", "Garden.md": f"# Cost\n\n{costs}"}) as asked:
        assert asked.quoted("What does exit code 11 mean?") == ["code: 11 · meaning: it is locked"]
        assert asked.quoted("What did the fence cost?") == ["Fence · plan: £240 · paid: £215"]
        assert len(asked.quoted("What did the fence and the gate cost?")) == 2


def test_of_statements_that_answer_equally_well_the_newest_comes_first(tmp_path: Path) -> None:
    note = """# Decisions

## 2026-05-04

We chose the Volta as our engine, because it is quiet. The fee stays at 30 pounds.

## 2026-07-01

We switched from the Volta to the Kubota after the recall. The fee rises to 36 pounds.
"""
    with asked_of(tmp_path, {"Decisions.md": note}) as asked:
        assert "36 pounds" in asked.quoted("What is the fee?")[0]
        assert "quiet" in asked.quoted("Why did we choose the Volta?")[0]
