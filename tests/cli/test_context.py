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


def test_show_plans_for_a_new_conversation_and_one_of_an_agent(run: Run, script: Script, home: Path) -> None:
    rules = home / "agents" / "clerk" / "rules"
    rules.mkdir(parents=True)
    (rules / "style.md").write_text("---\ninclude: always\n---\nWrite short.\n")
    model = script({"text": "Yes."})
    id = one(run("ask", "-m", model, "hello", "--json"))["conversation"]
    for asked, names in (
        (["--new"], ["system", "message"]),
        (["--agent", "clerk"], ["system", "rules", "message"]),
        (["--agent", "clerk", "--new"], ["system", "rules", "message"]),
    ):
        sections = one(run("context", "show", *asked, "-m", model, "--json"))["sections"]
        assert [section["name"] for section in sections] == names
    for wrong in (["--new"], ["--agent", "clerk"]):
        assert "not both" in failure(run("context", "show", id, *wrong), 2)


def test_summary_requests_are_counted_once_and_told_apart(run: Run, script: Script) -> None:
    reply = {**REPLY, "usage": {"input": 100, "output": 10, "cache_read": 40, "cache_write": 0}}
    summary = {**SUMMARY, "usage": {"input": 700, "output": 30, "cache_read": 600, "cache_write": 0}}
    talk(run, script(reply, summary), 6)
    run("context", "compact")
    numbers = one(run("context", "stats", "--json"))
    assert numbers["requests"] == 7
    assert numbers["usage"] == {"input": 1300, "output": 90, "cache_read": 840, "cache_write": 0}
    assert (numbers["summaries"]["requests"], numbers["summaries"]["usage"]) == (1, summary["usage"])
    assert numbers["models"][0]["input"] == 1300


def test_stats_say_when_the_next_message_would_compact(run: Run, script: Script) -> None:
    model = script(REPLY, SUMMARY, limit=8000)
    talk(run, model, 20)
    run("chat", "--continue", input=f"/model {script(REPLY, SUMMARY, limit=1200)}\n")
    numbers = one(run("context", "stats", "--json"))
    assert numbers["window"]["compacts"]
    assert "once the next message has compacted it" in run("context", "stats").stdout


def test_what_was_said_is_told_without_the_model_and_the_vault(run: Run, script: Script, home: Path) -> None:
    model = script(REPLY)
    run("ask", "-m", model, "hello")
    (home / "config.toml").write_text('vault = "gone"\n')
    assert len(rows(run("conversations", "show", "--json"))) == 2
    assert one(run("context", "stats", "--json"))["messages"] == 2
    assert "there is no folder" in failure(run("context", "show"))
    Path(model.removeprefix("scripted:")).unlink()
    numbers = one(run("context", "stats", "--json"))
    assert (numbers["window"], numbers["messages"]) == (None, 2)


# -- the plan


def test_show_tells_what_would_be_compacted_or_left_out_and_changes_nothing(run: Run, script: Script) -> None:
    talk(run, script(REPLY, SUMMARY, limit=1200), 13)
    asked = ("context", "show", "--message", "word " * 150)
    plan = one(run(*asked, "--json"))["plan"]
    assert plan["compacts"]
    shown = " ".join(run(*asked).stdout.split())
    assert f"would be compacted: {plan['summed_up']['count']} messages, " in shown
    assert f"at least {plan['frees']:,} tokens freed; nothing is sent or changed now" in shown
    assert "would be sent without: " in " ".join(run(*asked, "--set", "context.enabled=false").stdout.split())
    cut = " ".join(run("context", "show", "--strategy", "discard", "--message", "word " * 3000).stdout.split())
    assert "excerpt your message, at most " in cut
    numbers = one(run("context", "stats", "--json"))
    assert (numbers["compactions"], numbers["requests"]) == (0, 13)
    assert "would be compacted" not in run("context", "show").stdout


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
