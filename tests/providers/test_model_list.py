"""What servers tell about the models they offer, in each one's own words."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.providers.conftest import Answer, Loopback

from recto.providers import remote
from recto.providers.model import Model
from recto.providers.registry import open_provider
from recto.providers.remote import ListedModel, read_model_list
from recto.wire import Json

NOWHERE = Path("/nonexistent")
VLLM = {"object": "list", "data": [{"id": "Qwen/Qwen3-8B", "object": "model", "max_model_len": 40_960, "root": "/w"}]}
LLAMA = {"object": "list", "data": [{"id": "m.gguf", "meta": {"n_ctx_train": 131_072, "n_params": 8_000_000_000}}]}
OPENROUTER = {"data": [{"id": "m", "context_length": 65_536, "top_provider": {"max_completion_tokens": 8192}}]}
LM_STUDIO = {"data": [{"id": "m", "state": "loaded", "max_context_length": 131_072, "loaded_context_length": 8192}]}
UNLOADED = {"data": [{"id": "m", "state": "not-loaded", "max_context_length": 131_072}]}
LITELLM = {"data": [{"model_name": "m", "model_info": {"max_input_tokens": 200_000, "max_output_tokens": 64_000}},
                    {"model_name": "m", "model_info": {"max_input_tokens": 128_000}}]}  # fmt: skip
COPILOT = {"data": [{"id": "m", "capabilities": {"limits": {"max_context_window_tokens": 64_000}}}]}
IDS = {"object": "list", "data": [{"id": "m", "object": "model"}]}


@pytest.mark.parametrize(
    ("answer", "listed"),
    [
        (VLLM, ListedModel("Qwen/Qwen3-8B", 40_960)),
        (LLAMA, ListedModel("m.gguf", 131_072)),
        (OPENROUTER, ListedModel("m", 65_536, 8192)),
        (LM_STUDIO, ListedModel("m", 8192)),
        (UNLOADED, ListedModel("m", 131_072, is_loaded=False)),
        ({"data": [{"id": "m", "context_window": 32_768}]}, ListedModel("m", 32_768)),
        ({"data": [{"id": "m", "max_context_length": 32_768.0}]}, ListedModel("m", 32_768)),
        ([{"id": "m", "context_length": 32_768}], ListedModel("m", 32_768)),
        ({"data": [{"id": "m", "max_input_tokens": 1_000_000, "type": "model"}]}, ListedModel("m", 1_000_000)),
        (COPILOT, ListedModel("m", 64_000)),
        (IDS, ListedModel("m")),
        ({"data": [{"id": "m", "max_model_len": "many", "context_length": -1, "n_ctx": 0}]}, ListedModel("m")),
    ],
)
def test_each_server_tells_its_window_in_its_own_words(answer: Json, listed: ListedModel) -> None:
    assert read_model_list(answer) == [listed]


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["data", "models", "id", "meta", "n_ctx", "max_model_len"]), inner)
    ),
)


@given(JSON)
def test_no_list_is_so_odd_that_it_cannot_be_read(answer: Json) -> None:
    assert all(isinstance(model.id, str) for model in read_model_list(answer))


def asked(
    name: str, routes: dict[str, list[Answer]], times: int = 1, **environment: str
) -> tuple[list[Model], list[str]]:
    """The model as a provider at a loopback server knows it, each time it is asked for, and what the server saw."""

    async def act() -> tuple[list[Model], list[str]]:
        async with Loopback(routes=routes) as server:
            variables = {"RECTO_BOX_BASE_URL": server.url, "BOX_API_KEY": "sk-box-12345", **environment}
            provider = open_provider("box", home=NOWHERE, project=None, environment=variables)
            try:
                models = [await provider.model(name) for _ in range(times)]
            finally:
                await provider.close()
            assert all("sk-box-12345" in "".join(each.headers.values()) for each in server.received)
            return models, [each.target for each in server.received]

    return asyncio.run(act())


@pytest.mark.parametrize(
    ("routes", "window"),
    [
        ({"/v1/models": VLLM}, 40_960),
        ({"/v1/models": {"data": [{"id": "qwen3-8b", "max_model_len": 512}]}}, 512),
        ({"/v1/models": {"data": [{"id": "qwen/qwen3-8b"}]}, "/model/info": LITELLM}, None),
        ({"/v1/models": {"data": []}}, None),
        ({"/v1/models": ["what?"]}, None),
        ({}, None),
    ],
)
def test_a_server_of_the_users_own_is_asked_for_the_window(routes: dict[str, Json], window: int | None) -> None:
    [model], _ = asked("box:Qwen/Qwen3-8B", {path: [Loopback.whole(answer)] for path, answer in routes.items()})
    assert (model.window, model.window_from) == (window, "the server" if window else "unknown")


@pytest.mark.parametrize(
    ("path", "answer", "window", "most"),
    [("/model/info", LITELLM, 128_000, None), ("/api/v0/models", LM_STUDIO, 8192, None)],
)
def test_where_the_list_tells_names_alone_the_servers_own_page_is_asked_once(
    path: str, answer: Json, window: int, most: int | None
) -> None:
    routes = {"/v1/models": [Loopback.whole(IDS)], path: [Loopback.whole(answer)]}
    models, targets = asked("box:m", routes, times=3)
    assert {(model.window, model.window_from, model.max_output) for model in models} == {(window, "the server", most)}
    assert len(targets) == len(set(targets))


def test_a_model_that_is_loaded_on_demand_is_asked_for_again_until_it_is_loaded() -> None:
    routes = {"/api/v0/models": [*[Loopback.whole(UNLOADED)] * 2, Loopback.whole(LM_STUDIO)]}
    models, targets = asked("box:m", routes, times=5)
    assert [model.window for model in models] == [131_072, 131_072, 8192, 8192, 8192]
    assert targets.count("/api/v0/models") == 3


def test_a_list_that_fails_for_now_is_asked_again() -> None:
    models, targets = asked(
        "box:Qwen/Qwen3-8B", {"/v1/models": [Loopback.error(502, {}), Loopback.whole(VLLM)]}, times=3
    )
    assert [model.window for model in models] == [None, 40_960, 40_960]
    assert targets.count("/v1/models") == 2


@pytest.mark.parametrize(
    "odd",
    [
        Loopback.nothing("hanging"),
        Loopback.nothing("aborted"),
        Loopback.page(200, "<html>Log in first</html>"),
        Answer(200, {"content-type": "application/json"}, (b'{"data": [',), "aborted"),
        Answer(302, {"location": "/elsewhere"}),
        replace(Loopback.stream(), again=b": still here\n\n"),
        Loopback.error(401, {"error": "who are you?"}),
    ],
    ids=["hangs", "aborts", "page", "half", "redirect", "drips", "refuses"],
)
def test_a_list_that_cannot_be_had_leaves_the_tables(odd: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "PROBE_S", 0.3)
    [model], _ = asked("box:gpt-4o", {"/v1/models": [odd], "/props": [Loopback.error(404, {})]})
    assert (model.window, model.window_from) == (128_000, "genai-prices")
