"""The facts about models: where each comes from, which wins, and what a models.toml may say."""

import json
from pathlib import Path
from typing import Any

import pytest

from recto.errors import Invalid, NotFound
from recto.providers.catalog import (
    CHECKS,
    SHIPPED,
    VOCABULARIES,
    ModelCatalog,
    has_fixed_temperature,
    read_facts,
)
from recto.providers.model import Model, Prices, vocabulary
from recto.weights import chat_models


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".recto").mkdir(parents=True)
    return tmp_path / "project"


def write(folder: Path, text: str) -> Path:
    path = folder / "models.toml"
    path.write_text(text)
    return path


def test_a_known_model_has_window_prices_and_longest_output_with_their_origins(home: Path) -> None:
    model = ModelCatalog(home, None).find("openai", "gpt-4o")
    assert (model.name, model.provider, model.id) == ("openai:gpt-4o", "openai", "gpt-4o")
    assert (model.window, model.window_from) == (128_000, "genai-prices")
    assert (model.max_output, model.max_output_from) == (16_384, "built in")
    assert model.prices_from == "genai-prices"
    assert model.prices is not None
    assert model.prices.input is not None
    assert model.prices.cache_read is not None
    assert model.prices.input > model.prices.cache_read > 0
    assert (model.tokenizer, model.exact, model.tools, model.control) == ("o200k_base", True, True, ())


@pytest.mark.parametrize(
    ("provider", "id"),
    [
        ("openai", "gpt-4o-2024-08-06"),
        ("anthropic", "claude-opus-4-1-20250805"),
        ("openrouter", "anthropic/claude-sonnet-4.5"),
        ("gemini", "gemini-2.5-flash"),
        ("xai", "grok-4-0709"),
        ("fireworks", "accounts/fireworks/models/llama-v3p1-8b-instruct"),
    ],
)
def test_dated_and_aliased_names_are_found(home: Path, provider: str, id: str) -> None:
    model = ModelCatalog(home, None).find(provider, id)
    assert model.window_from == model.prices_from == "genai-prices"
    assert model.id == id


@pytest.mark.parametrize(
    ("id", "window", "most"),
    [
        ("gpt-4o", 128_000, 16_384),
        ("openai/gpt-4o", 128_000, 16_384),
        ("azure/gpt-4o", 128_000, None),
        ("anthropic/claude-sonnet-4-5", 200_000, 64_000),
        ("litellm_proxy/claude-sonnet-4-5", 200_000, 64_000),
        ("bedrock/anthropic.claude-3-5-sonnet-20241022-v2:0", 200_000, None),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", 200_000, None),
        ("vertex_ai/gemini-2.5-pro", 1_048_576, 65_536),
        ("gemini/gemini-2.5-flash", 1_048_576, 65_536),
        ("groq/llama-3.3-70b-versatile", 131_072, 32_768),
    ],
)
def test_a_model_behind_a_gateway_is_recognised(home: Path, id: str, window: int, most: int | None) -> None:
    model = ModelCatalog(home, None).find("gateway", id)
    assert (model.name, model.id, model.window) == (f"gateway:{id}", id, window)
    assert model.window_from in ("genai-prices", "built in")
    assert model.prices_from == "genai-prices"
    if most:
        assert model.max_output == most


def test_a_model_gets_a_name_of_the_users_own(home: Path, project: Path) -> None:
    write(
        home,
        """["Claude Sonnet 4.5"]
provider = "Work"
id = "claude-sonnet-4-5"
window = 150000
["work:*"]
images = false
""",
    )
    write(project / ".recto", '["gpt-4o"]\nprovider = "elsewhere"\nid = "x"\nwindow = 9000\n')
    catalog = ModelCatalog(home, project)
    for name in ("Claude Sonnet 4.5", "claude  sonnet 4.5 "):
        assert catalog.full_name(name) == "work:claude-sonnet-4-5"
    model = catalog.find("work", "claude-sonnet-4-5")
    assert (model.window, model.window_from, model.images) == (150_000, "models.toml", False)
    assert catalog.aliases == {"Claude Sonnet 4.5": "work:claude-sonnet-4-5"}
    # a project does not decide who reads what the user writes
    assert catalog.full_name("gpt-4o") == "gpt-4o"
    assert catalog.find("elsewhere", "x").window == 9000


@pytest.mark.parametrize("name", ["Claude foo", "claude sonnet 4,5", "gpt 4o", "Gemini (work)", "clau\tde", "mödel"])
def test_a_name_that_no_model_id_can_be_goes_to_no_provider(home: Path, name: str) -> None:
    with pytest.raises(NotFound, match="write provider:model, or give a model this name"):
        ModelCatalog(home, None).full_name(name)
    write(home, '["Claude Sonnet 4.5"]\nprovider = "work"\nid = "x"\n')
    with pytest.raises(NotFound, match=r"there is no model .*which has 'Claude Sonnet 4\.5'"):
        ModelCatalog(home, None).full_name(name)


COUNTED = {
    ("o200k_base", 1.0, True): "openai:gpt-4o-mini openai:chatgpt-4o-latest openai:gpt-4.1-nano "
    "openai:ft:gpt-4o-mini-2024-07-18:me::x",
    ("o200k_base", 1.0, False): "openai:gpt-5-mini openai:gpt-6-sol openai:o1 openai:o4-mini groq:openai/gpt-oss-20b "
    "openrouter:openai/gpt-4o",
    ("cl100k_base", 1.0, True): "openai:gpt-4 openai:gpt-4-turbo-2024-04-09 openai:gpt-3.5-turbo",
    ("o200k_base", 1.3, False): "anthropic:claude-3-5-sonnet-20241022 anthropic:claude-opus-4-6 "
    "openrouter:anthropic/claude-sonnet-4.5",
    ("o200k_base", 1.8, False): "anthropic:claude-opus-4-7 anthropic:claude-sonnet-5 anthropic:claude-next",
    ("gemma4", 1.0, False): "gemini:gemini-2.5-pro ollama:gemma3:4b",
    ("llama3", 1.0, False): "ollama:llama3.2:3b groq:deepseek-r1-distill-llama-70b",
    ("deepseek_v3", 1.0, False): "deepseek:deepseek-chat",
    ("qwen3", 1.0, False): "together:Qwen/Qwen3-32B",
    ("mistral_v3", 1.0, False): "mistral:ministral-8b-latest mistral:open-mixtral-8x7b",
    ("o200k_base", 1.1, False): "xai:grok-4 ollama:phi4",
}


def found(name: str) -> Model:
    provider, _, id = name.partition(":")
    return ModelCatalog().find(provider, id)


@pytest.mark.parametrize(("expected", "names"), COUNTED.items())
def test_each_family_has_its_vocabulary(expected: tuple[str, float, bool], names: str) -> None:
    for name in names.split():
        model = found(name)
        assert (model.tokenizer, model.factor, model.exact) == expected, name


@pytest.mark.parametrize(
    ("fixed", "ids"),
    [
        (True, "o1 o3-mini o4-mini-2025-04-16 gpt-5 gpt-5-nano openai/gpt-5.2-chat gpt-5.5 ft:gpt-5-mini:me::x"),
        (True, "codex-mini-latest claude-opus-4-7 anthropic/claude-sonnet-5"),
        (False, "gpt-5-chat-latest gpt-4o gpt-4.1-mini openai/gpt-oss-120b claude-opus-4-6 claude-3-5-haiku-latest"),
        (False, "marco-o1 llama3.2:3b"),
    ],
)
def test_models_that_refuse_a_temperature_are_known_by_name(fixed: bool, ids: str) -> None:
    assert {id: has_fixed_temperature(id) for id in ids.split()} == dict.fromkeys(ids.split(), fixed)


def test_every_vocabulary_that_may_be_named_loads() -> None:
    assert all(vocabulary(name)("hello world") > 0 for name in VOCABULARIES if name != "server")
    vocabulary.cache_clear()  # all of them take 125 MB


def test_all_lists_models_to_talk_to_by_name_once(home: Path) -> None:
    write(home, '["work:house-model"]\nwindow = 32000\n["openai:gpt-*"]\ntools = false\n')
    models = {model.name: model for model in ModelCatalog(home, None).all()}
    assert {"embedded:smollm2", "openai:gpt-4o", "gemini:gemini-2.5-pro", "work:house-model"} <= set(models)
    assert models["work:house-model"].window == 32_000
    assert not models["openai:gpt-4o"].tools
    assert not any("embedding" in name or "whisper" in name or "*" in name for name in models)
    assert list(models) == sorted(models)


def test_the_project_wins_over_home_and_home_over_what_is_known(home: Path, project: Path) -> None:
    write(home, '["openai:gpt-4o"]\nwindow = 64000\nmax_output = 5\nprices.input = 1\n')
    write(project / ".recto", '["openai:gpt-4o"]\nwindow = 32000\nprices.output = 2.5\n')
    model = ModelCatalog(home, project).find("openai", "gpt-4o")
    assert (model.window, model.window_from) == (32_000, "models.toml")
    assert (model.max_output, model.max_output_from) == (5, "models.toml")
    assert model.prices is not None
    assert (model.prices.input, model.prices.output, model.prices_from) == (1.0, 10.0, "models.toml")
    assert model.prices.cache_read == 1.25
    assert ModelCatalog(home, None).find("openai", "gpt-4o").window == 64_000


def test_every_key_may_be_set(home: Path) -> None:
    facts: dict[str, Any] = {
        "max_output": 100, "max_tokens": 50, "temperature": 0.5, "fixed_temperature": True, "thinking_budget": 1024,
        "tokenizer": "qwen3", "factor": 1.25, "exact": False, "tools": False, "images": True, "files": True,
        "adaptive_thinking": True, "effort": True, "stop": False, "json_schema": False, "forced_tools": False,
        "strategy": "hybrid",
    }  # fmt: skip
    prices = "prices = { input = 1, output = 2, cache_read = 0.5, cache_write = 3 }\n"
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in facts.items())
    write(home, f'["work:m"]\nwindow = 0\ncontrol = ["<x>"]\n{lines}{prices}')
    model = ModelCatalog(home, None).find("work", "m")
    assert {name: getattr(model, name) for name in facts} == facts
    assert (model.window, model.window_from, model.control) == (None, "models.toml", ("<x>",))
    assert model.prices == Prices(1.0, 2.0, 0.5, 3.0)


TAKEN = {
    "images files": "openai:gpt-4o-mini openai:gpt-5.6-sol openai:gpt-6-astra openai:o4-mini anthropic:claude-opus-4-8 "
    "openrouter:anthropic/claude-sonnet-5",
    "images": "anthropic:claude-3-haiku gemini:gemini-3.8-flash xai:grok-4.7 mistral:pixtral-large "
    "lmstudio:qwen2.5-vl-7b-instruct",
    "": "openai:o3-mini openai:gpt-4 openai:gpt-3.5-turbo openai:gpt-oss-120b anthropic:claude-2 xai:grok-3 "
    "mistral:codestral-2508 deepseek:deepseek-chat ollama:gemma-3-27b llamacpp:anything embedded:smollm2",
}
ASKED = {
    "openai:gpt-4o": "stop json_schema forced_tools",
    "openai:gpt-4": "stop forced_tools",
    "openai:gpt-5.4": "effort json_schema forced_tools",
    "anthropic:claude-3-5-haiku-latest": "stop forced_tools",
    "anthropic:claude-sonnet-4-5": "stop json_schema forced_tools",
    "anthropic:claude-opus-4-5": "stop json_schema forced_tools effort",
    "anthropic:claude-opus-4-7": "stop json_schema forced_tools effort adaptive_thinking",
    "anthropic:claude-opus-5-5": "stop json_schema effort adaptive_thinking",
    "vllm:anything": "stop json_schema forced_tools",
}


def abilities(name: str, *of: str) -> set[str]:
    model = found(name)
    return {ability for ability in of if getattr(model, ability)}


def test_what_a_model_takes_is_told_by_its_name() -> None:
    for taken, names in TAKEN.items():
        for name in names.split():
            assert abilities(name, "images", "files") == set(taken.split()), name
    for name, taken in ASKED.items():
        asked = abilities(name, "effort", "stop", "json_schema", "forced_tools", "adaptive_thinking")
        assert asked == set(taken.split()), name


def test_every_key_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "models.md").read_text()
    assert [key for key in CHECKS if f"| `{key}` |" not in text] == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("window = 3", ["window", "not a table", '["provider:model"]']),
        ('[":x"]\nwindow = 3000', [":x", '["provider:model"]']),
        ('["a:b"]\ncontext = 3', ["context", "a:b", "unknown field"]),
        ('["My Model"]\nprovider = "work"\nid = 7\n', ["provider and id"]),
        ('["a:b"]\nwindow = 4096.5', ["window", "`int`"]),
        ('["a:b"]\nmax_tokens = 0', ["max_tokens", ">= 1"]),
        ('["a:b"]\ntokenizer = "gpt2"', ["tokenizer", "gpt2"]),
        ('["a:b"]\nexact = 1', ["exact", "`bool`"]),
        ('["a:b"]\nstrategy = "forget"', ["strategy", "one of discard, summarize, hybrid", "'forget'"]),
        ('["a:b"]\nprices.input = -3', ["prices", ">= 0"]),
    ],
)
def test_a_wrong_fact_is_named_with_its_file_and_what_is_allowed(home: Path, text: str, parts: list[str]) -> None:
    path = write(home, text + '\n["c:d"]\nwindow = 5000\n')
    catalog = ModelCatalog(home, None)
    [problem] = catalog.problems
    for part in (str(path), *parts, "The entry is ignored."):
        assert part in problem
    assert "\n" not in problem
    assert catalog.find("c", "d").window == 5000, "the others count"


def test_a_changed_file_is_read_again(home: Path) -> None:
    catalog = ModelCatalog(home, None)
    assert catalog.find("a", "b").window is None
    write(home, '["a:b"]\nwindow = 5000\n')
    assert catalog.find("a", "b").window == 5000
    (home / "models.toml").unlink()
    assert catalog.find("a", "b").window is None


def test_the_shipped_table_is_valid_and_uses_allowed_keys_only() -> None:
    tables = read_facts(SHIPPED, "built in").tables
    assert all(set(table) <= set(CHECKS) for table in tables.values())
    # no file of a project may give a model instructions
    assert all(set(each.facts) <= {*CHECKS, "system_prompt"} for each in chat_models())


def test_a_broken_file_is_named_with_its_line(home: Path, project: Path) -> None:
    path = write(project / ".recto", '["a:b"]\nwindow = 3000\ntools = = true\n')
    with pytest.raises(Invalid, match="line 3") as caught:
        ModelCatalog(home, project).find("a", "b")
    assert str(path) in caught.value.message
