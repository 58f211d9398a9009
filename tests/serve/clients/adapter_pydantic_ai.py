"""An agent of pydantic-ai reads forty logs with the history processor of the examples. Prints what it sent."""

import json
import sys

from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

sys.path.insert(0, sys.argv[1])
from pydantic_ai_history import fit_history

sizes, pairs, calls = [], [], 0


def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    global calls
    calls += 1
    parts = [part for message in messages for part in message.parts]
    sizes.append(sum(len(str(getattr(part, "content", ""))) for part in parts))
    made = [part.tool_call_id for part in parts if isinstance(part, ToolCallPart)]
    pairs.append(made == [part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)])
    if calls > 40:
        return ModelResponse(parts=[TextPart("All of them are dry.")])
    return ModelResponse(parts=[ToolCallPart("read", {"number": calls}, tool_call_id=f"c{calls}")])


agent = Agent(FunctionModel(answer), capabilities=[ProcessHistory(fit_history("openai:gpt-4o", 2000))])


@agent.tool_plain
def read(number: int) -> str:
    """Reads a log."""
    return f"log {number}: the pump of berth {number} is dry, nothing was found in it. " * 10


done = agent.run_sync("Read all logs, and tell which pumps are dry.")
print(json.dumps({"said": done.output, "largest": max(sizes), "paired": all(pairs), "requests": len(sizes)}))
