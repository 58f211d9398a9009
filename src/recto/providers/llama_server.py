"""LlamaServer: asks a llama.cpp server for what it knows of itself, for its template's text and for its tokens."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recto.errors import Unreachable
from recto.providers.near import PROBE_S, NearServer
from recto.providers.template import Said

BATCH_TEXTS = 500
BATCH_CHARACTERS = 1_000_000
# No token has this number, and the server hands numbers among the texts back as they are.
SEPARATOR = -1
MARKER = re.compile(r"<[^<>\s'\"{}]{1,40}>|\[/?[A-Z_]{2,30}\]")


@dataclass(frozen=True, slots=True)
class Props:
    """What a server says of itself."""

    window: int | None
    template: str
    model: str
    """The file name of the weights."""
    tools: bool
    markers: tuple[str, ...]
    """Texts of the template that look like control tokens, and the tokens that begin and end a text."""


class LlamaServer(NearServer):
    async def props(self) -> Props | None:
        """None for a server of another kind. Raises Unreachable where there is none."""
        status, answer = await self.ask("GET", "/props", timeout_s=PROBE_S)
        if status != 200 or not isinstance(answer, dict):
            return None
        return _read_props(answer)

    async def render(self, said: Sequence[Said], reply: bool) -> str | None:
        """What the chat template makes of a conversation; None where it refuses."""
        messages = [{"role": role, "content": content} for role, content in said]
        body = {"messages": messages, "add_generation_prompt": reply}
        status, answer = await self.ask("POST", "/apply-template", body)
        prompt = answer.get("prompt") if status == 200 and isinstance(answer, dict) else None
        return prompt if isinstance(prompt, str) else None

    async def tokens(self, content: str | list[str | int], *, whole: bool = False) -> list[int]:
        """Control texts are read as the tokens they are; `whole` adds those of every prompt, such as a first one."""
        body = {"content": content, "add_special": whole, "parse_special": True}
        status, answer = await self.ask("POST", "/tokenize", body)
        tokens = answer.get("tokens") if status == 200 and isinstance(answer, dict) else None
        if not isinstance(tokens, list):
            raise Unreachable(f"The llama.cpp server at {self.root} cannot count tokens (status {status}).")
        return tokens

    async def counts(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text by itself, many of them in one call."""
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
    ends = [token for name in ("bos_token", "eos_token") if isinstance(token := answer.get(name), str) and token]
    return Props(
        window=window if type(window) is int and window > 0 else None,
        template=template,
        model=re.split(r"[/\\]", path)[-1] if isinstance(path, str) else "",
        tools=not isinstance(caps, dict) or caps.get("supports_tools") is not False,
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
