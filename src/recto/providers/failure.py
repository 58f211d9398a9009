"""Classifies a provider's failure: which error it is, and whether a retry may help. Sends nothing."""

import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from recto.base.text import without_key
from recto.errors import Overflow, ProviderError, RateLimited, Refused, Unreachable
from recto.wire import Json, loads

RETRYABLE = frozenset({408, 429, 500, 502, 503, 504, 529})
MAX_DETAIL = 300
LONGEST_WISH_S = 24 * 3600.0

# the wordings of OpenAI, Anthropic, llama.cpp, vLLM, Mistral, Ollama, LM Studio, Gemini, Groq, xAI, Bedrock, TGI, Kimi,
# SGLang, TabbyAPI and LiteLLM
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|context_?window_?exceeded|request_too_large|string_above_max"
    r"|(prompt|input|request|messages?) (is |are )?too (long|large)|too large for model|too many (input )?tokens"
    r"|max(imum)? (context|prompt|model|input) length|max(imum)? number of (input )?tokens|token count.{,80} exceeds"
    r"|exceed(s|ed)?( the| max| maximum| available| allowed| model)* (context|token limit|input length)"
    r"|context (length|size|window|limit) (has been )?exceed|greater than the context length|context length of only"
    r"|reduce (the length of the|your) (prompt|message)|tokens? \+ `?max_(new_)?tokens`? (must|exceed)"
    r"|longer than the (model's )?context|greater than max_seq_len"
    # what vLLM has left for the reply
    r"|max_(completion_)?tokens must be at least 1, got (-\d|0\b)",
    re.IGNORECASE,
)
# a limit per minute that a single request exceeds: waiting cannot help, a shorter request can
_TOO_LARGE_FOR_ANY_MINUTE = re.compile(r"request too large", re.IGNORECASE)
_NO_CREDIT = re.compile(r"insufficient_quota|billing_hard_limit|exceeded your current quota", re.IGNORECASE)
_WORDS_TO_STATUS = {
    "insufficient_quota": 429,
    "rate_limit": 429,
    "too_many_requests": 429,
    "overloaded": 529,
    "unavailable": 503,
    "timeout": 504,
    "authentication": 401,
    "invalid_api_key": 401,
    "permission": 403,
    "billing": 402,
    "not_found": 404,
    "context_": 400,
    "request_too_large": 413,
    "invalid_request": 400,
    "badrequest": 400,
}


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """The provider, address and model of a request: the names that an error message needs."""

    provider: str
    url: str
    model: str
    key_variable: str | None = None
    key: str | None = field(default=None, repr=False)
    """Needed only to remove it from error messages of providers that repeat it."""

    @property
    def place(self) -> str:
        """The URL without path and password."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


class AttemptFailed(Exception):
    """An attempt failed with `error`. `retryable` when another may succeed; `wait_s` is the requested wait, if any.
    `was_sent` is False when it failed before anything was sent."""

    was_sent: bool = True

    def __init__(self, error: ProviderError, retryable: bool, wait_s: float | None = None) -> None:
        super().__init__(error.message)
        self.error, self.retryable, self.wait_s = error, retryable, wait_s


def from_status(target: RequestTarget, status: int, body: bytes, headers: Mapping[str, str]) -> AttemptFailed:
    """The failure of an answer with an error status."""
    message, codes = _message_and_codes(_parsed(body), target.key)
    return _classify(target, status, message, codes, retry_after_s(headers))


def from_stream(target: RequestTarget, payload: Json) -> AttemptFailed:
    """The failure of an error inside a stream, whose HTTP status was 200."""
    message, codes = _message_and_codes(payload, target.key)
    number = next((int(word) for word in codes.split() if re.fullmatch(r"[45]\d\d", word)), None)
    guess = (status for word, status in _WORDS_TO_STATUS.items() if word in codes.lower())
    return _classify(target, number or next(guess, 500), message, codes, None, is_guessed=number is None)


def unreachable(target: RequestTarget, what: str, *, retryable: bool, sent: bool = True) -> AttemptFailed:
    """The failure of a connection, or of an answer that cannot be used; `what` completes the sentence."""
    what = without_key(what, target.key)
    failure = AttemptFailed(Unreachable(f"{target.provider} at {target.place} {what}."), retryable)
    failure.was_sent = sent
    return failure


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The wait that the provider asks for, given as milliseconds, seconds or a date; None for a wish that makes no
    sense, such as a date in the past."""
    try:
        if milliseconds := headers.get("retry-after-ms"):
            wait_s = float(milliseconds) / 1000
        else:
            wait_s = _wish_s(headers.get("retry-after", "").strip())
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return min(wait_s, LONGEST_WISH_S) if 0 <= wait_s < math.inf else None


def _wish_s(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        date = parsedate_to_datetime(value)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - time.time()


def _classify(
    target: RequestTarget, status: int, message: str, codes: str, wait_s: float | None, *, is_guessed: bool = False
) -> AttemptFailed:
    """`is_guessed`: the status stands for the provider's words, and is not told."""
    text = f"{message} {codes}"
    detail = f": {message if len(message) <= MAX_DETAIL else message[: MAX_DETAIL - 1] + '…'}" if message else "."
    if _is_overflow(status, text):
        advice = f"set `window` of {target.model} in models.toml to what it can read, or start a new conversation"
        overflow = Overflow(f"{target.provider} counts the request as too long for {target.model}; {advice}{detail}")
        return AttemptFailed(overflow, False)
    if status == 429 and not _NO_CREDIT.search(text):
        when = f"in {wait_s:.0f} s" if wait_s else "in a while"
        sentence = f"{target.provider} asks to slow down; try again {when}{detail}"
        return AttemptFailed(RateLimited(sentence, retry_after_s=wait_s), True, wait_s)
    if status >= 500 or status in RETRYABLE - {429}:
        failed = "reported an error instead of a reply" if is_guessed else f"failed with status {status}"
        sentence = f"{target.provider} at {target.place} {failed}; try again later{detail}"
        return AttemptFailed(Unreachable(sentence), status in RETRYABLE, wait_s)
    if is_guessed and status == 400:
        return AttemptFailed(Refused(f"{target.provider} refused the request{detail}"), False)
    return AttemptFailed(Refused(_refusal(target, status) + detail), False)


def _refusal(target: RequestTarget, status: int) -> str:
    if status in (401, 403):
        check = f"the key in {target.key_variable}" if target.key_variable else "whether it needs a key"
        return f"{target.provider} refused access; check {check}"
    if status == 404:
        return f"{target.provider} at {target.place} does not know the model {target.model}; check its name"
    if status in (402, 429):
        return f"{target.provider} has no credit left on this account"
    if 300 <= status < 400:
        return f"{target.provider} at {target.place} redirects to another address; check its address"
    return f"{target.provider} refused the request with status {status}"


def _is_overflow(status: int, text: str) -> bool:
    if status == 429:
        return bool(_TOO_LARGE_FOR_ANY_MINUTE.search(text))
    return status == 413 or (status not in (401, 402, 403, 404) and bool(_TOO_LONG.search(text)))


def _parsed(body: bytes) -> Json:
    try:
        return loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")


def _message_and_codes(payload: Json, key: str | None) -> tuple[str, str]:
    """The provider's own message on one line, and its error codes and types."""
    codes: list[str] = []
    while isinstance(payload, dict | list):
        if isinstance(payload, list):
            payload = payload[0] if payload else ""
            continue
        codes += [str(payload[name]) for name in ("code", "type", "status") if payload.get(name) is not None]
        payload = next((payload[name] for name in ("error", "message", "detail", "msg") if payload.get(name)), "")
    text = str(payload)
    if text.lstrip().startswith("<"):
        text = " ".join(re.findall(r"<title>(.*?)</title>", text, re.DOTALL | re.IGNORECASE))
    return " ".join(without_key(text, key).split()), " ".join(codes)
