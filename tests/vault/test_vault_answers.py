"""The sentence of the notes that answers a question, and questions of which no note speaks."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.vault.asked_notes import ANSWERED, NOTES, UNANSWERED

from recto.vault.answers import found_terms, is_near, is_same_word
from recto.vault.question import leans_on_earlier, parse_question, question_parts
from recto.vault.vault import Vault
from recto.vault.vault_answers import FoundPassages, Lookup, answering, find_passages
from recto.vault.vault_search import VaultSearch


class Asked:
    def __init__(self, root: Path, home: Path) -> None:
        self.vault = Vault(root, home / "catalog.db")
        self.search = VaultSearch(self.vault, home / "search.db", lambda: None)
        self.search.fill()

    def find(self, text: str, **lookup: object) -> FoundPassages:
        return find_passages(self.search, self.vault.read, Lookup(text, **lookup))  # type: ignore[arg-type]

    def quoted(self, text: str, **lookup: object) -> list[str]:
        return [f"{each.text} {each.more}".strip() for _, each in answering(self.find(text, **lookup).passages, 3)]


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    root = tmp_path_factory.mktemp("asked")
    for path, text in NOTES.items():
        (root / path).write_text(text, "utf-8")
    asked = Asked(root, tmp_path_factory.mktemp("home"))
    yield asked
    asked.search.close()
    asked.vault.close()


@pytest.mark.parametrize("question", ANSWERED)
def test_the_sentence_that_answers_is_the_first_quote(notes: Asked, question: str) -> None:
    assert ANSWERED[question] in notes.quoted(question)[0]


@pytest.mark.parametrize("question", UNANSWERED)
def test_nothing_is_near_a_question_of_which_no_note_speaks(notes: Asked, question: str) -> None:
    assert notes.find(question).passages == ()


def test_a_question_that_is_written_in_a_note_answers_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "Quiz.md").write_text("# Quiz\n\n- Who feeds the owl at night?\n")
    asked = Asked(tmp_path / "notes", tmp_path)
    assert asked.quoted("Who feeds the owl at night?") == []
    asked.search.close()


def test_a_message_that_leans_is_looked_up_with_the_notes_in_use(notes: Asked) -> None:
    assert leans_on_earlier("And who planted it?")
    first, *_ = notes.quoted("And who feeds it?", earlier="What is the starter called?", in_use=("Bakery.md",))
    assert "Gustav" in first


def test_a_note_in_use_that_is_gone_is_passed_over(notes: Asked) -> None:
    assert notes.find("And who feeds it?", earlier="What is it called?", in_use=("Gone.md",)).warning == ""


def test_two_questions_in_one_message_are_both_answered(notes: Asked) -> None:
    found = " ".join(notes.quoted("When does the nightly backup run, and why did we choose PostgreSQL?"))
    assert "02:15" in found
    assert "the team knows it" in found


@pytest.mark.parametrize(
    "text", ["When was she built?", "Und wie lange dauert das?", "¿Y quién es ella?", "Et lui ?", "Why?"]
)
def test_pronouns_few_words_and_a_leading_and_lean_on_what_was_said(text: str) -> None:
    assert leans_on_earlier(text)


@pytest.mark.parametrize(
    "text", ["Who must not eat shellfish?", "Wer hat den Apfelbaum gepflanzt?", "Wann beginnt die Regatta?"]
)
def test_a_full_question_leans_on_nothing(text: str) -> None:
    assert not leans_on_earlier(text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("How many planks?", "number"),
        ("Wie viele Planken?", "number"),
        ("¿Cuántas tablas?", "number"),
        ("Combien de planches ?", "number"),
        ("When?", "date"),
        ("In welchem Jahr?", "date"),
        ("¿Qué día?", "date"),
        ("Quelle année ?", "date"),
        ("Wem gehört es?", "name"),
        ("Qui dirige ?", "name"),
        ("¿Por qué?", "reason"),
        ("Weshalb?", "reason"),
    ],
)
def test_the_kind_of_answer_is_known_in_four_languages(text: str, kind: str) -> None:
    assert kind in parse_question(text).kinds


@pytest.mark.parametrize("pair", ["plan planned", "spend spent", "planks plank", "gepflanzt gepflanzte", "casa casas"])
def test_forms_of_a_word_are_the_same_word(pair: str) -> None:
    assert is_same_word(*pair.split())


@pytest.mark.parametrize("pair", ["plan plank", "wind winter", "2025 2026", "date dog"])
def test_words_that_begin_alike_need_not_be_the_same(pair: str) -> None:
    assert not is_same_word(*pair.split())


def test_a_word_is_found_by_what_answers_have_in_its_place() -> None:
    assert found_terms(("renamed", "born", "engine"), "Her name changed; her birthday did not.") == {"renamed", "born"}


def test_meaning_counts_only_beside_words() -> None:
    assert is_near(0.5, None)
    assert is_near(0.25, 0.6)
    assert not is_near(0.25, None)
    assert not is_near(0.0, 0.9)


def test_parts_without_words_of_their_own_stay_one_question() -> None:
    whole = parse_question("How much did we plan to spend, and how much did we spend?")
    assert question_parts(whole) == [whole]


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    root = tmp_path / "notes"
    root.mkdir()
    rows = ["Country sourdough | no", "Cinnamon knots | no", "Almond croissant | no", "Seeded loaf | yes"]
    table = "\n".join(f"| {row} |" for row in rows)
    (root / "Allergens.md").write_text(f"# Allergens\n\n| Product | Sesame |\n|---|---|\n{table}\n", "utf-8")
    (root / "Lease.md").write_text("# Lease\n\nThe lease of the shop runs until 31 March 2029.\n", "utf-8")
    (root / "Verein.md").write_text("# Verein\n\nDer Verein wurde am 17. Mai 2009 gegründet.\n", "utf-8")
    (root / "Stock.md").write_text("# Stock\n\nWe stop buying flour when the stock is > 200 kg.\n", "utf-8")
    asked = Asked(root, tmp_path)
    yield asked
    asked.search.close()
    asked.vault.close()


def test_of_a_table_of_yes_and_no_the_rows_with_yes_come_first(asked: Asked) -> None:
    assert asked.quoted("Which products contain sesame?")[0] == "Seeded loaf · Sesame: yes"


def test_a_note_that_was_just_saved_is_found_with_what_it_says_now(asked: Asked) -> None:
    assert asked.quoted("Until when does the lease run?") == ["The lease of the shop runs until 31 March 2029."]
    note = asked.vault.root / "Lease.md"
    note.write_text("# Lease\n\nAs agreed, the lease of the shop runs until 2 May 2031.\n", "utf-8")
    assert asked.quoted("Until when does the lease run?") == ["As agreed, the lease of the shop runs until 2 May 2031."]


def test_a_german_date_is_quoted_with_its_day(asked: Asked) -> None:
    assert asked.quoted("Wann wurde der Verein gegründet?") == ["Der Verein wurde am 17. Mai 2009 gegründet."]


def test_a_sign_for_more_is_no_quotation(asked: Asked) -> None:
    assert asked.quoted("When do we stop buying flour?") == ["We stop buying flour when the stock is > 200 kg."]


def test_a_property_at_the_top_of_a_note_is_quoted(asked: Asked) -> None:
    head = "---\nrole: head baker\nbirthday: 1987-03-14\ntags: [people]\nphone: '01392 555 0148'\n---\n"
    (asked.vault.root / "Marta Ruiz.md").write_text(f"{head}\n# Marta Ruiz\n\nMarta joined us in 2021.\n", "utf-8")
    asked.vault.refresh()
    [passage, *_] = asked.find("When is Marta's birthday?").passages
    assert asked.quoted("When is Marta's birthday?")[0] == "birthday: 1987-03-14"
    assert "birthday: 1987-03-14" in passage.text, "the model reads it too"
    assert asked.quoted("What is the phone number of Marta?")[0] == "phone: 01392 555 0148"
    assert asked.quoted("and her birthday?", in_use=("Marta Ruiz.md",))[0] == "birthday: 1987-03-14"
