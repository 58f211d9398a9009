"""Compactions from the command line: made, shown, edited, taken back, and what is said about them."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from msgspec.structs import replace
from tests.cli.conftest import Run, Spawn, failure, one, rows
from tests.conftest import Script

from recto.chat.blocks import Compaction, Made
from recto.chat.compaction_words import block_in_words
from recto.cli.drawing.transcripts import compaction_facts, event_in_words
from recto.events import ContextCompacted

REPLY = {"text": "A reply of a dozen tokens: there are 14 boats, as always."}
SUMMARY = {"text": "Task: count the boats. Facts: there are 14 boats in the harbour.", "when": "summary"}
FAILS = {"error": "unreachable", "when": "summary"}
SAID = "Message number {} has some words to take up room in the window, and then a few more."


def talk(run: Run, model: str, turns: int, *options: str) -> Result:
    return run("chat", "-m", model, *options, input="".join(SAID.format(n) + "\n" for n in range(turns)))


@pytest.fixture
def long_talk(run: Run, script: Script) -> str:
    """A conversation with enough in it to be compacted; the name of its model."""
    model = script(REPLY, SUMMARY)
    talk(run, model, 6)
    return model


def block_of(result: Result) -> dict[str, Any]:
    answer = one(result)
    assert list(answer)[:3] == ["conversation", "head", "compaction"]
    block = answer["compaction"]
    assert isinstance(block, dict)
    return block


# -- compact


KEPT = "--keep 'the red boats'", "1 the red boats", "the red boats", "-c 1 'the red boats'"


@pytest.mark.parametrize("words", [shlex.split(each) for each in KEPT])
def test_what_is_to_be_kept_reaches_the_summariser(
    run: Run, long_talk: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setenv("RECTO_SCRIPTED_LOG", str(tmp_path / "log"))
    assert run("context", "compact", *words).exit_code == 0
    (body,) = (tmp_path / "log").read_text().splitlines()
    assert "the red boats" in json.loads(body)["messages"][-1]["content"]


def test_without_a_summariser_sentences_of_the_originals_serve_and_the_attempts_are_told(
    run: Run, script: Script
) -> None:
    talk(run, script(REPLY, FAILS), 6)
    done = run("context", "compact")
    assert done.stdout.endswith("· sentences of the originals\n")
    assert done.stderr.count("note: attempt ") == 2


# -- summary


def test_summary_shows_what_was_set_aside_and_its_ranges(run: Run, script: Script) -> None:
    model = script(REPLY, FAILS, limit=2600)
    topics = ("garden", "piano", "train", "museum", "printer", "camera", "kitchen", "tent", "choir", "oven", "boat")
    texts = [f"The {topics[n // 14]} costs {300 + n} euros, and Ada pays by March {n % 28 + 1}." for n in range(150)]
    run("chat", "-m", model, input="".join(f"{text}\n" for text in texts))
    block = one(run("context", "summary", "--json"))["compaction"]
    assert block["set_aside"]
    assert block["contents"]
    shown = run("context", "summary").stdout
    parts = [part.splitlines() for part in shown.split("\n\n")]
    assert ["Set aside by this compaction:", *block["set_aside"]] in parts
    assert ["Set aside so far, by messages:", *block["contents"]] in parts
    told = run("chat", "--continue", input="/summary\n").stdout
    assert told.count("Set aside by this compaction:") == 1
    assert set(block["summary"].splitlines()) <= set(told.splitlines()), "a line each, as `context summary` shows them"


def test_a_summary_is_changed_by_an_editor_and_by_nothing_that_fails(
    run: Run, long_talk: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("context", "compact")
    for text in ("", " \n ", "word " * 9000):
        failure(run("context", "summary", "--text", "-", input=text))
    failure(run("context", "summary", "--text", "nowhere.md"))
    failure(run("context", "summary", "--all", "--edit"), 2)
    for broken in ("false", "no-such-editor"):
        monkeypatch.setenv("EDITOR", broken)
        assert broken in failure(run("context", "summary", "--edit"))
    monkeypatch.setenv("EDITOR", "true")
    done = run("context", "summary", "--edit")
    assert (done.exit_code, done.stderr) == (0, "note: the summary is unchanged\n")
    assert one(run("context", "summary", "--json"))["compaction"]["compaction_number"] == 1
    monkeypatch.setenv("EDITOR", f"sh {editor(tmp_path, 'sed -i s/14/15/ $1')}")
    assert "here are 15 boats" in run("context", "summary", "--edit").stdout
    assert one(run("context", "summary", "--json"))["compaction"]["compaction_number"] == 2


def editor(folder: Path, command: str) -> Path:
    path = folder / "editor.sh"
    path.write_text(command + "\n")
    return path


# -- uncompact


def test_after_uncompact_everything_is_sent_again_and_what_was_said_since_stays(run: Run, long_talk: str) -> None:
    run("context", "compact")
    run("ask", "--continue", "one more")
    assert run("context", "uncompact").exit_code == 0
    everything = rows(run("conversations", "show", "--json"))
    assert all(row["active"] for row in everything if row["role"] != "system")
    assert everything[-3]["text"] == "one more"
    run("ask", "--continue", "and now?")
    assert SAID.format(0).encode() in run("request", "rebuild").stdout_bytes


# -- strategy


# -- agents


# -- what is told on the way


def test_in_a_pipe_a_compaction_is_told_on_stderr_and_the_answers_go_on(run: Run, script: Script) -> None:
    model = script(REPLY, SUMMARY, limit=1200)
    done = talk(run, model, 20)
    assert done.stdout == (str(REPLY["text"]) + "\n") * 20
    assert "note: summing up " in done.stderr
    assert f"tokens · summary by {model}\n" in done.stderr


def test_a_message_that_is_sent_as_an_excerpt_is_told(run: Run, script: Script) -> None:
    model = script({"text": "Yes."}, limit=1000)
    done = run("ask", "-m", model, "word " * 2000)
    assert done.stdout == "Yes.\n"
    assert "note: 1 long text is sent as an excerpt\n" in done.stderr
    asked = one(run("ask", "-m", model, "--json", "word " * 2000))
    assert len(asked["compaction"]["excerpts"]) == 1
    assert one(run("ask", "-m", model, "--json", "word"))["compaction"] is None


def test_with_ask_first_and_nobody_there_nothing_is_compacted_and_that_is_told(
    run: Run, fork: Spawn, script: Script
) -> None:
    talk(run, script(REPLY, SUMMARY, limit=1200), 13)
    options = ["--continue", "--set", "context.confirm=true", "word " * 150]
    told = fork("ask", *options).stderr.decode()
    notes = json.loads(fork("ask", "--json", *options).stdout)["notes"]
    for each in (told, str(notes)):
        assert "there is nobody to ask: nothing is compacted" in each
    assert one(run("context", "stats", "--json"))["compactions"] == 0


# -- the words


@pytest.mark.parametrize(
    ("made_by", "words"),
    [
        ("model", "summary by openai:gpt-4o"),
        ("extractive", "sentences of the originals"),
        ("truncated", "beginnings only"),
        ("discard", "no summary"),
        ("user", "summary by you"),
    ],
)
def test_the_marker_line_says_who_wrote_the_summary(made_by: str, words: str) -> None:
    line = f"compaction 2: 34 messages archived, 6,912 → 3,204 tokens · {words}"
    made = Made("openai", "openai:gpt-4o")
    block = Compaction(2, "2026-01-31T12:00:00.000Z", "01L", "s", 34, 6912, 3204, made_by, "it is full", made=made)
    assert block_in_words(block) == line
    assert event_in_words(ContextCompacted(2, 34, 6912, 3204, "s", made_by, made=made)) == line
    bare = replace(block, last=None, summary="", messages_archived=0, excerpts={"01M/c1": "→ ls: 900 characters"})
    assert block_in_words(bare) == "compaction 2: nothing archived, 6,912 → 3,204 tokens"
    assert dict(compaction_facts(bare))["covers"] == "no messages"
