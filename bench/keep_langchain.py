"""How LangChain and langmem keep to a window: each keeper is told messages, and says what would be sent next.

Runs with the peers' Python. Every summary is the same fixed text, given at once; what it was asked for is remembered.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any
from uuid import uuid4

# the peers' packages are not in the environment that checks types
from langchain.agents.middleware import (  # type: ignore[import-not-found]
    ClearToolUsesEdit,
    SummarizationMiddleware,
)
from langchain_core.language_models import BaseChatModel  # type: ignore[import-not-found]
from langchain_core.messages import (  # type: ignore[import-not-found]
    AIMessage,
    SystemMessage,
    convert_to_messages,
    trim_messages,
)
from langchain_core.messages.utils import (  # type: ignore[import-not-found]
    convert_to_openai_messages,
    count_tokens_approximately,
)
from langchain_core.outputs import ChatGeneration, ChatResult  # type: ignore[import-not-found]
from langmem.short_term import summarize_messages  # type: ignore[import-not-found]

from bench.wire import FRAME, Limits, Wire, numbered, tokens, weight

Native = Any
Counter = Callable[[Iterable[Native]], int]
# What langmem sets aside for a summary unless told otherwise.
LANGMEM_SUMMARY = 256


def native(message: Wire) -> Native:
    [made] = convert_to_messages([message])
    made.id = str(uuid4())
    return made


def wired(messages: Sequence[Native]) -> list[Wire]:
    found = convert_to_openai_messages(list(messages))
    return [dict(message) for message in found]


def exact(messages: Iterable[Native]) -> int:
    """By the rule that the bench judges with."""
    return sum(_weight(message) for message in messages)


def _weight(message: Native) -> int:
    """Without making wire messages first, which would cost far more than counting."""
    if not isinstance(message.content, str):
        return sum(map(weight, wired([message])))
    calls = getattr(message, "tool_calls", ())
    return _tokens(message.content) + (sum(map(_call_tokens, calls)) if calls else 0) + _id_tokens(message)


def _tokens(text: str) -> int:
    return FRAME + 1 + tokens(text)  # every role is one token


def _call_tokens(call: Native) -> int:
    return tokens(call["id"]) + tokens(call["name"]) + tokens(json.dumps(call["args"]))


def _id_tokens(message: Native) -> int:
    return tokens(message.tool_call_id) if message.type == "tool" else 0


class FixedSummary(BaseChatModel):  # type: ignore[misc]
    """A chat model that always says the same, with a number before: no summary is the beginning of another request."""

    text: str
    asked: list[list[Wire]]

    @property
    def _llm_type(self) -> str:
        return "fixed"

    def _generate(self, messages: list[Native], *args: Any, **named: Any) -> Native:
        self.asked.append(wired(messages))
        said = AIMessage(numbered(self.text, len(self.asked)))
        return ChatResult(generations=[ChatGeneration(message=said)])


class Keeper:
    """Holds the messages as its library would; `next` gives what would be sent now and keeps what became of them."""

    def __init__(self, limits: Limits, counter: Counter, summary: str) -> None:
        self.limits, self.counter = limits, counter
        self.model = FixedSummary(text=summary, asked=[])
        self.system: list[Native] = []
        self.messages: list[Native] = []

    @property
    def asked(self) -> list[list[Wire]]:
        """The requests for summaries so far."""
        return self.model.asked

    def say(self, message: Wire) -> None:
        made = native(message)
        (self.system if isinstance(made, SystemMessage) else self.messages).append(made)

    def next(self) -> list[Native]:
        return self.system + self.messages


class Trim(Keeper):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args)
        self._trim = partial(trim_messages, strategy="last", **options)

    def next(self) -> list[Native]:
        given = self.system + self.messages
        trimmed: list[Native] = self._trim(given, max_tokens=self.limits.most, token_counter=self.counter)
        return trimmed


class Summarize(Keeper):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args)
        self._middleware = SummarizationMiddleware(
            self.model,
            trigger=("tokens", self.limits.trigger),
            keep=("tokens", self.limits.keep),
            token_counter=self.counter,
            **options,
        )

    def next(self) -> list[Native]:
        """The graph replaces its messages by what the middleware gives, behind the first, which removes the old."""
        if update := self._middleware.before_model({"messages": self.messages}, None):
            self.messages = update["messages"][1:]
        return self.system + self.messages


class Edit(Keeper):
    """ContextEditingMiddleware's own edit; the middleware only copies the messages before."""

    def next(self) -> list[Native]:
        edited = list(self.messages)
        ClearToolUsesEdit(trigger=self.limits.trigger).apply(edited, count_tokens=self.counter)
        return self.system + edited


class Langmem(Keeper):
    def __init__(self, limits: Limits, counter: Counter, summary: str) -> None:
        super().__init__(limits, counter, summary)
        self._running: Any = None

    def next(self) -> list[Native]:
        result = summarize_messages(
            self.system + self.messages,
            running_summary=self._running,
            model=self.model,
            max_tokens=self.limits.most,
            max_summary_tokens=LANGMEM_SUMMARY,
            token_counter=self.counter,
        )
        self._running = result.running_summary
        messages: list[Native] = result.messages
        return messages


COUNTERS: dict[str, Counter] = {"approximate": count_tokens_approximately, "exact": exact}
KEEPERS: dict[str, Callable[[Limits, Counter, str], Keeper]] = {
    "trim_messages, bare": Trim,
    # as its documentation recommends for chats with tools
    "trim_messages": partial(Trim, start_on="human", include_system=True),
    # of a run that answers one message, which goes: it begins with a call, never with a result
    "trim_messages, agent": partial(Trim, start_on=("human", "ai"), include_system=True),
    # its model is shown the last 4,000 tokens of what goes, unless told otherwise
    "SummarizationMiddleware": Summarize,
    "SummarizationMiddleware, full input": partial(Summarize, trim_tokens_to_summarize=None),
    "ContextEditingMiddleware": Edit,
    "langmem": Langmem,
}


def keeper(name: str, how: str, limits: Limits, summary: str) -> Keeper:
    return KEEPERS[name](limits, COUNTERS[how], summary)
