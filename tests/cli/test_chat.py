from pathlib import Path

from tests.cli.conftest import Run, Spawn, one, rows
from tests.cli.harbour import write_agent, write_server
from tests.cli.test_context_compaction import REPLY
from tests.conftest import Script


def said(run: Run) -> list[str]:
    return [row["text"] for row in rows(run("conversations", "show", "--json"))]


def test_each_line_is_a_message_and_blank_ones_are_none(run: Run, script: Script) -> None:
    done = run("chat", "-m", script({"text": "One."}, {"text": "Two."}), input="first\n\n   \nsecond\r\n")
    assert (done.stdout, done.stderr, done.exit_code) == ("One.\nTwo.\n", "", 0)
    assert said(run) == ["first", "One.", "second", "Two."]


def test_the_bytes_of_a_line_reach_the_engine_as_they_are(fork: Spawn, run: Run, script: Script) -> None:
    done = fork("chat", "-m", script({"text": "Yes."}), input=b"caf\xe9\nnul\x00\n")
    assert done.stdout == b"Yes.\nYes.\n"
    assert done.stderr.count(b"note: 1 invalid or NUL characters") == 2
    assert said(run)[::2] == ["caf\ufffd", "nul\ufffd"]


def test_an_error_in_one_line_lets_the_rest_run(run: Run, script: Script) -> None:
    done = run("chat", "-m", script({"text": "One."}, {"error": "unreachable"}, {"text": "Three."}), input="a\nb\nc\n")
    assert (done.stdout, done.exit_code) == ("One.\nThree.\n", 1)
    assert done.stderr.startswith("recto: ")
    assert said(run) == ["a", "One.", "b", "c", "Three."]


def test_nothing_said_leaves_no_conversation(run: Run, script: Script) -> None:
    done = run("chat", "-m", script({"text": "One."}), input="/help\n/model\n/quit\nnever sent\n")
    assert done.exit_code == 0
    assert rows(run("conversations", "list", "--json")) == []


def test_two_slashes_send_one(run: Run, script: Script) -> None:
    run("chat", "-m", script({"text": "One."}), input="//etc/hosts is a file\n")
    assert said(run)[0] == "/etc/hosts is a file"


def test_undo_takes_the_last_message_back_and_a_branch_returns_to_it(run: Run, script: Script) -> None:
    run("chat", "-m", script({"text": "One."}, {"text": "Two."}), input="first\nsecond\n/undo\n")
    assert said(run) == ["first", "One."]
    run("chat", "--continue", input="/branches 1\n")
    assert said(run) == ["first", "One.", "second", "Two."]


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


def test_what_cannot_be_done_is_one_sentence_each_and_the_chat_goes_on(run: Run, script: Script) -> None:
    model = script(REPLY)
    run("ask", "-m", model, "elsewhere")
    other = rows(run("conversations", "show", "--json"))[0]["id"]
    run("ask", "-m", model, "hello")
    message = rows(run("conversations", "show", "--json"))[0]["id"]
    wrong = {
        "/pin 01X": "there is no message 01X",
        f"/pin {other}": "is not part of this conversation",
        "/unpin 01X": "there is no message 01X",
        "/priority 01X 3": "there is no message 01X",
        f"/priority {message} high": "takes MESSAGE N",
        f"/priority {other} 3": "is not part of this conversation",
        "/compact": "there is nothing to compact",
        "/contxt": "did you mean /context?",
    }
    done = run("chat", "--continue", input="\n".join([*wrong, "again"]))
    told = done.stderr.splitlines()
    assert len(told) == len(wrong)
    assert [said in line for said, line in zip(wrong.values(), told, strict=True)] == [True] * len(wrong)
    assert (done.stdout, done.exit_code) == (REPLY["text"] + "\n", 1)


def test_before_anything_was_said_there_is_nothing_to_steer(run: Run, script: Script) -> None:
    done = run("chat", "-m", script(REPLY), input="/compact\n/uncompact\n/summary\n/priority 01X 3\n")
    assert done.stderr.count("recto: ") == len(done.stderr.splitlines()) == 4
    assert rows(run("conversations", "list", "--json")) == []


def test_a_strategy_chosen_in_the_chat_wins_over_the_option_it_was_begun_with(run: Run, script: Script) -> None:
    done = run("chat", "-m", script(REPLY), "--strategy", "hybrid", input="/strategy\n/strategy discard\nhello\n")
    assert done.stdout.splitlines()[0].startswith("hybrid, ")
    assert one(run("request", "show", "--json"))["strategy"] == "discard"


# -- sources


def test_a_name_may_be_given_with_its_kind_as_elsewhere(run: Run, script: Script, home: Path) -> None:
    write_agent(home / "agents/default")
    lines = ["/rules add rule:my tests", '/rules remove @rule:"my tests"', "/references add ref:prices"]
    done = run("chat", "-m", script({"text": "One."}), input="\n".join([*lines, "/rules mode Rule:style agent", ""]))
    assert (done.stderr, done.exit_code) == ("", 0)
    assert done.stdout.splitlines()[:3] == [
        "rule:my tests is included from the next message on, in conversation #1",
        "rule:my tests is no longer included, in conversation #1",
        "reference:prices is included from the next message on, in conversation #1",
    ]
    refused = run("chat", "-m", script({"text": "One."}), input='/rules add "rule:style"\n/rules add ref:prices\n')
    assert "there is no rule:rule:style" in refused.stderr
    assert "there is no rule:ref:prices" in refused.stderr


def test_references_come_before_the_documents_of_the_last_turn(
    run: Run, script: Script, home: Path, notes: Path
) -> None:
    write_agent(home / "agents/default")
    model = script({"text": "One."})
    done = run("chat", "-m", model, "--vault", str(notes), input="See [[Welcome]] and @ref:prices\n/references\n")
    told = done.stdout.splitlines()
    assert told[1].startswith("● prices  [Manual]  added 20")
    assert told[3:6] == ["", "📚 Referenced documents", "• [[Welcome]]  Welcome.md"]


def test_many_that_are_merely_available_are_folded(run: Run, script: Script, home: Path) -> None:
    rules = home / "agents/default/rules"
    rules.mkdir(parents=True)
    for number in range(30):
        (rules / f"rule {number:02}.md").write_text("Do it.")
    (rules / "zeal.md").write_text("---\ninclude: always\n---\nDo it gladly.")
    done = run("chat", "-m", script({"text": "One."}), input="/rules\n")
    told = done.stdout.splitlines()
    assert told[0].startswith("● zeal")
    assert told[-2] == "… and 18 more (/rules all shows them)"
    assert len(run("chat", "-m", script({"text": "One."}), input="/rules all\n").stdout.splitlines()) == 32


def test_a_wrong_word_about_sources_is_one_sentence_each(run: Run, script: Script, home: Path) -> None:
    write_agent(home / "agents/default")
    wrong = (
        *("/rules add", "/tools list", "/rules add stile", "/rules add style", "/references remove prices"),
        *("/references mode prices", "/references mode prices sometimes", "/tools add nowhere/x"),
    )
    done = run("chat", "-m", script({"text": "One."}), input="\n".join([*wrong, "hello"]))
    assert (done.stderr.count("\n"), done.stderr.count("recto: "), done.stdout) == (len(wrong), len(wrong), "One.\n")


def test_what_is_missing_of_the_tools_is_told_with_their_list(run: Run, script: Script, tmp_path: Path) -> None:
    (tmp_path / ".recto").mkdir()
    write_server(tmp_path)
    done = run("chat", "-m", script({"text": "One."}), input="/tools\n")
    assert done.stdout.splitlines()[:2] == [
        "default has no tools",
        "· the project's MCP server harbour was not started: `recto sources trust harbour` lets it run",
    ]


def test_attached_files_go_with_the_next_message_alone(run: Run, script: Script, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("started, stopped")
    lines = ["/attach log.txt", "What happened?", "And then?", "/attach log.txt", "/attach none", "And at last?"]
    run("chat", "-m", script({"text": "It stopped."}), input="\n".join(lines) + "\n")
    shown = rows(run("conversations", "show", "--json"))
    kinds = [[block["type"] for block in row["blocks"]] for row in shown if row["role"] == "user"]
    assert kinds == [["file", "text"], ["text"], ["text"]]
