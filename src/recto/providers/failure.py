"""What a provider's failure means to us: which error, and whether trying again may help. Sends nothing."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from recto.errors import Overflow, ProviderError, RateLimited, Refused, Unreachable
from recto.wire import Json, loads

AGAIN = frozenset({408, 429, 500, 502, 503, 504, 529})
SHORT = 300

# in the words of OpenAI, Anthropic, llama.cpp, vLLM, Mistral, Ollama, LM Studio, Gemini, Groq, xAI, Bedrock, TGI, Kimi
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|context_window_exceeded|request_too_large|string_above_max"
    r"|(prompt|input|request|messages?) (is |are )?too (long|large)|too large for model|too many (input )?tokens"
    r"|max(imum)? (context|prompt|model|input) length|max(imum)? number of (input )?tokens|token count.{,80} exceeds"
    r"|exceed(s|ed)?( the| max| maximum| available| allowed| model)* (context|token limit|input length)"
    r"|context (length|size|window|limit) (has been )?exceed|greater than the context length|context length of only"
    r"|reduce (the length of the|your) (prompt|message)|tokens? \+ `?max_(new_)?tokens`? (must|exceed)",
    re.IGNORECASE,
)
# a limit for each minute that one request alone is over: waiting cannot help, a shorter request can
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
class Asked:
    """Who was asked for what: the names an error message needs."""

    provider: str
    url: str
    model: str
    key_variable: str | None = None
    key: str | None = field(default=None, repr=False)
    """Only so that a provider that repeats it in an error does not get it into a message of ours."""

    @property
    def place(self) -> str:
        """The address without path or password."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


class Trouble(Exception):
    """One try failed with `error`; `again` when another may not, `wait_s` when the provider said how long to wait."""

    def __init__(self, error: ProviderError, again: bool, wait_s: float | None = None) -> None:
        super().__init__(error.message)
        self.error, self.again, self.wait_s = error, again, wait_s


def from_status(asked: Asked, status: int, body: bytes, headers: Mapping[str, str]) -> Trouble:
    """What an answer with an error status means."""
    said, words = _said(_parsed(body), asked.key)
    return _trouble(asked, status, said, words, retry_after_s(headers))


def from_stream(asked: Asked, payload: Json) -> Trouble:
    """What an error inside a stream means, where the status was 200 before anything was known."""
    said, words = _said(payload, asked.key)
    number = next((int(word) for word in words.split() if re.fullmatch(r"[45]\d\d", word)), None)
    guess = (status for word, status in _WORDS_TO_STATUS.items() if word in words.lower())
    return _trouble(asked, number or next(guess, 500), said, words, None)


def broken(asked: Asked, what: str, *, again: bool) -> Trouble:
    """The connection, or what came over it, is of no use."""
    return Trouble(Unreachable(f"{asked.provider} at {asked.place} {what}."), again)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The provider's wish to wait: milliseconds, seconds or a date."""
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(0.0, float(milliseconds) / 1000)
        wish = headers.get("retry-after", "").strip()
        if re.fullmatch(r"\d+(\.\d*)?", wish):
            return float(wish)
        return max(0.0, parsedate_to_datetime(wish).timestamp() - time.time()) if wish else None
    except (ValueError, OverflowError):
        return None


def _trouble(asked: Asked, status: int, said: str, words: str, wait_s: float | None) -> Trouble:
    everything = f"{said} {words}"
    detail = f": {said if len(said) <= SHORT else said[: SHORT - 1] + '…'}" if said else "."
    if _is_overflow(status, everything):
        return Trouble(Overflow(f"{asked.provider} counts the request as too long for {asked.model}{detail}"), False)
    if status == 429 and not _NO_CREDIT.search(everything):
        when = f"in {wait_s:.0f} s" if wait_s else "in a while"
        sentence = f"{asked.provider} asks to slow down; try again {when}{detail}"
        return Trouble(RateLimited(sentence, retry_after_s=wait_s), True, wait_s)
    if status >= 500 or status in AGAIN - {429}:
        sentence = f"{asked.provider} at {asked.place} failed with status {status}; try again later{detail}"
        return Trouble(Unreachable(sentence), status in AGAIN, wait_s)
    return Trouble(Refused(_refusal(asked, status) + detail), False)


def _refusal(asked: Asked, status: int) -> str:
    if status in (401, 403):
        check = f"the key in {asked.key_variable}" if asked.key_variable else "whether it wants a key"
        return f"{asked.provider} refused access; check {check}"
    if status == 404:
        return f"{asked.provider} at {asked.place} does not know the model {asked.model}; check its name"
    if status in (402, 429):
        return f"{asked.provider} has no credit left on this account"
    if 300 <= status < 400:
        return f"{asked.provider} at {asked.place} points elsewhere; check base_url"
    return f"{asked.provider} refused the request with status {status}"


def _is_overflow(status: int, text: str) -> bool:
    if status == 429:
        return bool(_TOO_LARGE_FOR_ANY_MINUTE.search(text))
    return status == 413 or (status not in (401, 402, 403, 404) and bool(_TOO_LONG.search(text)))


def _parsed(body: bytes) -> Json:
    try:
        return loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")


def _said(payload: Json, key: str | None) -> tuple[str, str]:
    """The provider's own message on one line, and the codes and types that came with it."""
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
    text = text.replace(key, "***") if key else text
    return " ".join(text.split()), " ".join(codes)
