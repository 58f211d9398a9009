import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run, Spawn, failure, one, rows
from tests.cli.harbour import BERTH, write_server
from tests.conftest import Script


def test_the_answer_goes_to_stdout_and_nothing_else_does(run: Run, script: Script) -> None:
    done = run("ask", "-m", script({"text": "Yes, *indeed*."}), "Is", "it?")
    assert (done.stdout, done.stderr, done.exit_code) == ("Yes, *indeed*.\n", "", 0)


def test_a_question_starts_a_conversation_of_its_own(run: Run, script: Script) -> None:
    model = script({"text": "Yes."})
    assert {one(run("ask", "-m", model, "a", "--json"))["conversation"] for _ in range(2)} == {
        row["id"] for row in rows(run("conversations", "list", "--json"))
    }


def test_continue_goes_on_with_the_latest_conversation(run: Run, script: Script) -> None:
    model = script({"text": "Yes."})
    first = one(run("ask", "-m", model, "a", "--json"))["conversation"]
    assert one(run("ask", "--continue", "b", "--json"))["conversation"] == first
    assert one(run("ask", "-c", first, "c", "--json"))["conversation"] == first
    assert [row["text"] for row in rows(run("conversations", "show", "--json"))] == [
        "a",
        "Yes.",
        "b",
        "Yes.",
        "c",
        "Yes.",
    ]


def test_a_conversation_keeps_the_model_it_was_begun_with(run: Run, script: Script) -> None:
    model = script({"text": "Yes."})
    run("ask", "-m", model, "a")
    assert rows(run("conversations", "show", "--json"))[-1]["model"] == model
    assert one(run("context", "show", "--json"))["model"] == model


def test_only_one_conversation_can_be_meant(run: Run) -> None:
    assert "only one of" in failure(run("ask", "--new", "--continue", "a"), 2)


def test_what_is_piped_in_is_the_question(run: Run, script: Script) -> None:
    run("ask", "-m", script({"text": "Yes."}), input="line one\nline two\n")
    assert rows(run("conversations", "show", "--json"))[0]["text"] == "line one\nline two\n"


def test_what_is_piped_in_follows_the_question(run: Run, script: Script) -> None:
    run("ask", "-m", script({"text": "Yes."}), "Sum", "up:", input="a report")
    assert rows(run("conversations", "show", "--json"))[0]["text"] == "Sum up:\n\na report"


def test_invalid_bytes_are_repaired_and_that_is_told(fork: Spawn, run: Run, script: Script) -> None:
    done = fork("ask", "-m", script({"text": "Yes."}), input=b"caf\xe9 \x00 \xf0\x9f\x98\x80")
    assert done.stdout == b"Yes.\n"
    assert done.stderr.decode().startswith("note: 2 invalid or NUL characters")
    assert rows(run("conversations", "show", "--json"))[0]["text"] == "caf\ufffd \ufffd 😀"


def test_invalid_bytes_of_an_argument_are_repaired_too(fork: Spawn, run: Run, script: Script) -> None:
    done = fork("ask", "-m", script({"text": "Yes."}), "--json", "caf\udce9")
    assert len(json.loads(done.stdout)["notes"]) == 1
    assert rows(run("conversations", "show", "--json"))[0]["text"] == "caf\ufffd"


@pytest.mark.parametrize("text", ["", "  \n\t "])
def test_a_blank_message_is_refused_and_leaves_nothing_behind(run: Run, script: Script, text: str) -> None:
    assert "the message is empty" in failure(run("ask", "-m", script({"text": "Yes."}), text))
    assert rows(run("conversations", "list", "--json")) == []


def test_show_context_prints_the_window_to_stderr_before_the_answer(run: Run, script: Script, notes: Path) -> None:
    done = run("ask", "-m", script({"text": "Yes."}), "--vault", str(notes), "--show-context", "See [[Welcome]]")
    assert done.stdout == "Yes.\n"
    assert "Welcome.md" in done.stderr
    assert "linked as [[Welcome]]" in done.stderr
    assert "8,192 tokens = " in done.stderr


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


def test_an_unknown_model_is_told_and_the_message_is_kept(run: Run) -> None:
    assert "nope" in failure(run("ask", "-m", "nope:x", "hello"))
    assert [row["text"] for row in rows(run("conversations", "show", "--json"))] == ["hello"]


def test_a_scripted_file_that_is_missing_is_named(run: Run) -> None:
    told = json.loads(failure(run("ask", "-m", "scripted:nowhere.json", "hello", "--json")))
    assert told["error"]["type"] == "NotFound"
    assert "nowhere.json" in told["error"]["message"]


def test_instructions_larger_than_the_window_are_an_error(run: Run, script: Script, tmp_path: Path) -> None:
    (tmp_path / "long.md").write_text("Be kind. " * 1000)
    asked = run("ask", "-m", script({"text": "Yes."}, limit=1000), "--system-file", "long.md", "--json", "hello")
    assert json.loads(failure(asked))["error"]["type"] == "DoesNotFit"


def test_any_setting_can_be_set_for_one_call(run: Run, script: Script) -> None:
    model = script({"text": "Yes."})
    asked = run(
        "ask", "-m", model, "--set", "context.max_prompt_tokens=2000", "--set", "reply.max_tokens=700", "a", "--json"
    )
    tokens = one(asked)["tokens"]
    assert (tokens["limit"], tokens["reserve"]) == (2000, 700)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--set", "context.max_prompt_tokens=many"], "a whole number from 0 to"),
        (["--set", "context.strategi=discard"], "did you mean context.strategy?"),
        (["--strategy", "magic"], "context.strategy = 'magic' is not allowed"),
        (["--vault", "nowhere"], "there is no folder nowhere"),
        (["--system-file", "nowhere.md"], "cannot read the system prompt file nowhere.md"),
    ],
)
def test_a_wrong_option_value_is_named(run: Run, script: Script, option: list[str], said: str) -> None:
    assert said in failure(run("ask", "-m", script({"text": "Yes."}), *option, "hello"))


def test_set_wants_a_value(run: Run) -> None:
    assert "KEY=VALUE" in failure(run("ask", "--set", "model", "hello"), 2)


def test_the_system_file_is_what_the_model_is_told_first(run: Run, script: Script, tmp_path: Path) -> None:
    (tmp_path / "pirate.md").write_text("You are a pirate.")
    run("ask", "-m", script({"text": "Arr."}), "--system-file", "pirate.md", "hello")
    assert b"You are a pirate." in run("request", "rebuild").stdout_bytes


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


def test_an_attached_file_goes_with_the_question(run: Run, script: Script, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("started, stopped")
    answered = run("ask", "-m", script({"text": "It stopped."}), "--attach", "log.txt", "What happened?")
    assert answered.stdout == "It stopped.\n"
    assert b"started, stopped" in run("request", "rebuild").stdout_bytes


def test_a_file_that_cannot_be_attached_is_refused_in_one_sentence(run: Run, script: Script) -> None:
    done = run("ask", "-m", script({"text": "ok"}), "--attach", "gone.png", "What is this?")
    assert done.exit_code == 1
    assert done.stderr == "recto: there is no file gone.png to attach\n"


def log_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    log = tmp_path / "bodies"
    monkeypatch.setenv("RECTO_SCRIPTED_LOG", str(log))
    return log


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
    assert "did you mean chat?" in run("chta").stderr
    assert "No such command" in run("hello").stderr


def test_the_first_word_can_name_the_agent(run: Run, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECTO_MODEL", script({"text": "Noted."}))
    run("agent", "new", "reviewer")
    run("@reviewer", "Is this fine?")
    (shown,) = rows(run("conversations", "list", "--json"))
    assert (shown["agent"], shown["title"]) == ("reviewer", "Is this fine?")
    assert run("ask", "--continue", "@reviewer and this?").stdout.strip() == "Noted."
    run("agent", "new", "other")
    assert "belongs to the agent reviewer" in run("ask", "--continue", "@other and this?").stderr
    assert run("ask", "@nobody is no agent").stdout.strip() == "Noted."


def test_instructions_can_be_given_as_text(
    run: Run, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(tmp_path, monkeypatch)
    (tmp_path / "prompt.md").write_text("From a file.", "utf-8")
    run("config", "set", "system_prompt_file", str(tmp_path / "prompt.md"))
    run("ask", "-m", script({"text": "Ahoy."}), "--system", "Talk like a sailor.", "Hello")
    assert "Talk like a sailor." in log.read_text()
    assert "From a file." not in log.read_text()
    assert "not both" in run("ask", "--system", "x", "--system-file", "y", "Hello").stderr


def test_a_template_makes_the_question(
    run: Run, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(tmp_path, monkeypatch)
    folder = tmp_path / "home" / "templates"
    folder.mkdir(parents=True)
    head = f"---\nmodel: {script({'text': 'Short.'})}\nsystem: Be terse.\n---\n"
    (folder / "sum.md").write_text(f"{head}Sum up in $count points: $input", "utf-8")
    assert run("ask", "-t", "sum", "-p", "count=2", "a long text").stdout.strip() == "Short."
    assert "Sum up in 2 points: a long text" in log.read_text()
    assert "Be terse." in log.read_text()
    assert "needs a value: -p count=" in run("ask", "-t", "sum", "x").stderr
    assert "--param goes with --template" in run("ask", "-p", "count=2", "x").stderr
