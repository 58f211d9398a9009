"""OpenAI's SDK with its responses API: replies by their id, a stream, a tool call."""

import json
import sys

from openai import OpenAI

url, model = sys.argv[1:]
client = OpenAI(base_url=f"{url}/v1", api_key="none")
first = client.responses.create(model=model, input="How long is she?")
with client.responses.stream(model=model, input="How wide?", previous_response_id=first.id) as stream:
    told = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
    stream.get_final_response()
tool = {"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}, "strict": False}
called = client.responses.create(model=model, input="Read the log.", tools=[tool])
call = next(item for item in called.output if item.type == "function_call")
result = {"type": "function_call_output", "call_id": call.call_id, "output": "dry"}
answered = client.responses.create(model=model, input=[result], tools=[tool], previous_response_id=called.id)
print(json.dumps({"said": [first.output_text, told, answered.output_text]}))
