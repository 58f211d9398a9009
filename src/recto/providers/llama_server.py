"""LlamaServer: asks a llama.cpp server for its properties, for rendered templates and for tokens."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recto.errors import Unreachable
from recto.providers.local_server import PROBE_S, LocalServer
from recto.providers.template import TemplateMessage

BATCH_TEXTS = 500
BATCH_CHARACTERS = 1_000_000
# No token has this number, and the server returns numbers among the texts unchanged.
SEPARATOR = -1
MARKER = re.compile(r"<[^<>\s'\"{}]{1,40}>|\[/?[A-Z_]{2,30}\]")


@dataclass(frozen=True, slots=True)
class Props:
    """The properties that a server reports."""

    window: int | None
    template: str
    model: str
    """The file name of the weights."""
    tools: bool
    images: bool
    markers: tuple[str, ...]
    """Texts of the template that look like control tokens, and the tokens at the start and end of a text."""


class LlamaServer(LocalServer):
    async def props(self) -> Props | None:
        """None for a server that is not llama.cpp. Raises Unreachable where no server answers."""
        status, answer = await self.ask("GET", "/props", timeout_s=PROBE_S)
        if status != 200 or not isinstance(answer, dict):
            return None
        return _read_props(answer)

    async def render(self, messages: Sequence[TemplateMessage], reply: bool) -> str | None:
        """The conversation rendered by the chat template; None where the template refuses it."""
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
    window, template, path = settings.get("n_ctx"), answer.get("chat_template"), answer.get("model_path")
    template = template if isinstance(template, str) else ""
    caps = answer.get("chat_template_caps")
    takes = answer.get("modalities")
    ends = [token for name in ("bos_token", "eos_token") if isinstance(token := answer.get(name), str) and token]
    return Props(
        window=window if type(window) is int and window > 0 else None,
        template=template,
        model=re.split(r"[/\\]", path)[-1] if isinstance(path, str) else "",
        tools=not isinstance(caps, dict) or caps.get("supports_tools") is not False,
        images=isinstance(takes, dict) and takes.get("vision") is True,
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
