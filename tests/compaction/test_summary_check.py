"""Checked summaries from end to end: marks and ledger are stored, sent, carried over, and stay within their room."""

import re
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.compaction.test_compaction_work import page
from tests.conftest import Open, Script
from tests.said import user_sentences

from recto import wire
from recto.api.blocking import Talk
from recto.compaction.summary_writer import without_work_log
from recto.errors import Invalid
from recto.events import ContextCompacted, Event, Sent
from recto.summary import verification
from recto.summary.ledger import ledger_items

pytestmark = pytest.mark.untraced

REPLY: dict[str, Any] = {"text": "Noted; the fleet is ready."}
WITH_FIGURES = [text for text in user_sentences()[:60] if re.search(r"\d", text)]
TELLS_LITTLE = "They spoke about this and that."


def summary(text: str) -> dict[str, Any]:
    return {"text": text, "when": "summary"}


def fill(talk: Talk, start: int = 0) -> list[Event]:
    """Turns until a compaction comes; what was heard of the last."""
    for text in user_sentences()[start : start + 200]:
        events = list(talk.stream(text))
        if any(isinstance(event, ContextCompacted) for event in events):
            return events
    raise AssertionError("no compaction came")


def sent(desk: Any, events: list[Event]) -> str:
    (request,) = [event.request for event in events if isinstance(event, Sent)]
    return str(desk.rebuild(request).decode())


def summary_requests(at: Any, talk: Talk) -> list[str]:
    ids = at.store.records.ids(talk.id)
    return [str(at.rebuild(id).decode()) for id in ids if at.record(id).purpose == "summary"]


def test_what_a_model_made_up_is_marked_and_what_it_lost_is_in_the_ledger(desk: Open, script: Script) -> None:
    told = "Refunds are off by a cent on multi seat orders, ticket FERN-2207. Grace Hopper owns 77 anchors."
    at = desk(script(REPLY, summary(told), limit=2400))
    talk = at.conversation()
    events = fill(talk)
    block = talk.summary_block()
    marked = told.replace("Hopper", "Hopper [unverified]").replace("77", "77 [unverified]")
    assert block.summary == marked
    assert block.checks["invented"] == 2
    assert block.checks["kept"] >= 1
    assert block.checks["ledger"] > 3
    said = {message.said: message.text for message in talk.messages(limit=None)}
    for number, item in (each.key for each in ledger_items(block.ledger)):
        assert " ".join(item.removesuffix("…").split()) in " ".join(said[number].split())
    body = sent(at, events)
    assert "Grace Hopper [unverified]" in body
    assert wire.dumps(block.ledger[0]).strip('"') in body
    (compacted,) = [event for event in events if isinstance(event, ContextCompacted)]
    assert compacted.checks == block.checks


def test_summary_and_ledger_never_take_more_than_the_summarys_room(desk: Open, script: Script) -> None:
    for most in (96, 150, 200, 320):
        at = desk(script(REPLY, summary(TELLS_LITTLE), limit=2400), context__summary_tokens=most)
        talk = at.conversation()
        events = fill(talk)
        (request,) = [event for event in events if isinstance(event, Sent)]
        (section,) = [section for section in request.window.sections if section.name == "summary"]
        assert section.tokens <= most
        block = talk.summary_block()
        assert block.ledger or section.tokens > 80


def test_what_a_later_summary_drops_comes_back_in_its_ledger(desk: Open, script: Script) -> None:
    kept = "No file under billing/migrations: oskar is squashing 0041–0086."
    at = desk(script(REPLY, summary(kept), summary(TELLS_LITTLE), limit=2400), context__summary_tokens=400)
    talk = at.conversation()
    fill(talk)
    before = talk.summary_block()
    assert any("0041–0086" in place for place in before.places)
    fill(talk, 200)
    block = talk.summary_block()
    assert block.checks["facts"] > before.checks["facts"]
    assert "0041–0086" in "\n".join((*block.ledger, *block.set_aside))
    assert block.checks["facts"] == block.checks["kept"] + block.checks["ledger"] + block.checks["archive"]


def test_an_edited_summary_keeps_the_ledger_and_a_clear_ends_it(desk: Open, script: Script) -> None:
    talk = desk(script(REPLY, summary("There are boats."), limit=2400)).conversation()
    fill(talk)
    before = talk.summary_block()
    assert talk.edit_summary("My own words.").ledger == before.ledger
    assert talk.clear().ledger == ()
    assert talk.uncompact().ledger == before.ledger


def test_sentences_of_the_originals_are_checked_but_never_marked(desk: Open, script: Script) -> None:
    talk = desk(script(REPLY, {"error": "unreachable", "when": "summary"}, limit=2400)).conversation()
    fill(talk)
    block = talk.summary_block()
    assert block.made_by == "extractive"
    assert block.checks["invented"] == 0
    assert block.checks["kept"] > 0
    assert "[unverified]" not in block.summary


def test_a_check_that_fails_is_noted_and_the_summary_goes_in(
    desk: Open, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("of all things")

    monkeypatch.setattr(verification, "count_marks", fails)
    talk = desk(script(REPLY, summary("There are boats."), limit=2400)).conversation()
    fill(talk)
    block = talk.summary_block()
    assert block.summary == "There are boats."
    assert any("was not checked" in note for note in block.notes)


def test_the_counts_after_an_edit_are_those_of_the_edited_text(desk: Open, script: Script) -> None:
    model = script({"text": "Noted. " * 20}, {"text": "They spoke of a boat.", "when": "summary"})
    talk = desk(model).conversation()
    for text in ("The mast is 14 metres tall.", "The sails cost 3,200 euros.", *["And so on."] * 6):
        talk.ask(text)
    before = talk.compact().checks
    after = talk.edit_summary("The mast is 14 metres tall and the sails cost 3,200 euros.").checks
    assert after["facts"] == before["facts"]
    assert after["kept"] > before["kept"]


def test_a_summary_that_tells_too_little_is_asked_for_again_with_what_it_lacks(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, summary(TELLS_LITTLE), summary("\n".join(WITH_FIGURES)), limit=2400))
    talk = at.conversation()
    fill(talk)
    block = talk.summary_block()
    assert block.made_by == "model"
    assert WITH_FIGURES[0] in block.summary
    assert any("the summary tells 0 of the" in note for note in block.notes)
    first, again = summary_requests(at, talk)
    assert "left these out" not in first
    assert re.search(r"#\d+: .*\d", again.partition("left these out")[2])


def test_of_two_that_tell_too_little_the_better_goes_in_and_the_rest_is_quoted(desk: Open, script: Script) -> None:
    better = summary(f"They spoke about this. {WITH_FIGURES[0]}")
    at = desk(script(REPLY, better, summary(TELLS_LITTLE), limit=2400))
    talk = at.conversation()
    fill(talk)
    block = talk.summary_block()
    assert block.made_by == "model"
    assert WITH_FIGURES[0] in block.summary
    assert len("".join(block.ledger)) > len(block.summary)
    assert any("what it leaves out is quoted after it" in note for note in block.notes)
    assert len(summary_requests(at, talk)) == 2


def test_a_date_that_somebody_meant_is_no_invention(desk: Open, script: Script) -> None:
    tomorrow = date.today() + timedelta(days=1)
    at = desk(script(REPLY, summary(f"Ada Lovelace comes on {tomorrow}. The crane comes on 2031-03-09."), limit=2400))
    talk = at.conversation()
    talk.ask("Ada Lovelace comes tomorrow.")
    fill(talk)
    block = talk.summary_block()
    assert block.summary == f"Ada Lovelace comes on {tomorrow}. The crane comes on 2031-03-09 [unverified]."


def test_a_work_log_stands_before_a_models_summary_and_goes_on(desk: Open, script: Script, tmp_path: Path) -> None:
    vault, call = page(tmp_path, "A page with some words about 14 boats. " * 8)
    rounds = [call, {"text": "The page says that there are 14 boats in the harbour of Lund."}] * 40
    at = desk(script(*rounds, summary("Facts: 14 boats."), limit=3200), vault=vault)
    talk = at.conversation()
    blocks = []
    for number in range(40):
        talk.ask(f"Please read the page for the report number {number} about our boats.")
        if (block := talk.compaction()) and block not in blocks:
            blocks.append(block)
    assert len(blocks) > 1
    for block in blocks:
        assert block.made_by == "model"
        assert block.summary.startswith("Work log:\nTask: Please read the page for the report number ")
        # where many earlier tasks take the room, the files that were read are in the whole log only
        assert "\nRead: Page.md\n" in f"{block.summary}\n{block.work_log}\n"
        assert block.summary.endswith("\n\nFacts: 14 boats.")
        assert block.summary.count("Work log:") == 1
        assert block.checks["invented"] == 0
    asked = summary_requests(at, talk)[-1]
    assert "Project: its structure" in asked
    assert "do not repeat it" in asked


def test_a_work_log_in_an_answer_is_dropped_however_often_it_stands_there() -> None:
    log = "Work log:\nTask: Send the money.\nState: All is paid."
    assert without_work_log(f"{log}\n\n\n{log}\n\nThe user plans a trip.\n\n{log}").startswith("The user plans a trip.")
    assert without_work_log(log) == ""


def test_a_work_log_that_had_no_room_comes_back_and_an_edit_of_other_lines_keeps_it(
    desk: Open, script: Script, tmp_path: Path
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    for number in range(30):
        (vault / f"Page of the harbour number {number}.md").write_text("A page with some words about boats. " * 8)
    names = [f"Page of the harbour number {number}.md" for number in range(30)]
    calls = [{"tool_calls": [{"name": "read_document", "arguments": {"path": name}}]} for name in names]
    rounds = [step for call in calls for step in (call, {"text": "The page says that there are boats in Lund."})]
    talk = desk(script(*rounds, {"error": "unreachable", "when": "summary"}, limit=2400), vault=vault).conversation()
    for number in range(30):
        talk.ask(f"Please read the page for the report number {number} about our boats.")
    block = talk.summary_block()
    hidden = [name for name in names[:12] if name not in block.summary]
    assert hidden
    assert all(name in block.work_log for name in hidden)
    front, _, rest = block.summary.partition("\n\n")
    assert talk.edit_summary(f"{front}\n\nMy own words.").work_log == block.work_log
    assert talk.edit_summary(f"Work log:\nTask: Mine.\n\n{rest}").work_log == ""


def test_a_summary_of_sentences_may_be_edited_as_long_as_it_is(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, limit=4000, summarizes=False))
    talk = at.conversation()
    for number in range(130):
        talk.ask(f"Supplier {number} from Town {number} delivers {number * 7 + 3} crates for {number * 31 + 19} euros.")
    block = talk.summary_block()
    assert talk.edit_summary(f"{block.summary} Mine.").summary.endswith("Mine.")
    with pytest.raises(Invalid, match=r"at most 1200 are allowed, 34 % of the window's room"):
        talk.edit_summary("Every word of it. " * 400)
