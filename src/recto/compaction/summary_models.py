"""Which models write a summary: the one of the settings, the conversation's own, or a function of the caller's."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from msgspec.structs import replace

from recto.errors import ProviderError, RectoError, Unreachable
from recto.providers.model import Done, Model, ReplyPart, TextPart
from recto.turn.builder import TurnBuilder
from recto.turn.context import CallOptions, Summarizer, TurnContext
from recto.window.count import TokenCounter
from recto.window.request import Format, Purpose
from recto.wire import loads

Writers = tuple[list[TurnContext], list[str]]
"""In the order in which they are asked, and why others are not."""


async def summary_models(
    builder: TurnBuilder, context: TurnContext, options: CallOptions, chosen: Mapping[str, Any]
) -> Writers:
    """The summary model, if one is set and available, then the conversation's own model, if it can summarise. Where
    the caller sends the requests, only its own function is asked."""
    if options.summarizer is not None:
        provider = CallerSummarizer(options.summarizer, context)
        return [replace(context, resolved=replace(context.resolved, provider=provider))], []
    if not options.may_send:
        return [], []
    name = context.settings.summary_model
    own = [context] if context.model.summarizes or name == context.model.name else []
    notes = [] if own else [f"{context.model.name} is too small a model to write summaries"]
    if not name or name == context.model.name:
        return own, notes
    try:
        return [await builder.bare(name, chosen), *own], []
    except RectoError as why:
        return own, [f"{name} cannot write summaries: {why.message}", *notes]


class CallerSummarizer:
    """A provider whose replies come from a function: it gets the messages of the request, and gives the summary."""

    def __init__(self, summarizer: Summarizer, context: TurnContext) -> None:
        self.name, self.format = "caller", context.token_cache.format
        self._summarizer, self._provider = summarizer, context.provider

    format: Format

    async def model(self, name: str) -> Model:
        return await self._provider.model(name)

    async def counter(self, model: Model) -> TokenCounter:
        return await self._provider.counter(model)

    async def stream(self, body: bytes, purpose: Purpose) -> AsyncGenerator[ReplyPart, None]:
        try:
            text = await self._summarizer(loads(body)["messages"])
        except ProviderError:
            raise
        except Exception as why:  # the caller's function may fail in any way: sentences are chosen instead
            raise Unreachable(f"the summarizer failed: {type(why).__name__}: {why}") from why
        if not isinstance(text, str):
            raise Unreachable(f"the summarizer gave no text but {type(text).__name__}")
        yield TextPart(text)
        yield Done("stop")

    async def close(self) -> None:
        return None
