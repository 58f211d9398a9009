"""Each provider's own words for a failure, and what they mean to us."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.errors import Overflow, ProviderError, RateLimited, Refused, Unreachable
from recto.providers.http import AttemptFailed, RequestTarget, from_status, from_stream, retry_after_s

ASKED = RequestTarget(
    "openai", "https://user:secret@host:8/v1/chat/completions", "gpt-x", "the key in OPENAI_API_KEY", "sk-very-secret"
)


def status(code: int, payload: object, **headers: str) -> AttemptFailed:
    return from_status(ASKED, code, json.dumps(payload).encode(), headers)


TOO_LONG: list[tuple[int, object]] = [
    (400, {"error": {"message": "Your input is large.", "code": "context_length_exceeded", "param": "messages"}}),
    (400, {"error": {"code": 400, "message": "request (9000 tokens) exceeds the available context size (8192 tokens)",
                     "type": "exceed_context_size_error", "n_prompt_tokens": 9000, "n_ctx": 8192}}),
    (400, {"type": "error", "error": {"type": "invalid_request_error",
                                      "message": "prompt is too long: 201000 tokens > 200000 maximum"}}),
    (400, {"type": "error", "error": {"type": "invalid_request_error",
                                      "message": "input length and `max_tokens` exceed context limit: 1 + 2 > 3"}}),
    (400, {"object": "error", "message": "This model's maximum context length is 4096 tokens. However, you requested "
                                         "5000 tokens", "type": "BadRequestError", "code": 400}),
    (400, {"error": {"message": "the input length exceeds the context length"}}),
    (400, {"error": "prompt too long; exceeded max context length by 12 tokens"}),
    (400, [{"error": {"code": 400, "message": "The input token count (1200000) exceeds the maximum number of tokens "
                                              "allowed (1048576).", "status": "INVALID_ARGUMENT"}}]),
    (400, {"error": {"message": "Please reduce the length of the messages or completion.", "type": "invalid"}}),
    (400, {"object": "error", "message": "Prompt contains 40000 tokens, too large for model with 32768 maximum"}),
    (400, {"error": "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded "
                    "with context length of only 4096 tokens"}),
    (400, {"error": "This model's maximum prompt length is 131072 but the request contains 140000 tokens."}),
    (422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097", "type": "x"}),
    (422, {"detail": [{"loc": ["body"], "msg": "Input is too long for requested model"}]}),
    (413, {"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}),
    (500, {"error": {"message": "context size has been exceeded", "code": 500}}),
    (429, {"error": {"message": "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 45000.",
                     "code": "rate_limit_exceeded"}}),
    (400, {"object": "error", "message": "max_tokens must be at least 1, got -904.", "type": "BadRequestError"}),
    (400, {"error": {"message": "max_completion_tokens must be at least 1, got 0", "param": "max_tokens"}}),
    (400, {"error": {"message": "The input (5000 tokens) is longer than the model's context length (4096 tokens)."}}),
    (400, {"detail": "Prompt length 5000 is greater than max_seq_len 4096"}),
    (400, {"error": {"message": "litellm.ContextWindowExceededError: BadRequestError", "code": "400"}}),
    (400, {"error": {"message": "x" * 500 + " maximum context length"}}),
]  # fmt: skip


@pytest.mark.parametrize(("code", "payload"), TOO_LONG)
def test_too_long_is_overflow_in_every_providers_words(code: int, payload: object) -> None:
    failure = status(code, payload)
    assert isinstance(failure.error, Overflow)
    assert not failure.retryable


@pytest.mark.parametrize(
    ("code", "payload", "error", "retryable"),
    [
        (429, {"error": {"message": "Rate limit reached for gpt-x: tokens per min."}}, RateLimited, True),
        (429, {"message": "Too many tokens, please wait before trying again."}, RateLimited, True),
        (429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}, Refused, False),
        (402, {"error": {"message": "Insufficient balance"}}, Refused, False),
        (400, {"error": {"message": "max_tokens: 9 > 8, which is the maximum allowed number"}}, Refused, False),
        (400, {"error": {"message": "max_tokens must be at least 1, got abc"}}, Refused, False),
        (400, {"error": {"message": "Your credit balance is too low"}}, Refused, False),
        (401, {"error": {"message": "Incorrect API key"}}, Refused, False),
        (403, {"error": {"message": "not in your country"}}, Refused, False),
        (404, {"error": {"message": "no such model"}}, Refused, False),
        (302, {}, Refused, False),
        (408, {}, Unreachable, True),
        (500, {"error": {"message": "oops"}}, Unreachable, True),
        (501, {}, Unreachable, False),
        (503, {}, Unreachable, True),
        (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, Unreachable, True),
    ],
)  # fmt: skip
def test_every_status_has_its_error(code: int, payload: object, error: type[ProviderError], retryable: bool) -> None:
    failure = status(code, payload)
    assert type(failure.error) is error
    assert failure.retryable is retryable


@pytest.mark.parametrize(
    ("payload", "error", "retryable"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, Unreachable, True),
        ({"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}, RateLimited, True),
        ({"error": {"message": "Provider returned error", "code": 502}}, Unreachable, True),
        ({"error": {"message": "this is over the maximum context length", "code": 400}}, Overflow, False),
        ({"error": {"message": "bad", "type": "invalid_request_error"}}, Refused, False),
        ({"error": {"message": "key", "type": "authentication_error"}}, Refused, False),
        ({"error": "boom"}, Unreachable, True),
    ],
)
def test_an_error_inside_a_stream_is_told_apart_by_its_words(
    payload: object, error: type[ProviderError], retryable: bool
) -> None:
    failure = from_stream(ASKED, payload)
    assert type(failure.error) is error
    assert failure.retryable is retryable


def test_a_refused_key_names_its_variable_and_never_shows_itself() -> None:
    message = status(401, {"error": {"message": "Incorrect API key provided: sk-very-secret"}}).error.message
    assert "OPENAI_API_KEY" in message
    assert "secret" not in message
    assert "sk-very-secret" not in repr(ASKED)


def test_the_providers_message_is_cut_and_on_one_line() -> None:
    message = status(400, {"error": {"message": "one\ntwo " + "x" * 1000}}).error.message
    assert "one two x" in message
    assert "\n" not in message
    assert len(message) < 400


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after-ms": "soon"}, None),
    ],
)
def test_the_wish_to_wait_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers) == seconds


@given(st.integers(300, 599), st.binary(max_size=200))
def test_no_answer_is_so_odd_that_it_has_no_error(code: int, body: bytes) -> None:
    failure = from_status(ASKED, code, body, {})
    assert isinstance(failure.error, ProviderError)
    assert "\n" not in failure.error.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["error", "message", "code", "type", "detail", "x"]), inner, max_size=3)
    ),
)
