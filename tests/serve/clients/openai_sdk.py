"""A chat, a stream and a tool call with OpenAI's SDK. Prints what came as JSON."""

import json
import sys

from openai import BadRequestError, OpenAI

url, model = sys.argv[1:]
client = OpenAI(base_url=f"{url}/v1", api_key="none")
messages = [{"role": "user", "content": "How long is she?"}]
first = client.chat.completions.create(model=model, messages=messages)
messages += [first.choices[0].message.model_dump(exclude_none=True), {"role": "user", "content": "How wide?"}]
chunks = list(client.chat.completions.create(model=model, messages=messages, stream=True))
told = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
tool = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}
asked = [{"role": "user", "content": "Read the log."}]
called = client.chat.completions.create(model=model, messages=asked, tools=[tool]).choices[0].message
asked += [called, {"role": "tool", "tool_call_id": called.tool_calls[0].id, "content": "dry"}]
answered = client.chat.completions.with_raw_response.create(model=model, messages=asked, tools=[tool])
try:
    client.chat.completions.create(model=model, messages=messages, n=2)
    refused = ""
except BadRequestError as why:
    refused = str(why.param)
said = [first.choices[0].message.content, told, answered.parse().choices[0].message.content]
print(json.dumps({"said": said, "home": answered.headers["x-recto-conversation"], "refused": refused}))
