from pathlib import Path

from tests.cli.conftest import Run, Spawn, rows
from tests.conftest import Script


def said(run: Run) -> list[str]:
    return [row["text"] for row in rows(run("conversations", "show", "--json"))]


def test_each_line_is_a_message_and_blank_ones_are_none(run: Run, script: Script) -> None:
    done = run("chat", "-m", script({"text": "One."}, {"text": "Two."}), input="first\n\n   \nsecond\r\n")
    assert (done.stdout, done.stderr, done.exit_code) == ("One.\nTwo.\n", "", 0)
    assert said(run) == ["first", "One.", "second", "Two."]


def test_the_bytes_of_a_line_reach_the_engine_as_they_are(spawn: Spawn, run: Run, script: Script) -> None:
    done = spawn("chat", "-m", script({"text": "Yes."}), input=b"caf\xe9\nnul\x00\n")
    assert done.stdout == b"Yes.\nYes.\n"
    assert done.stderr.count(b"note: 1 invalid or NUL characters") == 2
    assert said(run)[::2] == ["caf\ufffd", "nul\ufffd"]


def test_an_error_in_one_line_lets_the_rest_run(run: Run, script: Script) -> None:
    done = run("chat", "-m", script({"text": "One."}, {"error": "unreachable"}, {"text": "Three."}), input="a\nb\nc\n")
    assert (done.stdout, done.exit_code) == ("One.\nThree.\n", 1)
    assert done.stderr.startswith("recto: ")
    assert said(run) == ["a", "One.", "b", "c", "Three."]


def test_chat_goes_on_with_a_conversation(run: Run, script: Script) -> None:
    run("chat", "-m", script({"text": "One."}), input="first\n")
    run("chat", "--continue", input="second\n")
    assert said(run) == ["first", "One.", "second", "One."]
    run("chat", "-m", script({"text": "Other."}), input="elsewhere\n")
    assert said(run) == ["elsewhere", "Other."]


def test_nothing_said_leaves_no_conversation(run: Run, script: Script) -> None:
    done = run("chat", "-m", script({"text": "One."}), input="/help\n/model\n/quit\nnever sent\n")
    assert done.exit_code == 0
    assert rows(run("conversations", "list", "--json")) == []


def test_help_lists_every_slash_command(run: Run, script: Script) -> None:
    shown = run("chat", "-m", script({"text": "One."}), input="/help\n").stdout
    for name in ("help", "context", "undo", "fork", "model", "clear", "request", "thinking", "quit"):
        assert f"/{name} " in shown


def test_an_unknown_slash_command_is_named_with_the_closest(run: Run, script: Script) -> None:
    done = run("chat", "-m", script({"text": "One."}), input="/contxt\n/zzz\nhello\n")
    assert "there is no command /contxt; did you mean /context?" in done.stderr
    assert "/help lists them" in done.stderr
    assert (done.stdout, done.exit_code) == ("One.\n", 1)


def test_two_slashes_send_one(run: Run, script: Script) -> None:
    run("chat", "-m", script({"text": "One."}), input="//etc/hosts is a file\n")
    assert said(run)[0] == "/etc/hosts is a file"


def test_undo_takes_the_last_message_back_and_fork_returns_to_it(run: Run, script: Script) -> None:
    model = script({"text": "One."}, {"text": "Two."})
    done = run("chat", "-m", model, input="first\nsecond\n/undo\n")
    assert "taken back: second" in done.stdout
    assert said(run) == ["first", "One."]
    taken = done.stdout.split("/fork ")[1].split(" ")[0]
    done = run("chat", "--continue", input=f"/fork {taken}\n/fork\n")
    assert said(run) == ["first", "One.", "second"]
    assert taken in done.stdout


def test_undo_and_fork_and_clear_without_a_message_say_so(run: Run, script: Script) -> None:
    done = run("chat", "-m", script({"text": "One."}), input="/undo\n/fork\n/fork 01X\n/clear\n/request\n")
    assert done.exit_code == 1
    assert len(done.stderr.splitlines()) == 5
    assert rows(run("conversations", "list", "--json")) == []


def test_the_model_can_be_changed_in_mid_conversation(run: Run, script: Script) -> None:
    other = script({"text": "Other."})
    done = run("chat", "-m", script({"text": "One."}), input=f"a\n/model {other}\nb\n")
    assert done.stdout.splitlines() == ["One.", f"{other} answers", "Other."]
    run("chat", "--continue", input="c\n")
    assert rows(run("conversations", "show", "--json"))[-1]["model"] == other


def test_a_model_that_there_is_not_is_refused_at_once(run: Run, script: Script) -> None:
    done = run("chat", "-m", script({"text": "One."}), input="/model scripted:nowhere.json\n/model nope:x\nhello\n")
    assert done.stdout == "One.\n"
    assert len(done.stderr.splitlines()) == 2


def test_context_and_request_explain(run: Run, script: Script, notes: Path) -> None:
    model = script({"text": "One."})
    done = run("chat", "-m", model, "--vault", str(notes), input="hello\n/context See [[Welcome]]\n/request\n")
    assert "Welcome.md" in done.stdout
    assert "the first of its conversation" in done.stdout
    assert done.exit_code == 0


def test_clear_starts_anew_and_deletes_nothing(run: Run, script: Script) -> None:
    done = run("chat", "-m", script({"text": "One."}), input="hello\n/clear\nagain\n")
    assert "2 messages archived" in done.stdout
    active = [row["active"] for row in rows(run("conversations", "show", "--json"))]
    assert active == [False, False, True, True, True]


def test_thinking_takes_on_or_off(run: Run, script: Script) -> None:
    done = run("chat", "-m", script({"text": "One."}), input="/thinking on\n/thinking off\n/thinking maybe\n")
    assert done.stdout == "thinking is shown\nthinking is not shown\n"
    assert done.stderr == "recto: /thinking takes on or off\n"


def test_a_compaction_is_told(run: Run, script: Script) -> None:
    model = script({"text": "word " * 100}, limit=1000)
    done = run("chat", "-m", model, input=("word " * 60 + "\n") * 6)
    assert "note: compaction 1: " in done.stderr
    assert done.exit_code == 0


def test_show_context_comes_before_each_answer(run: Run, script: Script) -> None:
    done = run("chat", "-m", script({"text": "One."}), "--show-context", input="a\nb\n")
    assert done.stderr.count("8,192 tokens = ") == 2
    assert done.stdout == "One.\nOne.\n"
