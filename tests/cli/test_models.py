import json
import re
from pathlib import Path

import pytest
from tests.cli.conftest import Run, failure, one, rows
from tests.conftest import Script, Serve
from tests.providers.conftest import Loopback

from recto.weights import named

EMBEDDED = ["embedded:qwen2.5-coder-0.5b", "embedded:qwen2.5-coder-1.5b", "embedded:smollm2"]


def test_the_list_holds_what_can_be_used_now_and_counts_the_rest(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run("models", "list")
    assert [line.split()[0] for line in first.stdout.splitlines()] == EMBEDDED
    assert re.search(r"note: 1,\d\d\d more models", first.stderr)
    assert "--all" in first.stderr
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k" * 20)
    monkeypatch.setenv("RECTO_OPENROUTER_API_KEY", "k" * 20)
    second = run("models", "list")
    lines = second.stdout.splitlines()
    assert any(line.startswith("anthropic:claude-sonnet") for line in lines)
    assert sum(line.startswith("openrouter:") for line in lines) == 20
    assert re.search(r"1,\d\d\d more models", second.stderr)
    assert len(run("models", "list", "--all").stdout.splitlines()) > 1000


def test_the_list_holds_what_servers_offer_and_the_names_that_the_user_gave(
    run: Run, serve: Serve, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered = {"object": "list", "data": [{"id": "qwen3", "max_model_len": 40_960}, {"id": "openai/gpt-4o"}]}
    server = serve(routes={"/v1/models": [Loopback.whole(offered)]})
    monkeypatch.setenv("RECTO_MY_BOX_BASE_URL", server.url)
    monkeypatch.setenv("RECTO_GONE_BASE_URL", "http://127.0.0.1:9/v1")
    home.mkdir()
    (home / "models.toml").write_text('["The Big One"]\nprovider = "my-box"\nid = "qwen3"\n')
    lines = run("models", "list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == [*EMBEDDED, "my-box:openai/gpt-4o", "my-box:qwen3"]
    assert "128,000 (genai-prices)" in lines[3]
    assert "40,960 (the server)" in lines[4]
    assert lines[4].endswith("= The Big One")
    [row] = rows(run("models", "list", "big one", "--json"))
    assert (row["name"], row["aliases"]) == ("my-box:qwen3", ["The Big One"])
    assert "40,960 tokens (the server)" in run("models", "show", "the big one").stdout


def test_a_name_of_the_users_own_works_with_the_option_the_setting_and_the_chat(
    run: Run, script: Script, home: Path
) -> None:
    home.mkdir()
    for name, text in (("One", "I am one."), ("Number Two", "I am two.")):
        id = script({"text": text}, {"text": text}).removeprefix("scripted:")
        with (home / "models.toml").open("a") as file:
            file.write(f'["{name}"]\nprovider = "scripted"\nid = "{id}"\n')
    assert run("ask", "-m", "number two", "Who?").stdout == "I am two.\n"
    assert run("config", "set", "model", "One").exit_code == 0
    assert run("ask", "Who?").stdout == "I am one.\n"
    assert "I am two." in run("chat", input="/model Number Two\nWho?\n").stdout
    assert "which has 'Number Two', 'One'" in failure(run("ask", "-m", "Number Three", "Who?"))


def test_pull_leaves_weights_that_are_here_alone(run: Run, home: Path) -> None:
    (there,) = named("smollm2").find() or []
    done = run("models", "pull", "tiny", "--json")
    assert json.loads(done.stdout) == {"model": "smollm2", "path": str(there.parent)}
    assert "already there" in done.stderr


def test_show_tells_the_error_of_estimates_and_the_replies_it_is_from(run: Run, script: Script) -> None:
    model = script({"text": "ok"}, exact=False)
    assert "calibrated" not in run("models", "show", model).stdout
    run("chat", "-m", model, input="one\ntwo\nthree\n")
    assert "from 3 reported requests, off by " in run("models", "show", model).stdout
    told = one(run("models", "show", model, "--json"))["calibration"]
    assert told["replies"] == 3
    assert told["error"] < 0.2
    assert ", learned from 3 replies" in " ".join(run("context", "show", "-m", model).stdout.split())


def test_use_makes_a_model_the_default_by_size_or_name(run: Run, home: Path, script: Script) -> None:
    assert one(run("models", "show", "--json"))["name"] == "embedded:qwen2.5-coder-1.5b"
    failure(run("models", "use", "nonsense"))
    failure(run("models", "pull", "huge"))
    assert not (home / "config.toml").exists()
    for wanted, model in (("small", "embedded:qwen2.5-coder-0.5b"), ("openai:gpt-4o", "openai:gpt-4o")):
        run("models", "use", wanted)
        assert one(run("models", "show", "--json"))["name"] == model
    model = script({"text": "Yes."})
    assert one(run("models", "show", "-m", model, "--json"))["name"] == model


def test_pull_takes_the_model_of_the_settings_and_the_embedder(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECTO_MODEL", "embedded:smollm2")
    monkeypatch.setenv("RECTO_SEARCH_EMBEDDER", "minilm")
    assert [line.split()[0] for line in run("models", "pull").stdout.splitlines()] == ["smollm2", "minilm"]
    monkeypatch.setenv("RECTO_MODEL", "openai:gpt-4o")
    assert [line.split()[0] for line in run("models", "pull").stdout.splitlines()] == ["minilm"]


def test_on_a_slow_platform_pull_takes_a_smaller_model_and_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recto.weights.weights_table.get_platform", lambda: "linux-aarch64")
    monkeypatch.setattr("recto.cli.models.pull", lambda weights, *_: Path(weights.name))
    done = run("models", "pull")
    assert done.stdout.splitlines()[0].startswith("qwen2.5-coder-0.5b is ready")
    assert "qwen2.5-coder-1.5b would be slow here (linux-aarch64)." in done.stderr
    assert one(run("models", "show", "--json"))["name"] == "embedded:qwen2.5-coder-0.5b"


def test_where_memory_is_short_pull_takes_a_smaller_model_and_says_so(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recto.weights.weights_table._free_memory_mb", lambda: 500)
    done = run("models", "pull")
    assert done.stdout.splitlines()[0].startswith("smollm2 is ready")
    assert "qwen2.5-coder-0.5b needs 1,000 MB of memory, and 500 are free" in done.stderr
    assert one(run("models", "show", "--json"))["name"] == "embedded:smollm2"
