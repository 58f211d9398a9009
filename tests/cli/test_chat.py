from pathlib import Path

import pytest
from tests.cli.conftest import Run, Spawn, one, rows
from tests.cli.harbour import BERTH, write_agent, write_server
from tests.cli.test_context_compaction import REPLY, SUMMARY, talk
from tests.conftest import Script

PINS = ((1, "first"), (3, "second"))


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


def test_an_unknown_slash_command_is_named_with_the_closest(run: Run, script: Script) -> None:
    done = run("chat", "-m", script({"text": "One."}), input="/contxt\n/zzz\nhello\n")
    assert "there is no command /contxt; did you mean /context?" in done.stderr
    assert "/help lists them" in done.stderr
    assert (done.stdout, done.exit_code) == ("One.\n", 1)


def test_two_slashes_send_one(run: Run, script: Script) -> None:
    run("chat", "-m", script({"text": "One."}), input="//etc/hosts is a file\n")
    assert said(run)[0] == "/etc/hosts is a file"


def test_undo_takes_the_last_message_back_and_redo_returns_to_it(run: Run, script: Script) -> None:
    model = script({"text": "One."}, {"text": "Two."})
    done = run("chat", "-m", model, input="first\nsecond\n/undo\n")
    assert "taken back in conversation #1: second" in done.stdout
    assert said(run) == ["first", "One."]
    done = run(
        "chat", "--continue", "-m", script({"text": "Three."}), input="third\n/undo\n/undo\n/redo\n/redo\n/redo\n"
    )
    assert said(run) == ["first", "One.", "third", "Three."]
    assert "the next message follows #2: One." in done.stdout
    assert "the next message follows #4: Three." in done.stdout
    assert done.stderr == "recto: there is nothing to redo: /undo was not used since the last message\n"


def test_redo_returns_behind_a_pin(run: Run, script: Script) -> None:
    done = run("chat", "-m", script({"text": "One."}), input="first\n/pin 1\n/undo\n/redo\n/unpin\n")
    assert done.stdout.splitlines()[4:6] == ["the next message follows #2: One.", "#1  first"]


def test_a_new_message_leaves_nothing_to_redo(run: Run, script: Script) -> None:
    done = run("chat", "-m", script({"text": "One."}), input="first\nsecond\n/undo\nthird\n/redo\n")
    assert "there is nothing to redo" in done.stderr
    assert said(run) == ["first", "One.", "third", "One."]


@pytest.mark.parametrize("named", ["#1", "1", "{id}"])
def test_fork_takes_a_number_or_an_id(run: Run, script: Script, named: str) -> None:
    run("chat", "-m", script({"text": "One."}), input="first\nsecond\n")
    first = rows(run("conversations", "show", "--json"))[0]["id"]
    done = run("chat", "--continue", input=f"/fork {named.format(id=first)}\n/fork\n")
    assert done.stdout.splitlines()[0] == "the next message of conversation #1 follows #1: first"
    assert said(run) == ["first"]
    assert done.stdout.splitlines()[1] == "#1  user       first"


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


def test_a_compaction_is_told(run: Run, script: Script) -> None:
    model = script({"text": "word " * 100}, limit=1000)
    done = run("chat", "-m", model, input=("word " * 60 + "\n") * 6)
    assert "note: compaction 1: " in done.stderr
    assert done.exit_code == 0


# -- steering what is sent


def test_compact_and_uncompact_in_the_chat(run: Run, script: Script) -> None:
    model = script(REPLY, SUMMARY)
    talk(run, model, 6)
    done = run("chat", "--continue", input="/compact the red boats\n/summary\n/uncompact\n/uncompact\n/summary\n")
    assert f"summary by {model}\n" in done.stderr
    assert "14 boats" in done.stdout
    assert "7 messages are back in the window" in done.stdout
    assert "recto: there is no compaction to take back\n" in done.stderr
    assert done.stderr.endswith("everything said is in its window\n")


def test_a_summary_is_edited_with_a_keyboard_only(run: Run, script: Script) -> None:
    talk(run, script(REPLY, SUMMARY), 6)
    done = run("chat", "--continue", input="/compact\n/summary edit\n/summary delete\n")
    assert "recto: there is no keyboard to edit with" in done.stderr
    assert "recto: /summary takes edit, lost, or nothing" in done.stderr


def test_pins_are_offered_set_listed_and_taken_off_by_number_or_id(run: Run, script: Script) -> None:
    run("chat", "-m", script(REPLY), input="first\nsecond\n")
    first = rows(run("conversations", "show", "--json"))[0]["id"]
    done = run(
        "chat", "--continue", input=f"/unpin\n/pin\n/pin {first}\n/pin last\n/unpin\n/unpin #1\n/unpin\n/pin 4\n"
    )
    assert (done.stderr, done.exit_code) == ("", 0)
    told = done.stdout.splitlines()
    assert told[0] == "nothing is pinned"
    assert [line[:15].rstrip() for line in told[1:5]] == ["#1  user", "#2  assistant", "#3  user", "#4  assistant"]
    assert told[6:8] == [f"#{n} is pinned, in every window of conversation #1 from now on: {text}" for n, text in PINS]
    assert told[8:10] == ["#1  first", "#3  second"]
    assert told[11] == "#1 is no longer pinned in conversation #1: first"
    assert told[12] == "#3  second"
    assert told[14].startswith("#4 is pinned")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/pin 01X", "there is no message 01X"),
        ("/unpin 01X", "there is no message 01X"),
        ("/unpin #1", "is not pinned"),
        ("/pin #9", "conversation #2 has no message #9"),
        ("/request 9", "conversation #2 has no message #9"),
        ("/priority 01X 3", "there is no message 01X"),
        ("/priority", "takes MESSAGE N"),
        ("/priority {message} high", "takes MESSAGE N"),
        ("/priority {message} 11", "from 1 to 10"),
        ("/priority {other} 3", "is not part of this conversation"),
        ("/pin {other}", "is not part of this conversation"),
        ("/strategy guess", "discard or summarize or hybrid"),
        ("/compact", "there is nothing to compact"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_the_chat_goes_on(
    run: Run, script: Script, line: str, said: str
) -> None:
    model = script(REPLY)
    run("ask", "-m", model, "elsewhere")
    other = rows(run("conversations", "show", "--json"))[0]["id"]
    run("ask", "-m", model, "hello")
    message = rows(run("conversations", "show", "--json"))[0]["id"]
    done = run("chat", "--continue", input=line.format(other=other, message=message) + "\nagain\n")
    assert said in done.stderr
    assert (done.stderr.count("\n"), done.stdout) == (1, REPLY["text"] + "\n")


def test_before_anything_was_said_there_is_nothing_to_steer(run: Run, script: Script) -> None:
    done = run("chat", "-m", script(REPLY), input="/pin\n/pin last\n/compact\n/uncompact\n/summary\n/priority 01X 3\n")
    assert done.stderr.count("recto: ") == len(done.stderr.splitlines()) == 6
    assert rows(run("conversations", "list", "--json")) == []


def test_a_strategy_is_shown_chosen_and_given_up_in_the_chat(run: Run, script: Script) -> None:
    lines = "/strategy\n/strategy discard\nhello\n/strategy\n"
    done = run("chat", "-m", script(REPLY), input=lines)
    assert done.stdout.splitlines() == [
        "summarize, as agent, model and settings say; /strategy NAME changes that",
        "discard, chosen for this conversation",
        REPLY["text"],
        "discard, chosen for this conversation; /strategy NAME changes that",
    ]
    assert one(run("context", "show", "--json"))["strategy"] == "discard"
    done = run("chat", "--continue", input="/strategy default\n")
    assert done.stdout == "summarize, as agent, model and settings say\n"


def test_a_strategy_chosen_in_the_chat_wins_over_the_option_it_was_begun_with(run: Run, script: Script) -> None:
    done = run("chat", "-m", script(REPLY), "--strategy", "hybrid", input="/strategy\n/strategy discard\nhello\n")
    assert done.stdout.splitlines()[0].startswith("hybrid, ")
    assert one(run("request", "show", "--json"))["strategy"] == "discard"


# -- sources


def test_rules_are_listed_added_removed_and_given_modes_in_the_chat(run: Run, script: Script, home: Path) -> None:
    write_agent(home / "agents/default")
    lines = '/rules\n/rules add "my tests"\n/rules remove style\nhello\n/rules mode my tests always\n/rules\n'
    done = run("chat", "-m", script({"text": "One."}), input=lines)
    assert (done.stderr, done.exit_code) == ("", 0)
    told = done.stdout.splitlines()
    legend = "● in this conversation  ○ available · /rules add NAME, remove NAME, mode NAME MODE"
    assert told[:6] == [
        "● style     [Always]  How we write",
        "○ my tests  [Agent]   How we test",
        legend,
        "rule:my tests is included from the next message on, in conversation #1",
        "rule:style is no longer included, in conversation #1",
        "One.",
    ]
    assert told[6].startswith("rule:my tests comes in always from now on: ")
    assert told[7].startswith("● my tests  [Manual]  added 20")
    assert told[8].startswith("○ style     [Always]  taken out 20")
    sent = run("request", "rebuild").stdout
    assert "Test everything." in sent
    assert "Write short sentences." not in sent


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


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/rules add", "/rules takes add NAME, remove NAME, mode NAME MODE, all, or nothing"),
        ("/tools list", "/tools takes add NAME, remove NAME, mode NAME MODE, ask NAME, servers, all, or nothing"),
        ("/rules add stile", "did you mean rule:style?"),
        ("/rules add style", "already: it is always included"),
        ("/references remove prices", "is not in this conversation"),
        ("/references mode prices", "takes add NAME"),
        ("/references mode prices sometimes", "unknown mode 'sometimes': use always, manual or agent"),
        ("/tools add nowhere/x", "nowhere/x"),
    ],
)
def test_a_wrong_word_about_sources_is_one_sentence(run: Run, script: Script, home: Path, line: str, said: str) -> None:
    write_agent(home / "agents/default")
    done = run("chat", "-m", script({"text": "One."}), input=f"{line}\nhello\n")
    assert said in done.stderr
    assert (done.stderr.count("\n"), done.stdout) == (1, "One.\n")


def test_tools_of_a_server_are_listed_with_its_state_and_nobody_is_asked_in_a_pipe(
    run: Run, script: Script, home: Path
) -> None:
    write_server(home)
    model = script({"tool_calls": [BERTH]}, {"text": "Not booked."})
    done = run("chat", "-m", model, input="/tools\n/tools servers\nbook\n")
    assert "● harbour/berth  [Always]  Books a berth for a boat." in done.stdout
    assert "harbour  running, 2 tools\n  HARBOUR_KEY=… " in done.stdout
    assert done.stdout.endswith("Not booked.\n")
    assert "note: harbour/berth was not run: nobody could be asked" in done.stderr
    assert '`approval = "allow"` in agent.toml' in done.stderr
    assert "→ not run: nobody was there to allow it" in done.stderr


def test_what_is_missing_of_the_tools_is_told_with_their_list(run: Run, script: Script, tmp_path: Path) -> None:
    (tmp_path / ".recto").mkdir()
    write_server(tmp_path)
    done = run("chat", "-m", script({"text": "One."}), input="/tools\n")
    assert done.stdout.splitlines() == [
        "default has no tools",
        "· the project's MCP server harbour was not started: `recto sources trust harbour` lets it run",
    ]


def test_a_tool_that_is_allowed_runs_in_a_pipe(run: Run, script: Script, home: Path) -> None:
    write_server(home)
    model = script({"tool_calls": [BERTH]}, {"text": "Booked."})
    done = run("chat", "-m", model, "--allow-tool", "harbour", input="book\n")
    assert done.stdout == "Booked.\n"
    assert 'note: harbour:berth {"boat":"Sorrel","nights":3} → 34 characters' in done.stderr


def test_attached_files_go_with_the_next_message_alone(run: Run, script: Script, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("started, stopped")
    lines = [
        "/attach log.txt",
        "/attach gone.png",
        "What happened?",
        "And then?",
        "/attach log.txt",
        "/attach none",
        "/attach",
    ]
    done = run("chat", "-m", script({"text": "It stopped."}), input="\n".join(lines) + "\n")
    assert "with your next message: log.txt; /attach none clears this" in done.stdout
    assert "there is no file gone.png to attach" in done.stdout + done.stderr
    assert done.stdout.count("nothing is attached") == 2
    shown = rows(run("conversations", "show", "--json"))
    kinds = [[block["type"] for block in row["blocks"]] for row in shown if row["role"] == "user"]
    assert kinds == [["file", "text"], ["text"]]
