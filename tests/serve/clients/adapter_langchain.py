"""The same with the middleware for LangChain, or as a pre-model hook for LangGraph (the second argument)."""

import json
import sys
import warnings

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

sys.path.insert(0, sys.argv[1])
from langchain_middleware import FitMessages, fit_messages

warnings.simplefilter("ignore")
sizes, pairs = [], []


class Scripted(GenericFakeChatModel):
    def bind_tools(self, tools, **more):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **more):
        sizes.append(sum(len(str(message.content)) for message in messages))
        made = [call["id"] for message in messages for call in getattr(message, "tool_calls", ())]
        pairs.append(made == [message.tool_call_id for message in messages if message.type == "tool"])
        number = len(sizes)
        call = {"name": "read", "args": {"number": number}, "id": f"c{number}", "type": "tool_call"}
        reply = AIMessage("All of them are dry.") if number > 40 else AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=reply)])


@tool
def read(number: int) -> str:
    """Reads a log."""
    return f"log {number}: the pump of berth {number} is dry, nothing was found in it. " * 10


model = Scripted(messages=iter(()))
if sys.argv[2] == "middleware":
    agent = create_agent(model, [read], middleware=[FitMessages("openai:gpt-4o", 2000)])
else:
    from langgraph.prebuilt import create_react_agent

    def hook(state):
        return {"llm_input_messages": fit_messages(state["messages"], "openai:gpt-4o", 2000)}

    agent = create_react_agent(model, [read], pre_model_hook=hook)
asked = {"messages": [("user", "Read all logs, and tell which pumps are dry.")]}
done = agent.invoke(asked, {"recursion_limit": 500})
said = done["messages"][-1].content
print(json.dumps({"said": said, "largest": max(sizes), "paired": all(pairs), "requests": len(sizes)}))
