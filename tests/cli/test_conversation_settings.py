"""Settings of one conversation at the command line and in the chat: set, shown with their origin, taken back."""

from pathlib import Path

from tests.cli.conftest import Run, failure, one, rows
from tests.conftest import Script

REPLY = {"text": "Yes."}


def test_a_setting_is_kept_shown_with_its_origin_and_taken_back(run: Run, script: Script, home: Path) -> None:
    model = script(REPLY, limit=4000)
    run("config", "set", "model", model)
    run("ask", "hello")
    run("ask", "and another")
    assert run("context", "set", "max_prompt_tokens", "3000", "-c", "1").stdout == (
        "context.max_prompt_tokens = 3000 [conversation #1]\n"
    )
    assert one(run("context", "show", "1", "--json"))["limit"] == 3000
    assert one(run("context", "show", "1", "--json"))["settings"] == {"context.max_prompt_tokens": 3000}
    assert "context.max_prompt_tokens = 3000 [conversation #1]" in run("context", "show", "1").stdout
    assert one(run("context", "show", "2", "--json"))["limit"] == 4000
    told = {each["key"]: (each["value"], each["from"]) for each in rows(run("config", "show", "-c", "1", "--json"))}
    assert told["context.max_prompt_tokens"] == (3000, "conversation #1")
    assert told["model"] == (model, str(home / "config.toml"))
    got = one(run("config", "get", "context.max_prompt_tokens", "-c", "1", "--json"))
    assert (got["value"], got["from"]) == (3000, "conversation #1")
    assert one(run("ask", "-c", "1", "and?", "--json"))["tokens"]["limit"] == 3000
    wins = run("ask", "-c", "1", "and?", "--set", "context.max_prompt_tokens=2000", "--json")
    assert one(wins)["tokens"]["limit"] == 2000
    unset = one(run("context", "unset", "max_prompt_tokens", "-c", "1", "--json"))
    assert (unset["key"], unset["value"], unset["from"]) == ("context.max_prompt_tokens", 0, "default")
    assert one(run("context", "show", "1", "--json"))["limit"] == 4000


def test_what_is_wrong_is_said_in_one_sentence(run: Run, script: Script) -> None:
    assert "there is no conversation yet" in failure(run("context", "set", "threshold", "0.5"))
    run("ask", "-m", script(REPLY), "hello")
    assert "conversation #1: model is not kept with a conversation" in failure(run("context", "set", "model", "x:y"))
    assert "it takes a number from 0.1 to 1" in failure(run("context", "set", "threshold", "5"))
    assert "there is no setting threshhold" in failure(run("context", "set", "threshhold", "5"))
