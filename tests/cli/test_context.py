from collections import Counter
from pathlib import Path

import pytest
from tests.cli.conftest import Run, failure, one, rows
from tests.conftest import Script

from recto.cli.stats import priced
from recto.providers.model import Prices

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


def test_show_works_before_anything_was_said(run: Run, script: Script) -> None:
    window = one(run("context", "show", "-m", script({"text": "Yes."}), "--json"))
    assert [section["name"] for section in window["sections"]] == ["system", "message"]
    assert rows(run("conversations", "list", "--json")) == []


def test_show_new_plans_for_a_new_conversation(run: Run, script: Script) -> None:
    model = script({"text": "Yes."})
    id = one(run("ask", "-m", model, "hello", "--json"))["conversation"]
    sections = one(run("context", "show", "--new", "-m", model, "--json"))["sections"]
    assert "history" not in [section["name"] for section in sections]
    assert "not both" in failure(run("context", "show", id, "--new"), 2)


def test_an_estimate_is_said_to_be_one(run: Run, script: Script, notes: Path) -> None:
    run("ask", "-m", script({"text": "Yes."}), "hello")
    assert "an estimate" in run("context", "show", "--vault", str(notes)).stdout


def test_stats_count_what_was_said_and_sent(run: Run, script: Script) -> None:
    usage = {"input": 100, "output": 10, "cache_read": 40, "cache_write": 0}
    run("chat", "-m", script({"text": "Yes.", "usage": usage}), input="hello\nagain\n/clear\n")
    numbers = one(run("context", "stats", "--json"))
    assert numbers["messages"] == 4
    assert numbers["roles"] == {"assistant": 2, "user": 2}
    assert (numbers["compactions"], numbers["archived"], numbers["requests"]) == (1, 4, 2)
    assert numbers["usage"] == {"input": 200, "output": 20, "cache_read": 80, "cache_write": 0}
    assert numbers["cost_usd"] is None
    assert "unknown: no prices" in run("context", "stats").stdout


def test_the_cost_counts_cached_tokens_at_their_own_price() -> None:
    spent = Counter(input=1_000_000, output=100_000, cache_read=500_000, cache_write=100_000)
    assert priced(Prices(input=2, output=10, cache_read=0.5, cache_write=2.5), spent) == pytest.approx(2.3)
    assert priced(Prices(input=2, output=10), spent) == pytest.approx(3.0)
    assert priced(Prices(input=2), spent) is None


def test_clear_starts_the_view_anew(run: Run, script: Script) -> None:
    run("ask", "-m", script({"text": "Yes."}), "hello")
    cleared = one(run("context", "clear", "--json"))
    assert cleared["compaction"]["messages_archived"] == 2
    sections = one(run("context", "show", "--json"))["sections"]
    assert "history" not in [section["name"] for section in sections]
    assert len(rows(run("conversations", "show", "--json"))) == 3
    assert "compaction 2" in run("context", "clear").stdout


def test_a_vault_that_is_gone_does_not_hide_what_was_said(run: Run, script: Script, home: Path) -> None:
    run("ask", "-m", script({"text": "Yes."}), "hello")
    (home / "config.toml").write_text('vault = "gone"\n')
    assert len(rows(run("conversations", "show", "--json"))) == 2
    assert one(run("context", "stats", "--json"))["messages"] == 2
    assert "there is no folder" in failure(run("context", "show"))
