import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run, Spawn, failure, one, rows
from tests.cli.harbour import BERTH, write_server
from tests.conftest import Script


def test_the_answer_goes_to_stdout_and_nothing_else_does(run: Run, script: Script) -> None:
    done = run("ask", "-m", script({"text": "Yes, *indeed*."}), "Is", "it?")
    assert (done.stdout, done.stderr, done.exit_code) == ("Yes, *indeed*.\n", "", 0)


def test_continue_goes_on_with_the_latest_conversation_and_its_model(run: Run, script: Script) -> None:
    model = script({"text": "Yes."})
    first, other = (one(run("ask", "-m", model, text, "--json"))["conversation"] for text in ("a", "elsewhere"))
    assert one(run("ask", "--continue", "b", "--json"))["conversation"] == other
    assert one(run("ask", "-c", first, "c", "--json"))["conversation"] == first
    shown = rows(run("conversations", "show", first, "--json"))
    assert [row["text"] for row in shown] == ["a", "Yes.", "c", "Yes."]
    assert shown[-1]["model"] == model
    assert "only one of" in failure(run("ask", "--new", "--continue", "a"), 2)


@pytest.mark.parametrize(
    ("words", "piped", "asked"),
    [((), "line one\nline two\n", "line one\nline two\n"), (("Sum", "up:"), "a report", "Sum up:\n\na report")],
)
def test_what_is_piped_in_is_the_question_or_follows_it(
    run: Run, script: Script, words: tuple[str, ...], piped: str, asked: str
) -> None:
    run("ask", "-m", script({"text": "Yes."}), *words, input=piped)
    assert rows(run("conversations", "show", "--json"))[0]["text"] == asked


def test_invalid_bytes_are_repaired_and_that_is_told(fork: Spawn, run: Run, script: Script) -> None:
    done = fork("ask", "-m", script({"text": "Yes."}), input=b"caf\xe9 \x00 \xf0\x9f\x98\x80")
    assert (done.stdout, done.stderr.count(b"note: 2 invalid or NUL characters")) == (b"Yes.\n", 1)
    assert rows(run("conversations", "show", "--json"))[0]["text"] == "caf\ufffd \ufffd 😀"
    done = fork("ask", "-m", script({"text": "Yes."}), "--json", "caf\udce9")
    assert len(json.loads(done.stdout)["notes"]) == 1
    assert rows(run("conversations", "show", "--json"))[0]["text"] == "caf\ufffd"


@pytest.mark.parametrize("text", ["", "  \n\t "])
def test_a_blank_message_is_refused_and_leaves_nothing_behind(run: Run, script: Script, text: str) -> None:
    assert "the message is empty" in failure(run("ask", "-m", script({"text": "Yes."}), text))
    assert rows(run("conversations", "list", "--json")) == []


def test_tools_and_broken_links_are_told_on_stderr(run: Run, script: Script, notes: Path) -> None:
    model = script(
        {"text": "Let me look.", "tool_calls": [{"name": "read_document", "arguments": {"path": "Welcome"}}]},
        {"text": "It is Sorrel."},
    )
    done = run("ask", "-m", model, "--vault", str(notes), "What of [[Nowhere]]?")
    assert done.stdout == "Let me look.\nIt is Sorrel.\n"
    assert "note: [[Nowhere]] leads to no document" in done.stderr
    assert 'note: read_document {"path":"Welcome"} → ' in done.stderr


def test_an_error_in_mid_reply_keeps_what_came(run: Run, script: Script) -> None:
    done = run("ask", "-m", script({"error": "unreachable", "after": 2, "text": "one two three"}), "count")
    assert failure(done).startswith("recto: ")
    assert done.stdout == "one two\n"
    last = rows(run("conversations", "show", "--json"))[-1]
    assert (last["status"], last["text"]) == ("error", "one two")


def test_any_setting_can_be_set_for_one_call(run: Run, script: Script) -> None:
    model = script({"text": "Yes."})
    asked = run(
        "ask", "-m", model, "--set", "context.max_prompt_tokens=2000", "--set", "reply.max_tokens=700", "a", "--json"
    )
    tokens = one(asked)["tokens"]
    assert (tokens["limit"], tokens["reserve"]) == (2000, 700)


@pytest.mark.parametrize(
    ("option", "code"),
    [
        (["--set", "context.max_prompt_tokens=many"], 1),
        (["--set", "model"], 2),
        (["--strategy", "magic"], 1),
        (["--vault", "nowhere"], 1),
        (["--system-file", "nowhere.md"], 1),
        (["--system", "x", "--system-file", "y"], 2),
        (["-p", "count=2"], 2),
    ],
)
def test_a_wrong_option_is_refused(run: Run, script: Script, option: list[str], code: int) -> None:
    failure(run("ask", "-m", script({"text": "Yes."}), *option, "hello"), code)


def test_a_tool_that_needs_an_answer_is_denied_unless_it_is_allowed(run: Run, script: Script, home: Path) -> None:
    write_server(home)
    model = script({"tool_calls": [BERTH]}, {"text": "Done."})
    denied = one(run("ask", "-m", model, "book", "--json"))
    assert any("harbour/berth was not run" in note and "--allow-tool" in note for note in denied["notes"])
    allowed = one(run("ask", "-m", model, "--allow-tool", "harbour/berth", "book", "--json"))
    assert allowed["notes"] == []
    (result,) = rows(run("conversations", "show", "--json"))[2]["blocks"]
    assert (result["text"], result["approval"]) == ("Sorrel lies at pier 7 for 3 nights", "always")
    other = run("ask", "-m", model, "--allow-tool", "harbour/wait", "book")
    assert "harbour/berth was not run" in other.stderr


def test_a_server_that_there_is_not_cannot_be_allowed(run: Run, script: Script, home: Path) -> None:
    write_server(home)
    asked = run("ask", "-m", script({"text": "Done."}), "--allow-tool", "harbor/berth", "book")
    assert "a tool is named SERVER or SERVER/TOOL, not harbor/berth; the servers are: recto, harbour" in failure(asked)
    assert rows(run("conversations", "list", "--json")) == []


@pytest.mark.parametrize(
    "args", [("What is this?",), ("--show-context", "What is this?"), ("-m", "MODEL", "What", "is", "this?")]
)
def test_a_question_alone_is_asked(
    run: Run, script: Script, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...]
) -> None:
    model = script({"text": "A boat."})
    monkeypatch.setenv("RECTO_MODEL", model)
    assert "A boat." in run(*(model if each == "MODEL" else each for each in args)).stdout


def test_a_single_word_that_is_no_command_is_a_mistake(run: Run) -> None:
    assert "Did you mean chat?" in run("chta").stderr
    assert 'There is no command hello. To ask the model: recto ask "hello there"' in run("hello", "there").stderr


def test_the_first_word_can_name_the_agent(run: Run, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECTO_MODEL", script({"text": "Noted."}))
    run("agent", "new", "reviewer")
    run("@reviewer", "Is this fine?")
    (shown,) = rows(run("conversations", "list", "--json"))
    assert (shown["agent"], shown["title"]) == ("reviewer", "Is this fine?")
    assert run("ask", "--continue", "@reviewer and this?").stdout.strip() == "Noted."
    run("agent", "new", "other")
    assert "belongs to the agent reviewer" in run("ask", "--continue", "@other and this?").stderr
    asked = run("ask", "@revewer is no agent")
    assert asked.stdout.strip() == "Noted."
    assert "there is no agent revewer (did you mean @reviewer?)" in asked.stderr


def test_instructions_come_from_a_text_or_a_file(
    run: Run, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECTO_SCRIPTED_LOG", str(tmp_path / "bodies"))
    (tmp_path / "prompt.md").write_text("From a file.", "utf-8")
    run("config", "set", "system_prompt_file", str(tmp_path / "prompt.md"))
    model = script({"text": "Ahoy."})
    for options in (("--system", "Talk like a sailor."), ("--system-file", "prompt.md")):
        assert run("ask", "-m", model, *options, "Hello").exit_code == 0
    first, second = (tmp_path / "bodies").read_text().splitlines()
    assert ("Talk like a sailor." in first, "From a file." in first, "From a file." in second) == (True, False, True)
