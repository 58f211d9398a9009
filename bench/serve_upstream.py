"""A model behind HTTP that costs next to nothing: OpenAI's chat completions from a script, for endpoints before it.

`quick` answers at once. `paced` streams words at a fixed pace; each word is the time at which it left, by a clock that
all processes of this machine share, so that whoever reads it knows how late it is. Knows neither recto nor any peer.
"""

import asyncio
import json
import sys
import time

PACED, QUICK = "paced", "quick"
REPLY = "That is so: the value is bound to the name, and the name is looked up again when the function is called."
WINDOW = 128_000
USAGE = {"prompt_tokens": 4000, "completion_tokens": 24, "total_tokens": 4024}
HEAD = {"id": "chatcmpl-1", "created": 1, "model": QUICK}
STREAMS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _whole(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def _event(data: bytes) -> bytes:
    event = b"data: " + data + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(event), event)


def _delta(text: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text} if text else {}, "finish_reason": finish}
    return _event(_json({**HEAD, "object": "chat.completion.chunk", "choices": [choice]}))


ENDING = (
    _delta("", "stop")
    + _event(_json({**HEAD, "object": "chat.completion.chunk", "choices": [], "usage": USAGE}))
    + _event(b"[DONE]")
    + b"0\r\n\r\n"
)
STREAMED = STREAMS + b"".join(_delta(f"{word} ") for word in REPLY.split()) + ENDING
ANSWERED = _whole(
    _json(
        {
            **HEAD,
            "object": "chat.completion",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": REPLY}, "finish_reason": "stop"}],
            "usage": USAGE,
        }
    )
)
MODELS = _whole(_json({"object": "list", "data": [{"id": each, "context_length": WINDOW} for each in (PACED, QUICK)]}))


class Upstream(asyncio.Protocol):
    """One connection: requests one after the other."""

    def __init__(self, words: int, pace_s: float) -> None:
        self._words, self._pace_s, self._came = words, pace_s, bytearray()
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._came += data
        while (end := self._came.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._came[:end]).lower()
            _, _, length = head.partition(b"content-length:")
            size = end + 4 + (int(length.split(b"\r\n", 1)[0]) if length else 0)
            if len(self._came) < size:
                return
            body = bytes(self._came[end + 4 : size])
            del self._came[:size]
            self._answer(head.startswith(b"get"), body)

    def _answer(self, is_get: bool, body: bytes) -> None:
        if is_get:
            self._transport.write(MODELS)
        elif b'"stream":true' not in body and b'"stream": true' not in body:
            self._transport.write(ANSWERED)
        elif f'"{PACED}"'.encode() in body[:200] + body[-2000:]:
            task = asyncio.get_running_loop().create_task(self._speak())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._transport.write(STREAMED)

    async def _speak(self) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        self._transport.write(STREAMS)
        for number in range(self._words):
            await asyncio.sleep(began + number * self._pace_s - loop.time())
            self._transport.write(_delta(f"{time.monotonic():.4f} "))
        self._transport.write(ENDING)


async def main(words: int, pace_s: float) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: Upstream(words, pace_s), "127.0.0.1", backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2])))
