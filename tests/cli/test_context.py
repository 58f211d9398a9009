import re
from pathlib import Path

from tests.cli.conftest import Run, failure, one, rows
from tests.cli.test_context_compaction import REPLY, SUMMARY, talk
from tests.conftest import Open, Script

FIELDS = ["conversation", "model", "limit", "reserve", "total", "free", "exact", "strategy", "sections"]


def test_show_has_the_promised_fields_and_adds_up(run: Run, script: Script, notes: Path) -> None:
    answer = one(run("ask", "-m", script({"text": "Yes."}), "hello", "--json"))
    window = one(
        run("context", "show", answer["conversation"], "--vault", str(notes), "--message", "See [[Welcome]]", "--json")
    )
    assert list(window)[:9] == FIELDS
    assert window["conversation"] == answer["conversation"]
    assert sum(section["tokens"] for section in window["sections"]) == window["total"]
    assert window["limit"] == window["total"] + window["reserve"] + window["free"]
    for section in window["sections"]:
        assert list(section) == ["name", "tokens", "budget", "picks"]
        for pick in section["picks"]:
            assert list(pick)[:6] == ["kind", "name", "tokens", "because", "mode", "score"]
    assert [section["name"] for section in window["sections"]] == ["system", "tools", "history", "documents", "message"]


def test_show_is_readable_and_sends_nothing(run: Run, script: Script) -> None:
    run("ask", "-m", script({"text": "Yes."}), "hello")
    shown = run("context", "show").stdout
    assert "history" in shown
    assert "2 messages, the whole chat" in shown
    assert "counted exactly" in shown
    assert one(run("context", "stats", "--json"))["requests"] == 1


def test_show_new_plans_for_a_new_conversation(run: Run, script: Script) -> None:
    model = script({"text": "Yes."})
    id = one(run("ask", "-m", model, "hello", "--json"))["conversation"]
    sections = one(run("context", "show", "--new", "-m", model, "--json"))["sections"]
    assert "history" not in [section["name"] for section in sections]
    assert "not both" in failure(run("context", "show", id, "--new"), 2)


def test_show_of_an_agent_plans_for_a_new_conversation_of_it(run: Run, script: Script, home: Path) -> None:
    rules = home / "agents" / "clerk" / "rules"
    rules.mkdir(parents=True)
    (rules / "style.md").write_text("---\ninclude: always\n---\nWrite short.\n")
    model = script({"text": "Yes."})
    id = one(run("ask", "-m", model, "hello", "--json"))["conversation"]
    for asked in (["--agent", "clerk"], ["--agent", "clerk", "--new"]):
        sections = one(run("context", "show", *asked, "-m", model, "--json"))["sections"]
        assert [section["name"] for section in sections] == ["system", "rules", "message"]
    assert "not both" in failure(run("context", "show", id, "--agent", "clerk"), 2)
    assert "there is no agent clrk: did you mean clerk?" in failure(run("context", "show", "--agent", "clrk"))


def test_an_estimate_is_said_to_be_one(run: Run, script: Script, notes: Path) -> None:
    run("ask", "-m", script({"text": "Yes."}), "hello")
    assert "an estimate" in run("context", "show", "--vault", str(notes)).stdout


def test_summary_requests_are_counted_once_and_told_apart(run: Run, script: Script) -> None:
    reply = {**REPLY, "usage": {"input": 100, "output": 10, "cache_read": 40, "cache_write": 0}}
    summary = {**SUMMARY, "usage": {"input": 700, "output": 30, "cache_read": 600, "cache_write": 0}}
    talk(run, script(reply, summary), 6)
    run("context", "compact")
    numbers = one(run("context", "stats", "--json"))
    assert numbers["requests"] == 7
    assert numbers["usage"] == {"input": 1300, "output": 90, "cache_read": 840, "cache_write": 0}
    assert numbers["summaries"] == {
        "requests": 1,
        "usage": {"input": 700, "output": 30, "cache_read": 600, "cache_write": 0},
        "cost_usd": None,
        "unpriced": 1,
    }
    assert numbers["models"][0]["input"] == 1300
    shown = run("context", "stats").stdout
    assert "requests      7\n" in shown
    assert "summaries     1 request of these, 700 (600 read from caches), 30 came back" in shown


def test_stats_say_when_the_next_message_would_compact(run: Run, script: Script) -> None:
    model = script(REPLY, SUMMARY, limit=8000)
    talk(run, model, 20)
    run("chat", "--continue", input=f"/model {script(REPLY, SUMMARY, limit=1200)}\n")
    numbers = one(run("context", "stats", "--json"))
    assert numbers["window"]["compacts"]
    assert "once the next message has compacted it" in run("context", "stats").stdout


def test_stats_are_told_without_the_model(run: Run, script: Script) -> None:
    model = script(REPLY)
    run("ask", "-m", model, "hello")
    Path(model.removeprefix("scripted:")).unlink()
    numbers = one(run("context", "stats", "--json"))
    assert (numbers["window"], numbers["messages"]) == (None, 2)
    assert "unknown: There is no scripted file" in run("context", "stats").stdout


# -- the plan


def test_show_tells_what_would_be_compacted_and_changes_nothing(run: Run, script: Script) -> None:
    talk(run, script(REPLY, SUMMARY, limit=1200), 13)
    plan = one(run("context", "show", "--message", "word " * 150, "--json"))["plan"]
    assert plan["compacts"]
    shown = " ".join(run("context", "show", "--message", "word " * 150).stdout.split())
    assert "summary " in shown
    assert f"to be written: at most {plan_room(run):,} tokens" in shown
    assert f"kept {plan['kept']['count']} messages, " in shown
    assert f"summed up {plan['summed_up']['count']} messages, {plan['summed_up']['tokens']:,} tokens (" in shown
    assert f"would be compacted: {plan['summed_up']['count']} messages, " in shown
    assert f"at least {plan['frees']:,} tokens freed; nothing is sent or changed now" in shown
    assert one(run("context", "stats", "--json"))["compactions"] == 0
    assert "would be compacted" not in run("context", "show").stdout


def plan_room(run: Run) -> int:
    sections = one(run("context", "show", "--message", "word " * 150, "--json"))["sections"]
    (tokens,) = (section["tokens"] for section in sections if section["name"] == "summary")
    assert isinstance(tokens, int)
    return tokens


def test_show_tells_what_would_be_left_out_when_compaction_is_off(run: Run, script: Script) -> None:
    talk(run, script(REPLY, limit=1200), 13)
    shown = " ".join(
        run("context", "show", "--set", "context.enabled=false", "--message", "word " * 150).stdout.split()
    )
    assert "would be compacted" not in shown
    assert "would be sent without: " in shown


def test_show_tells_the_summary_in_force(run: Run, script: Script) -> None:
    talk(run, script(REPLY, SUMMARY), 6)
    run("context", "compact")
    assert "summary" in [section["name"] for section in one(run("context", "show", "--json"))["sections"]]
    shown = " ".join(run("context", "show").stdout.split())
    assert "compaction 1: stands for 7 archived" in shown


def test_show_tells_what_would_be_left_out_and_sent_as_an_excerpt(run: Run, script: Script) -> None:
    talk(run, script(REPLY, limit=1200), 13)
    shown = " ".join(run("context", "show", "--strategy", "discard", "--message", "word " * 3000).stdout.split())
    assert "left out " in shown
    assert "excerpt your message, at most " in shown
    assert "1 message sent as an excerpt" in shown


def test_a_vault_that_is_gone_does_not_hide_what_was_said(run: Run, script: Script, home: Path) -> None:
    run("ask", "-m", script({"text": "Yes."}), "hello")
    (home / "config.toml").write_text('vault = "gone"\n')
    assert len(rows(run("conversations", "show", "--json"))) == 2
    assert one(run("context", "stats", "--json"))["messages"] == 2
    assert "there is no folder" in failure(run("context", "show"))


def test_what_was_said_before_a_compaction_is_not_told_as_said_since(desk: Open, script: Script) -> None:
    chat = desk(script({"text": "r"})).conversation()
    for number in range(12):
        chat.ask(f"question {number} " + "and more of it " * 60)

    def told() -> str:
        (section,) = [section for section in chat.window("next").sections if section.name == "history"]
        return section.picks[-1].because

    chat.pin("#1")
    assert told().endswith("messages, the whole chat")
    chat.compact()
    assert re.search(r"after what compaction \d covers$", told())
