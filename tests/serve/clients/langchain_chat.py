"""The same with LangChain's ChatOpenAI, without a refusal."""

import json
import sys

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

url, name = sys.argv[1:]
model = ChatOpenAI(base_url=f"{url}/v1", api_key="none", model=name, include_response_headers=True)


@tool
def read() -> str:
    """Reads the log."""
    return "dry"


messages = [HumanMessage("How long is she?")]
first = model.invoke(messages)
told = "".join(chunk.text for chunk in model.stream([*messages, first, HumanMessage("How wide?")]))
asked = [HumanMessage("Read the log.")]
called = model.bind_tools([read]).invoke(asked)
asked += [called, ToolMessage("dry", tool_call_id=called.tool_calls[0]["id"])]
answered = model.bind_tools([read]).invoke(asked)
home = answered.response_metadata["headers"]["x-recto-conversation"]
print(json.dumps({"said": [first.text, told, answered.text], "home": home}))
