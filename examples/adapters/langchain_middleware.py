"""A middleware for LangChain's agents: before each request, the messages are made to fit the model's window.

    agent = create_agent("openai:gpt-4o", tools, middleware=[FitMessages("openai:gpt-4o", 8000)])

`fit_messages` is also a pre-model hook for LangGraph: `pre_model_hook=lambda state: {"llm_input_messages": …}`.
"""

from collections.abc import Callable, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AnyMessage, HumanMessage, convert_to_openai_messages

import recto


def fit_messages(messages: Sequence[AnyMessage], model: str, max_prompt_tokens: int) -> list[AnyMessage]:
    given: list[dict[str, Any]] = [convert_to_openai_messages(message) for message in messages]
    own = {id(each): message for each, message in zip(given, messages, strict=True)}
    fitted = recto.fit(given, model=model, max_prompt_tokens=max_prompt_tokens)
    results = {each["tool_call_id"]: own[id(each)] for each in fitted.shortened if each["role"] == "tool"}
    found: list[AnyMessage] = []
    for each in fitted.messages:
        if id(each) in own:
            found.append(own[id(each)])
        elif each["role"] == "tool":  # larger than the window: its beginning and end
            found.append(results[each["tool_call_id"]].model_copy(update={"content": each["content"]}))
        else:  # the summary, or a question that is larger than the window
            found.append(HumanMessage(each["content"]))
    return found


class FitMessages(AgentMiddleware):
    def __init__(self, model: str, max_prompt_tokens: int) -> None:
        super().__init__()
        self._model, self._most = model, max_prompt_tokens

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]) -> ModelResponse:
        return handler(request.override(messages=fit_messages(request.messages, self._model, self._most)))
