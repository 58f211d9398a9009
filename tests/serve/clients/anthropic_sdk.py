"""The same with Anthropic's SDK."""

import json
import sys

from anthropic import Anthropic, BadRequestError

url, model = sys.argv[1:]
client = Anthropic(base_url=url, api_key="none")
common = {"model": model, "max_tokens": 200}
messages = [{"role": "user", "content": "How long is she?"}]
first = client.messages.create(messages=messages, **common)
messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": "How wide?"}]
with client.messages.stream(messages=messages, **common) as stream:
    told = "".join(stream.text_stream)
tool = {"name": "read", "input_schema": {"type": "object", "properties": {}}}
asked = [{"role": "user", "content": "Read the log."}]
called = client.messages.create(messages=asked, tools=[tool], **common)
use = next(block for block in called.content if block.type == "tool_use")
asked += [
    {"role": "assistant", "content": called.content},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "dry"}]},
]
answered = client.messages.with_raw_response.create(messages=asked, tools=[tool], **common)
try:
    client.messages.create(messages=[], **common)
    refused = ""
except BadRequestError as why:
    refused = "messages" if "messages" in str(why) else str(why)
said = [first.content[0].text, told, answered.parse().content[0].text]
print(json.dumps({"said": said, "home": answered.headers["x-recto-conversation"], "refused": refused}))
