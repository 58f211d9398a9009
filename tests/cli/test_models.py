import json
from pathlib import Path

from tests.cli.conftest import Run, failure, one, rows
from tests.conftest import Script

from recto.providers.embedded import find_weights


def test_the_embedded_model_comes_first(run: Run) -> None:
    found = rows(run("models", "list", "--json"))
    assert found[0]["name"] == "embedded:smollm2"
    assert len(found) > 100
    assert {"window", "window_from", "prices", "prices_from", "exact", "tokenizer"} <= found[0].keys()


def test_a_word_narrows_the_list(run: Run) -> None:
    lines = run("models", "list", "GPT-4o").stdout.splitlines()
    assert lines
    assert all("gpt-4o" in line for line in lines)
    assert any("128,000 (genai-prices)" in line and "$2.5 in, $10 out" in line for line in lines)


def test_show_says_where_each_number_is_from(run: Run, home: Path) -> None:
    home.mkdir()
    (home / "models.toml").write_text('["openai:gpt-4o"]\nwindow = 5000\n')
    shown = run("models", "show", "openai:gpt-4o").stdout
    assert "5,000 tokens (models.toml)" in shown
    assert "(genai-prices)" in shown
    assert "exact, with o200k_base" in shown
    assert "text, images, PDFs" in shown


def test_show_means_the_current_model(run: Run, script: Script) -> None:
    assert one(run("models", "show", "--json"))["name"] == "embedded:smollm2"
    model = script({"text": "Yes."})
    assert one(run("models", "show", "-m", model, "--json"))["name"] == model


def test_an_unknown_window_is_said(run: Run, script: Script, tmp_path: Path) -> None:
    (tmp_path / "endless.json").write_text('{"limit": null, "steps": [{"text": "Yes."}]}')
    assert "unknown (8,192 assumed)" in run("models", "show", "scripted:endless.json").stdout


def test_a_model_that_there_is_not_is_named(run: Run) -> None:
    told = json.loads(failure(run("models", "show", "embedded:gpt-9", "--json")))
    assert told["error"]["type"] == "NotFound"
    assert "nope" in failure(run("models", "show", "nope:x"))


def test_pull_leaves_weights_that_are_here_alone(run: Run, home: Path) -> None:
    there = find_weights(home)
    assert there is not None
    done = run("models", "pull", "--json")
    assert json.loads(done.stdout) == {"model": "embedded:smollm2", "path": str(there)}
    assert "already there" in done.stderr
