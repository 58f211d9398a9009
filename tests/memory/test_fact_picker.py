"""Facts in the window, and the tools by which a model remembers, looks up and forgets them."""

from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Open, Script

from recto.window.window import Window

OK = {"text": "ok"}
CAN_CALL: dict[str, Any] = {"tools": True}


def calling(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def facts_in(window: Window) -> list[str]:
    return [pick.name for section in window.sections if section.name == "memory" for pick in section.picks]


def test_facts_that_bear_on_a_message_go_with_it_and_are_counted(desk: Open, script: Script) -> None:
    at = desk(script(OK))
    at.facts.learn("My sister Anna lives in Berlin", created="2025-03-01T08:00:00Z")
    at.facts.learn("The server runs Debian", created="2025-03-02T08:00:00Z")
    talk = at.conversation()
    reply = talk.ask("Where does Anna live?")
    assert facts_in(reply.window) == ["1"]
    (section,) = [each for each in reply.window.sections if each.name == "memory"]
    (pick,) = section.picks
    assert (pick.kind, pick.mode, section.tokens > 0) == ("fact", "agent", True)
    assert pick.score is not None
    assert "anna" in pick.because
    assert b"- [1] 2025-03-01: My sister Anna lives in Berlin" in at.rebuild(reply.request_id)
    assert reply.message.memory_references == ("1",)
    assert at.facts.fact(1).uses == 1
    assert facts_in(talk.ask("What is two and two?").window) == []
    # what was sent with an earlier message is not sent again
    assert b"Anna lives in Berlin" not in at.rebuild(talk.last_request().id)  # type: ignore[union-attr]


def test_of_two_statements_both_come_the_newer_first(desk: Open, script: Script) -> None:
    at = desk(script(OK))
    at.facts.learn("Our dentist is Dr. Kim", created="2025-01-01T00:00:00Z")
    at.facts.learn("Our dentist is Dr. Lee now", created="2026-01-01T00:00:00Z")
    reply = at.conversation().ask("Is Dr. Kim open on Friday?")
    assert facts_in(reply.window) == ["2", "1"]
    assert b"(earlier, 2025-01-01: Our dentist is Dr. Kim)" in at.rebuild(reply.request_id)


@pytest.mark.parametrize("switch", ["context__use_facts", "context__memory_integration"])
def test_facts_can_be_switched_off(desk: Open, script: Script, switch: str) -> None:
    at = desk(script(OK, **CAN_CALL), **{switch: False})
    at.facts.learn("My sister Anna lives in Berlin")
    window = at.conversation().window("Where does Anna live?")
    assert facts_in(window) == []
    assert not any(pick.name == "remember" for section in window.sections for pick in section.picks)


def test_facts_take_a_bounded_part_of_a_small_window(desk: Open, script: Script) -> None:
    at = desk(script(OK, limit=3000))
    names = [
        f"{first}{second}"
        for first in ("Al", "Be", "Cor", "Dan")
        for second in ("ric", "tha", "nus", "ka", "lo", "mir")
    ]
    for name in names:
        at.facts.learn(f"A harbour berth belongs to captain {name} of the northern fleet, who pays for it in spring")
    window = at.conversation().window("Who owns a harbour berth?")
    (section,) = [each for each in window.sections if each.name == "memory"]
    assert 0 < section.tokens <= 0.2 * 3000
    assert any(pick.kind == "fact" and "are left for facts" in pick.because for pick in window.not_picked)


def test_a_model_remembers_what_the_user_says(desk: Open, script: Script) -> None:
    at = desk(
        script(calling("remember", text="The user's cat is called Tom", kind="person"), {"text": "Noted."}, **CAN_CALL)
    )
    talk = at.conversation()
    talk.ask("Remember that my cat is called Tom.")
    fact = at.facts.fact(1)
    user = talk.messages()[0]
    assert (fact.text, fact.kind, fact.message, fact.conversation) == (
        "The user's cat is called Tom",
        "person",
        user.id,
        talk.id,
    )
    assert fact.learned_by.startswith("scripted:")
    assert user.learning_points == ("1",)
    (result,) = [result for message in talk.messages() for result in message.results]
    assert result.text == "Remembered as fact 1: The user's cat is called Tom"


FUSE = "# Boiler\n\n- Fuse: 10 A\n- Pump: 7 A\n"


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "Boiler.md").write_text(FUSE)
    return folder


@pytest.mark.parametrize(
    ("text", "learned_by", "role"),
    [
        ("The fuse of the boiler is 10 A", "note Boiler.md", "tool"),
        ("7 A", "assistant scripted:", "assistant"),
        ("The fuse of the boiler is 7 A", "assistant scripted:", "assistant"),
    ],
)
def test_what_a_note_says_is_the_notes_and_an_invention_the_assistants(
    desk: Open, script: Script, vault: Path, text: str, learned_by: str, role: str
) -> None:
    steps = [calling("read_document", path="Boiler.md"), calling("remember", text=text), {"text": "Noted."}]
    at = desk(script(*steps, **CAN_CALL), vault)
    talk = at.conversation()
    talk.ask("Remember what the note says about the fuse.")
    fact, messages = at.facts.fact(1), talk.messages()
    assert fact.learned_by.startswith(learned_by)
    assert [message.role for message in messages if message.id == fact.message] == [role]
    assert messages[0].learning_points == ()


def test_a_note_in_front_of_the_message_is_a_source_too(desk: Open, script: Script, vault: Path) -> None:
    at = desk(script(calling("remember", text="The fuse of the boiler is 10 A"), OK, **CAN_CALL), vault)
    at.conversation().ask("Remember the fuse of [[Boiler]].")
    fact = at.facts.fact(1)
    assert (fact.said_by, fact.learned_by) == ("document", "note Boiler.md")


def test_what_a_note_says_is_not_learned_unless_the_user_asks(
    desk: Open, script: Script, vault: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "home/agents/default"
    folder.mkdir(parents=True)
    (folder / "agent.toml").write_text('[include]\n"tool:recto/remember" = "always"\n')
    steps = [calling("read_document", path="Boiler.md"), calling("remember", text="The fuse is 10 A"), OK]
    at = desk(script(*steps, **CAN_CALL), vault)
    talk = at.conversation()
    talk.ask("What does the note say about the fuse?")
    assert at.facts.count == 0
    assert "a document says this" in talk.messages()[-2].results[0].text


def test_a_fact_names_the_earlier_message_that_states_it(desk: Open, script: Script) -> None:
    steps = [OK, OK, calling("remember", text="The user's sister Anna moved to Bonn in 2019"), OK]
    at = desk(script(*steps, **CAN_CALL))
    talk = at.conversation()
    for said in ("My sister Anna moved to Bonn in 2019.", "What is two and two?", "Remember that about Anna."):
        talk.ask(said)
    first = talk.messages()[0]
    assert at.facts.fact(1).message == first.id
    assert first.learning_points == ("1",)


def test_what_the_assistant_noted_yields_to_the_users_words(desk: Open, script: Script) -> None:
    at = desk(script(OK))
    known = at.facts.learn("The fuse of the boiler has 10 A", created="2025-01-01T00:00:00Z").fact
    noted = at.facts.learn("The fuse of the boiler has 7 A", learned_by="assistant gpt", replaces=known.number)
    assert at.facts.fact(known.number).replaced_by is None
    assert [older.number for older in noted.contradicted] == [known.number]
    (told,) = at.facts.relevant("Which fuse has the boiler?")[0]
    assert told.fact == at.facts.fact(known.number)
    sent = at.rebuild(at.conversation().ask("Which fuse has the boiler?").request_id)
    assert b"has 7 A (noted by the assistant, not confirmed by the user)" in sent
    # the user says it too: it is the user's from then on
    again = at.facts.learn("The fuse of the boiler has 7 A")
    assert (again.fact.number, again.is_new, again.fact.said_by) == (noted.fact.number, False, "user")


def test_the_tools_come_with_a_message_that_speaks_of_remembering_and_stay(desk: Open, script: Script) -> None:
    at = desk(script(OK, **CAN_CALL))
    talk = at.conversation()

    def tools(said: str) -> list[str]:
        window = talk.ask(said).window
        return [pick.name for section in window.sections if section.name == "tools" for pick in section.picks]

    assert tools("What is two and two?") == []
    assert tools("Bitte merk dir, dass ich Ada heiße.") == ["remember"]
    assert tools("And three and three?") == ["remember"]
    at.facts.learn("My name is Ada")
    assert tools("What do you remember about me?") == ["remember", "recall_facts", "forget_fact"]


def test_an_agent_can_have_the_tools_always(desk: Open, script: Script, tmp_path: Any) -> None:
    folder = tmp_path / "home/agents/default"
    folder.mkdir(parents=True)
    (folder / "agent.toml").write_text(
        '[mcpServers.recto]\ninclude = "agent"\n[include]\n"tool:recto/remember" = "always"\n'
    )
    window = desk(script(OK, **CAN_CALL)).conversation().window("What is two and two?")
    assert [pick.name for section in window.sections if section.name == "tools" for pick in section.picks] == [
        "remember"
    ]


def test_what_a_rule_says_is_not_learned_again(desk: Open, script: Script, tmp_path: Any) -> None:
    folder = tmp_path / "home/agents/default/rules"
    folder.mkdir(parents=True)
    (folder / "style.md").write_text("---\ninclude: always\n---\nAll dates are written in ISO form.")
    at = desk(script(calling("remember", text="All dates are written in ISO form"), {"text": "ok"}, **CAN_CALL))
    talk = at.conversation()
    talk.ask("Write me a letter, and remember how.")
    assert at.facts.count == 0
    (result,) = [result for message in talk.messages() for result in message.results]
    assert result.is_error
    assert "a rule or memory says this" in result.text


def test_a_recalled_fact_that_is_learned_again_stays_one(desk: Open, script: Script) -> None:
    at = desk(script(calling("remember", text="The cat is called Tom"), {"text": "ok"}, **CAN_CALL))
    at.facts.learn("The cat is called Tom")
    at.conversation().ask("Do you remember what the cat is called?")
    assert at.facts.count == 1


def test_a_model_looks_facts_up_and_forgets_them_after_a_question(desk: Open, script: Script) -> None:
    steps = [calling("recall_facts", query="cat"), calling("forget_fact", number=1), {"text": "Done."}]
    at = desk(script(*steps, **CAN_CALL))
    at.facts.learn("My cat is called Tom")
    talk = at.conversation()
    talk.ask("Forget what you know about my cat")
    first, second = [result for message in talk.messages() for result in message.results]
    assert "My cat is called Tom" in first.text
    # nobody could be asked
    assert second.is_error
    assert at.facts.count == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "missing argument: text"),
        ({"text": 7}, "give `text`"),
        ({"text": ""}, "a fact needs a text"),
        ({"text": "x" * 9000}, "at most 2,000 characters"),
        ({"text": "a fact", "replaces": 77}, "there is no fact 77"),
        ({"text": "a fact", "replaces": "seven"}, "named by its number"),
    ],
)
def test_wrong_arguments_are_told_to_the_model(
    desk: Open, script: Script, arguments: dict[str, Any], said: str
) -> None:
    at = desk(script(calling("remember", **arguments), OK, **CAN_CALL))
    talk = at.conversation()
    talk.ask("remember this")
    (result,) = [result for message in talk.messages() for result in message.results]
    assert result.is_error
    assert said in result.text
    assert at.facts.count == 0
