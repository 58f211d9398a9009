"""Model servers on this machine or in its network, queried with short JSON requests.

LlamaServer: asks a llama.cpp server for its properties, for rendered templates and for tokens.

OllamaProvider: uses Ollama through the OpenAI format, and asks its own API how much of a prompt it reads.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from recto.errors import NotFound, Unreachable
from recto.providers.model import Model
from recto.providers.openai import OpenAIProvider
from recto.providers.remote import PROBE_S, json_or_none
from recto.wire import Json, dumpb

if TYPE_CHECKING:
    from httpx2 import AsyncClient

ANSWER_S = 60.0


class LocalServer:
    def __init__(self, root: str, key: str | None = None) -> None:
        """`root` is the address without the /v1 of the OpenAI format."""
        self.root = root.rstrip("/")
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncClient] = WeakKeyDictionary()

    async def ask(self, method: str, path: str, body: Json = None, timeout_s: float = ANSWER_S) -> tuple[int, Json]:
        """The status and the answer, which is None if it is not JSON. Raises Unreachable."""
        import httpx2  # slow, and only to ask

        content = None if body is None else dumpb(body)
        try:
            try:
                response = await self._client().request(method, path, content=content, timeout=timeout_s)
            except (httpx2.NetworkError, httpx2.RemoteProtocolError) as why:
                if isinstance(why, httpx2.ConnectError):
                    raise
                # the server had dropped an idle connection: a new one works
                response = await self._client().request(method, path, content=content, timeout=timeout_s)
        except (httpx2.HTTPError, httpx2.InvalidURL) as why:
            raise Unreachable(f"The server at {self.root} cannot be reached; check that it runs.") from why
        return response.status_code, json_or_none(response.content)

    async def close(self) -> None:
        if client := self._clients.pop(asyncio.get_running_loop(), None):
            await client.aclose()

    def _client(self) -> "AsyncClient":
        import httpx2  # slow, and only to ask

        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            headers = {"content-type": "application/json", **self._headers}
            # no proxy for a server in our network; and without TLS there is nothing to verify
            secure = self.root.startswith("https:")
            client = httpx2.AsyncClient(base_url=self.root, headers=headers, trust_env=False, verify=secure)
            self._clients[loop] = client
        return self._clients[loop]


# -- llama.cpp

TemplateMessage = tuple[str, str]
"""A role and its text."""
BATCH_TEXTS = 500
BATCH_CHARACTERS = 1_000_000
# No token has this number, and the server returns numbers among the texts unchanged.
SEPARATOR = -1
MARKER = re.compile(r"<[^<>\s'\"{}]{1,40}>|\[/?[A-Z_]{2,30}\]")


class Props(Struct, frozen=True):
    window: int | None
    template: str
    model: str
    """The file name of the weights."""
    tools: bool
    images: bool
    one_slot: bool
    markers: tuple[str, ...]
    """Texts of the template that look like control tokens, and the tokens at the start and end of a text."""


class LlamaServer(LocalServer):
    async def props(self) -> Props | None:
        """None for a server that is not llama.cpp. Raises Unreachable if there is no answer, or while it loads."""
        status, answer = await self.ask("GET", "/props", timeout_s=PROBE_S)
        if status >= 500 or status == 429:
            raise Unreachable(f"The server at {self.root} is not ready (status {status}).")
        return _read_props(answer) if status == 200 and isinstance(answer, dict) else None

    async def render(self, messages: Sequence[TemplateMessage], reply: bool) -> str | None:
        """The conversation rendered by the chat template; None if the template rejects it."""
        items = [{"role": role, "content": content} for role, content in messages]
        body = {"messages": items, "add_generation_prompt": reply}
        status, answer = await self.ask("POST", "/apply-template", body)
        prompt = answer.get("prompt") if status == 200 and isinstance(answer, dict) else None
        return prompt if isinstance(prompt, str) else None

    async def tokens(self, content: str | list[str | int], *, whole: bool = False) -> list[int]:
        """The tokens of a text, control texts included; `whole` adds tokens of every prompt, such as the first one."""
        body = {"content": content, "add_special": whole, "parse_special": True}
        status, answer = await self.ask("POST", "/tokenize", body)
        tokens = answer.get("tokens") if status == 200 and isinstance(answer, dict) else None
        if not isinstance(tokens, list):
            raise Unreachable(f"The llama.cpp server at {self.root} cannot count tokens (status {status}).")
        return tokens

    async def counts(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text, many texts in one call."""
        return [number for batch in _batches(texts) for number in await self._counts(batch)]

    async def control(self, props: Props) -> tuple[str, ...]:
        """The markers that the tokenizer reads as a single token."""
        counts = await self.counts(props.markers)
        return tuple(marker for marker, tokens in zip(props.markers, counts, strict=True) if tokens == 1)

    async def _counts(self, batch: Sequence[str]) -> list[int]:
        runs = [0]
        for token in await self.tokens([part for text in batch for part in (text, SEPARATOR)]):
            runs[-1] += token != SEPARATOR
            if token == SEPARATOR:
                runs.append(0)
        if len(runs) == len(batch) + 1:
            return runs[:-1]
        return [len(await self.tokens(text)) for text in batch]


def _read_props(answer: Mapping[str, Any]) -> Props | None:
    settings = answer.get("default_generation_settings")
    if not isinstance(settings, dict):
        return None
    texts = {name: value for name, value in answer.items() if isinstance(value, str)}
    template = texts.get("chat_template", "")
    caps, takes = answer.get("chat_template_caps"), answer.get("modalities")
    ends = [texts[name] for name in ("bos_token", "eos_token") if texts.get(name)]
    return Props(
        window=_whole(settings.get("n_ctx")),
        template=template,
        model=texts.get("model_path", "").replace("\\", "/").rsplit("/", 1)[-1],
        tools=not isinstance(caps, dict) or caps.get("supports_tools") is not False,
        images=isinstance(takes, dict) and takes.get("vision") is True,
        one_slot=answer.get("total_slots") == 1,
        markers=tuple(dict.fromkeys((*ends, *MARKER.findall(template)))),
    )


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) >= BATCH_TEXTS or size + len(text) > BATCH_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


# -- Ollama

# The part of a prompt that Ollama reads by default. It silently cuts off the rest, whatever the model could read; so no
# larger window is assumed before the model runs.
DEFAULT_WINDOW = 4096


class OllamaProvider(OpenAIProvider):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._server = LocalServer(self.base_url.removesuffix("/v1"), self._key)

    async def model(self, name: str) -> Model:
        model = self.known(name)
        try:
            status, shown = await self._server.ask("POST", "/api/show", {"model": model.id}, PROBE_S)
            running = (await self._server.ask("GET", "/api/ps", timeout_s=PROBE_S))[1]
        except Unreachable:
            return model
        if status == 404 and isinstance(shown, dict) and "error" in shown:
            raise NotFound(f"Ollama has no model {model.id}; run `ollama pull {model.id}`.", model=model.name)
        return _with_reported(model, shown, running) if isinstance(shown, dict) else model

    async def offered(self) -> list[Model]:
        return list(await asyncio.gather(*(self.model(model.name) for model in await super().offered())))

    async def close(self) -> None:
        await super().close()
        await self._server.close()


def _with_reported(model: Model, shown: Json, running: Json) -> Model:
    abilities = shown.get("capabilities")
    if isinstance(abilities, list):
        model = replace(model, tools=model.tools and "tools" in abilities, images=model.images or "vision" in abilities)
    if model.window_from == "models.toml":
        return model
    if window := _running_window(running, model.id) or _set_window(shown.get("parameters")):
        return replace(model, window=window, window_from="the server")
    facts = shown.get("model_info")
    trained = (value for name, value in facts.items() if name.endswith(".context_length")) if _is_table(facts) else ()
    window = _whole(next(iter(trained), None)) or DEFAULT_WINDOW
    return replace(model, window=min(window, DEFAULT_WINDOW), window_from="built in")


def _running_window(running: Json, id: str) -> int | None:
    models = running.get("models") if _is_table(running) else None
    for model in models if isinstance(models, list) else ():
        if _is_table(model) and model.get("name") in (id, f"{id}:latest"):
            return _whole(model.get("context_length"))
    return None


def _set_window(parameters: Json) -> int | None:
    """`num_ctx` of the model's own file, which Ollama returns as lines of text."""
    lines = map(str.split, parameters.splitlines() if isinstance(parameters, str) else ())
    counts = (line[1] for line in lines if line[:1] == ["num_ctx"] and len(line) == 2)
    return next((int(count) for count in counts if count.isdecimal() and len(count) < 10), None) or None


def _is_table(value: Json) -> bool:
    return isinstance(value, dict)


def _whole(value: Json) -> int | None:
    return value if type(value) is int and value > 0 else None
