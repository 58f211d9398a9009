"""The same with an agent of pydantic-ai, which runs its tool itself."""

import json
import sys

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

url, name = sys.argv[1:]
agent = Agent(OpenAIChatModel(name, provider=OpenAIProvider(base_url=f"{url}/v1", api_key="none")))
first = agent.run_sync("How long is she?")
second = agent.run_sync("How wide?", message_history=first.all_messages())


@agent.tool_plain
def read() -> str:
    """Reads the log."""
    return "dry"


third = agent.run_sync("Read the log.")
print(json.dumps({"said": [first.output, second.output, third.output]}))
