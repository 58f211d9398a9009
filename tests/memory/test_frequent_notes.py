"""Notes that are used often become facts: found, suggested, kept up to date, and forgotten for good."""

import shutil
from pathlib import Path

import pytest
from tests.conftest import Open, Script

from recto.api.blocking import Desk
from recto.store.fact import MemoryFact

NOTES = {
    "Budget.md": "# Budget\n\nWhat the boat costs in a year.\n",
    "boat/Engine.md": "# Engine\n\nThe diesel and its spare parts.\n",
    "boat/Sails.md": "# Sails\n\nTwo sails and a storm jib, and what the boat needs in a year.\n",
}
OK = {"text": "ok"}


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    for path, text in NOTES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")
    return root


def caught_up(at: Desk) -> list[MemoryFact]:
    assert at.vault is not None
    at.engine.learner.frequent_notes.of_vault(at.vault.root, at.settings.context)
    return at.facts.facts("reference")


def name_often(at: Desk, link: str, times: int = 3) -> None:
    for _ in range(times):
        at.conversation().ask(f"What about {link}?")


def test_a_note_that_is_named_in_several_conversations_becomes_a_reference(
    desk: Open, script: Script, vault: Path
) -> None:
    at = desk(script(OK), vault=vault)
    name_often(at, "[[Budget]]")
    at.conversation().ask("And [[Engine]]?")
    (fact,) = caught_up(at)
    assert fact.text == "[[Budget]] (Budget.md): What the boat costs in a year."
    assert fact.note is not None
    assert (fact.note.vault, fact.note.path, fact.note.link) == (str(vault.resolve()), "Budget.md", "[[Budget]]")
    assert (fact.learned_by, fact.uses, bool(fact.last_used)) == ("Recto", 3, True)
    assert [each.fact.number for each in at.facts.search("what does the boat cost")[0]] == [fact.number]


def test_a_note_of_one_conversation_is_none(desk: Open, script: Script, vault: Path) -> None:
    at = desk(script(OK), vault=vault)
    talk = at.conversation()
    for _ in range(5):
        talk.ask("What about [[Budget]]?")
    assert caught_up(at) == []


def test_what_searches_came_upon_weighs_less(desk: Open, script: Script, vault: Path) -> None:
    find = {"tool_calls": [{"name": "find_documents", "arguments": {"query": "boat in a year"}}]}
    at = desk(script(*[step for _ in range(9) for step in (find, OK)]), vault=vault)
    for count in (3, 6):
        for _ in range(count):
            at.conversation().ask("What is needed?")
        found = [fact.note.path for fact in caught_up(at) if fact.note]
        assert found == ([] if count == 3 else found)
    assert "Budget.md" in found


def test_it_follows_the_note_and_its_uses(desk: Open, script: Script, vault: Path) -> None:
    at = desk(script(OK), vault=vault)
    name_often(at, "[[Budget]]")
    before = caught_up(at)[0]
    (vault / "Budget.md").write_text("# Budget\n\nWho paid for the engine.\n")
    name_often(at, "[[Budget]]", 1)
    (after,) = caught_up(at)
    assert (after.number, after.text) == (before.number, "[[Budget]] (Budget.md): Who paid for the engine.")
    assert (after.uses, after.history) == (4, ())
    assert [each.fact.number for each in at.facts.search("who paid for the engine")[0]] == [after.number]


def test_what_the_user_wrote_about_a_note_stays(desk: Open, script: Script, vault: Path) -> None:
    at = desk(script(OK), vault=vault)
    name_often(at, "[[Budget]]")
    at.facts.edit(caught_up(at)[0].number, "Budget.md holds what I owe the harbour")
    (vault / "Budget.md").write_text("# Budget\n\nWho paid for the engine.\n")
    name_often(at, "[[Budget]]", 1)
    (fact,) = caught_up(at)
    assert (fact.text, fact.uses) == ("Budget.md holds what I owe the harbour", 4)


def test_one_that_was_forgotten_stays_forgotten(desk: Open, script: Script, vault: Path, tmp_path: Path) -> None:
    at = desk(script(OK), vault=vault)
    name_often(at, "[[Budget]]")
    at.facts.forget(caught_up(at)[0].number)
    name_often(at, "[[Budget]]")
    assert caught_up(at) == []
    at.store.database.checkpoint(is_whole=True)
    with at.store.database.read() as connection:
        row = connection.exec_driver_sql("SELECT text, note, note_key FROM facts").one()
    assert (row.text, row.note) == ("", None)
    assert "Budget" not in row.note_key


def test_one_that_a_file_brought_back_is_not_learned_twice(desk: Open, script: Script, vault: Path) -> None:
    at = desk(script(OK), vault=vault)
    at.facts.learn("[[Budget]] (Budget.md): What the boat costs in a year.", "reference")
    name_often(at, "[[Budget]]")
    assert len(caught_up(at)) == 1


def test_a_statement_about_a_note_does_not_change_what_points_to_it(desk: Open, script: Script, vault: Path) -> None:
    at = desk(script(OK), vault=vault)
    name_often(at, "[[Budget]]")
    fact = caught_up(at)[0]
    again = at.facts.learn("[[Budget]] Budget.md: what the boat costs in a year!")
    assert (again.is_new, again.fact) == (False, fact)
    stated = at.facts.learn("The budget of the boat is 900 in a year")
    assert (stated.is_new, stated.contradicted) == (True, ())


def test_a_model_that_can_read_it_is_pointed_to_it(desk: Open, script: Script, vault: Path) -> None:
    at = desk(script(OK), vault=vault)
    name_often(at, "[[Budget]]")
    (fact,) = caught_up(at)
    window = at.conversation().window("What does the boat cost in a year?")
    (pick,) = [pick for each in window.sections if each.name == "memory" for pick in each.picks]
    assert pick.name == str(fact.number)
    at.conversation().ask("What does the boat cost in a year?")
    assert at.facts.fact(fact.number).uses == 3, "of the note, not of the fact"


def _passed(at: Desk, message: str) -> str:
    return " ".join(pick.because for pick in at.conversation().window(message).not_picked if pick.kind == "fact")


def test_a_model_that_cannot_read_it_is_not(desk: Open, script: Script, vault: Path) -> None:
    name_often(first := desk(script(OK), vault=vault), "[[Budget]]")
    caught_up(first)
    question = "What does the boat cost in a year?"
    assert "the model cannot read notes" in _passed(desk(script(OK, tools=False), vault=vault), question)
    assert "its vault is not the one of this conversation" in _passed(desk(script(OK)), question)
    assert "the note itself is in the window" in _passed(first, f"{question} See [[Budget]].")
    (vault / "Budget.md").unlink()
    assert "the note no longer exists" in _passed(desk(script(OK), vault=vault), question)


def test_it_is_suggested_before_others(desk: Open, script: Script, vault: Path) -> None:
    at = desk(script(OK), vault=vault)
    talk = at.conversation()
    talk.ask("What does the boat need in a year?")
    before = [hit.path for hit in talk.suggest_documents().hits]
    assert before[0] == "boat/Sails.md"
    for link in ("[[Budget]]",) * 3:
        at.conversation().ask(f"What about {link}?")
    hits = talk.suggest_documents().hits
    (budget,) = [hit for hit in hits if hit.path == "Budget.md"]
    assert "used often (3 times, last 20" in budget.because
    assert {hit.path for hit in hits} == set(before)


def test_nothing_is_kept_where_facts_are_off(desk: Open, script: Script, vault: Path) -> None:
    at = desk(script(OK), vault=vault, context__use_facts=False)
    name_often(at, "[[Budget]]")
    assert caught_up(at) == []


def test_a_vault_that_is_gone_is_told(desk: Open, script: Script, vault: Path) -> None:
    at = desk(script(OK), vault=vault)
    name_often(at, "[[Budget]]")
    (fact,) = caught_up(at)
    assert at.facts.missing(fact) == ""
    (vault / "Budget.md").unlink()
    assert at.facts.missing(fact) == "the note no longer exists"
    shutil.rmtree(vault)
    assert at.facts.missing(fact) == f"the vault {vault.resolve()} no longer exists"
