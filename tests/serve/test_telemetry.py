"""Spans of OpenTelemetry: a collector on loopback gets one for each recorded request, and no word of what was said."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.conftest import Script, Serve
from tests.providers.conftest import Loopback
from tests.serve.conftest import Endpoint, Start, user

from recto.serve.telemetry import find_collector

Json = Any
SECRET = "The keel is of oak."
Traced = Callable[..., Endpoint]


@pytest.fixture
def collector(serve: Serve) -> Loopback:
    return serve(Loopback.whole({}))


@pytest.fixture
def traced(endpoint: Start, collector: Loopback) -> Traced:
    def start(model: str, **environment: str) -> Endpoint:
        at = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url.removesuffix("/v1")}
        return endpoint(model, collector=find_collector(at | environment))

    return start


def spans_of(collector: Loopback) -> list[Json]:
    resources = [each for got in collector.received for each in json.loads(got.body)["resourceSpans"]]
    return [span for resource in resources for scope in resource["scopeSpans"] for span in scope["spans"]]


def facts_of(collector: Loopback) -> dict[str, Any]:
    return {each["key"]: plain(each["value"]) for each in spans_of(collector)[0]["attributes"]}


def plain(value: Json) -> Any:
    ((kind, found),) = value.items()
    if kind == "arrayValue":
        return [plain(each) for each in found["values"]]
    return int(found) if kind == "intValue" else found


def test_a_request_becomes_a_span_of_its_record(traced: Traced, collector: Loopback, script: Script) -> None:
    server = traced(script({"text": "Yes.", "usage": {"input": 40, "output": 2}}), OTEL_SERVICE_NAME="boats")
    parent = f"00-{'a' * 32}-{'b' * 16}-01"
    answer = server.chat(user(SECRET), temperature=0.5, stream=True, headers={"traceparent": parent})
    server.stop()
    (got,) = collector.received
    assert got.target == "/v1/traces"
    (span,) = spans_of(collector)
    assert (span["traceId"], span["parentSpanId"], span["kind"]) == ("a" * 32, "b" * 16, 3)
    assert span["name"].startswith("chat ")
    assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
    assert "oak" not in str(collector.received)
    facts = facts_of(collector)
    assert facts["gen_ai.operation.name"] == "chat"
    assert facts["gen_ai.provider.name"] == "scripted"
    assert facts["gen_ai.conversation.id"] == answer.headers["x-recto-conversation"]
    assert facts["gen_ai.response.id"] == answer.headers["x-recto-request"]
    assert (facts["gen_ai.usage.input_tokens"], facts["gen_ai.usage.output_tokens"]) == (40, 2)
    assert facts["gen_ai.response.finish_reasons"] == ["stop"]
    assert facts["gen_ai.request.temperature"] == 0.5
    assert facts["gen_ai.request.stream"] is True
    assert facts["recto.mode"] == "manage"
    resource = json.loads(got.body)["resourceSpans"][0]["resource"]["attributes"]
    assert {"key": "service.name", "value": {"stringValue": "boats"}} in resource


def test_a_request_that_failed_says_with_which_error(traced: Traced, collector: Loopback, script: Script) -> None:
    server = traced(script({"error": "rate_limited"}))
    assert server.chat(user("Is it dry?")).status_code == 429
    server.stop()
    assert facts_of(collector)["error.type"] == "RateLimited"
    assert spans_of(collector)[0]["status"]["code"] == 2


def test_a_collector_that_does_not_answer_stops_no_chat(endpoint: Start, script: Script) -> None:
    found = find_collector({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:9/nowhere"})
    server = endpoint(script({"text": "Yes."}), collector=found)
    assert server.chat(user("Is it dry?")).status_code == 200
    server.stop()


def test_headers_and_attributes_are_read_as_opentelemetry_writes_them() -> None:
    at = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}
    for off in ({}, at | {"OTEL_SDK_DISABLED": "true"}):
        assert find_collector(off) is None
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
