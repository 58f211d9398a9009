"""Recalled messages where the user sees them: in the window, beside the reply, in the record, in the numbers."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run, one, rows
from tests.conftest import Script

pytestmark = pytest.mark.untraced

SUMMARY = {"text": "Boats were discussed.", "when": "summary"}
REPLY = {"text": "Noted, all of it."}
MAST = "The mast of Sorrel is 14 metres tall and made of spruce from Norway."
FILLER = "Remark {} is about rope and paint and anchors, and takes some room in the window."
ASKED = "How tall is the mast of Sorrel?"


@pytest.fixture
def archived(run: Run, script: Script) -> str:
    """A conversation whose beginning, with the mast, is archived; the name of its model."""
    model = script(REPLY, SUMMARY, limit=8000)
    lines = [MAST, *(FILLER.format(number) for number in range(12))]
    run("chat", "-m", model, input="".join(f"{line}\n" for line in lines))
    assert run("context", "compact").exit_code == 0
    return model


def test_the_window_lists_what_is_recalled_with_number_score_and_because(run: Run, archived: str) -> None:
    window = one(run("context", "show", "--message", ASKED, "--json"))
    (section,) = [section for section in window["sections"] if section["name"] == "recalled"]
    first = rows(run("conversations", "show", "--json"))[0]["id"]
    pick = next(pick for pick in section["picks"] if pick["name"] == first)
    assert pick["because"].startswith("#1, 20")
    shown = " ".join(run("context", "show", "--message", ASKED).stdout.split())
    assert f"{pick['score']:.2f} #1, 20" in shown
    assert "holds" in shown
    assert first not in shown, "its number names it"


def test_a_reply_says_what_was_recalled_for_it_and_the_record_keeps_it(run: Run, archived: str) -> None:
    told = run("ask", "--continue", ASKED)
    assert told.stdout == f"{REPLY['text']}\n"
    (line,) = [line for line in told.stderr.splitlines() if "recalled" in line]
    assert line.startswith("note: recalled ")
    assert "#1" in line
    assert "recalled" in run("request", "show").stdout
    assert "#1, 20" in run("request", "show").stdout


def test_what_was_found_but_did_not_fit_is_listed_and_long_lists_are_folded(run: Run, archived: str) -> None:
    few = ["--set", "context.recall_tokens=90", "--message", "Which remark is about rope, paint and anchors?"]
    window = one(run("context", "show", *few, "--json"))
    assert window["not_picked"]
    shown = run("context", "show", *few).stdout
    assert "found, but did not fit:\n" in shown
    many = ["--set", "context.recall_tokens=2000", "--message", "Which remark is about rope, paint and anchors?"]
    (section,) = [
        each for each in one(run("context", "show", *many, "--json"))["sections"] if each["name"] == "recalled"
    ]
    shown = run("context", "show", *many).stdout
    assert ("more; --json has them all" in shown) == (len(section["picks"]) > 13)


def test_rounds_of_tool_calls_say_it_once(run: Run, script: Script, notes: Path, archived: str) -> None:
    calls = [{"name": "read_document", "arguments": json.dumps({"path": "Welcome"})}]
    model = script({"tool_calls": calls}, {"tool_calls": calls}, {"text": "14 metres."}, limit=8000)
    told = run("ask", "--continue", "-m", model, "--vault", str(notes), ASKED)
    assert told.stdout == "14 metres.\n"
    assert told.stderr.count("note: recalled ") == 1
