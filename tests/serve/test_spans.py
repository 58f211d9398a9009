"""Spans of OpenTelemetry: a collector on loopback gets one for each recorded request, and no word of what was said."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from tests.conftest import Script
from tests.serve.conftest import Endpoint, Start, user

from recto.serve.telemetry import find_collector

Json = Any
SECRET = "The keel is of oak."


class Collected:
    """What a collector got."""

    def __init__(self) -> None:
        self.bodies: list[Json] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []

    @property
    def spans(self) -> list[Json]:
        scopes = [scope for body in self.bodies for each in body["resourceSpans"] for scope in each["scopeSpans"]]
        return [span for scope in scopes for span in scope["spans"]]

    def facts(self, number: int = 0) -> dict[str, Any]:
        return {each["key"]: plain(each["value"]) for each in self.spans[number]["attributes"]}


def plain(value: Json) -> Any:
    ((kind, found),) = value.items()
    if kind == "arrayValue":
        return [plain(each) for each in found["values"]]
    return int(found) if kind == "intValue" else found


@pytest.fixture
def collector() -> Iterator[tuple[str, Collected]]:
    collected = Collected()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            collected.bodies.append(json.loads(body))
            collected.headers.append(dict(self.headers))
            collected.paths.append(self.path)
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            return None

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", collected
        server.shutdown()
        thread.join()


Traced = Callable[..., Endpoint]


@pytest.fixture
def traced(endpoint: Start, collector: tuple[str, Collected]) -> Traced:
    def start(model: str, **environment: str) -> Endpoint:
        found = find_collector({"OTEL_EXPORTER_OTLP_ENDPOINT": collector[0], **environment})
        return endpoint(model, collector=found)

    return start


def test_a_request_becomes_a_span_of_its_record(
    traced: Traced, collector: tuple[str, Collected], script: Script
) -> None:
    server = traced(script({"text": "Yes.", "usage": {"input": 40, "output": 2}}), OTEL_SERVICE_NAME="boats")
    parent = f"00-{'a' * 32}-{'b' * 16}-01"
    answer = server.chat(user(SECRET), temperature=0.5, stream=True, headers={"traceparent": parent})
    server.stop()
    _, collected = collector
    assert collected.paths == ["/v1/traces"]
    (span,) = collected.spans
    assert (span["traceId"], span["parentSpanId"], span["kind"]) == ("a" * 32, "b" * 16, 3)
    assert span["name"].startswith("chat ")
    assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
    facts = collected.facts()
    assert facts["gen_ai.operation.name"] == "chat"
    assert facts["gen_ai.provider.name"] == "scripted"
    assert facts["gen_ai.conversation.id"] == answer.headers["x-recto-conversation"]
    assert facts["gen_ai.response.id"] == answer.headers["x-recto-request"]
    assert (facts["gen_ai.usage.input_tokens"], facts["gen_ai.usage.output_tokens"]) == (40, 2)
    assert facts["gen_ai.response.finish_reasons"] == ["stop"]
    assert facts["gen_ai.request.temperature"] == 0.5
    assert facts["gen_ai.request.stream"] is True
    assert facts["recto.mode"] == "manage"
    resource = collected.bodies[0]["resourceSpans"][0]["resource"]["attributes"]
    assert {"key": "service.name", "value": {"stringValue": "boats"}} in resource


def test_what_was_said_is_not_exported_unless_the_switch_says_so(
    traced: Traced, collector: tuple[str, Collected], script: Script
) -> None:
    server = traced(script({"text": "It is dry."}))
    server.chat(user(SECRET), headers={"x-recto-mode": "record"})
    server.chat(user(SECRET))
    server.stop()
    told = json.dumps(collector[1].bodies)
    assert len(collector[1].spans) == 2
    assert "oak" not in told
    assert "It is dry." not in told


def test_with_the_switch_the_messages_go_along(
    traced: Traced, collector: tuple[str, Collected], script: Script
) -> None:
    switch = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"}
    server = traced(script({"text": "It is dry."}), **switch)
    server.chat({"role": "system", "content": "Be brief."}, user(SECRET))
    server.stop()
    facts = collector[1].facts()
    said = json.loads(facts["gen_ai.input.messages"])
    assert said == [{"role": "user", "parts": [{"type": "text", "content": SECRET}]}]
    assert json.loads(facts["gen_ai.system_instructions"])[0]["content"].startswith("Be brief.")
    (reply,) = json.loads(facts["gen_ai.output.messages"])
    assert reply["parts"] == [{"type": "text", "content": "It is dry."}]


def test_a_request_that_failed_says_with_which_error(
    traced: Traced, collector: tuple[str, Collected], script: Script
) -> None:
    server = traced(script({"error": "rate_limited"}))
    assert server.chat(user("Is it dry?")).status_code == 429
    server.stop()
    assert collector[1].facts()["error.type"] == "RateLimited"
    assert collector[1].spans[0]["status"]["code"] == 2


def test_a_collector_that_does_not_answer_stops_no_chat(endpoint: Start, script: Script) -> None:
    found = find_collector({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:9/nowhere"})
    server = endpoint(script({"text": "Yes."}), collector=found)
    assert server.chat(user("Is it dry?")).status_code == 200
    server.stop()


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_without_an_endpoint_nothing_is_exported(environment: dict[str, str]) -> None:
    assert find_collector(environment) is None


def test_headers_and_attributes_are_read_as_opentelemetry_writes_them() -> None:
    found = find_collector(
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x:4318/",
            "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20abc, x=1",
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test",
        }
    )
    assert found is not None
    assert found.url == "http://x:4318/v1/traces"
    assert found.headers == {"authorization": "Bearer abc", "x": "1"}
    assert found.resource["deployment.environment"] == "test"
    assert not found.takes_content
