"""The context of a reply: what was sent for it, piece by piece, the exact request, its proof, and what another had."""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from recto.api.talk import AsyncTalk
from recto.errors import RectoError
from recto.web.components import Deed
from recto.web.message_view import pretty
from recto.web.page_desk import PageDesk
from recto.web.panel import Handler
from recto.web.templates import fill
from recto.web.window_parts import bars, counts_line, left_out, plan_words, sections

# Replies that can be compared with.
MOST_REPLIES = 100
# A larger request is told by its size; `recto request rebuild` has it whole.
MOST_RAW = 2_000_000
Json = Mapping[str, Any]


class ReplyView:
    name, title = "reply", "Reply"

    def __init__(self, desk: PageDesk, talk: Callable[[], AsyncTalk]) -> None:
        self._desk, self._talk = desk, talk
        self._message: str | None = None
        self._texts: dict[tuple[str, int], str] = {}
        """Texts of picks that are open, by section and place."""
        self._request = ""
        """How the exact request is shown: rendered, raw, or not."""
        self._other: str | None = None
        """The reply that it is compared with."""
        self.handlers: dict[str, Handler] = {
            "context": self._open,
            "sent-text": self._open_text,
            "request": self._open_request,
            "compare": self._compare,
        }

    async def _open(self, deed: Deed) -> None:
        self._message, self._texts, self._request, self._other = str(deed["id"]), {}, "", None

    async def _open_text(self, deed: Deed) -> None:
        key = (str(deed["section"]), int(deed["place"]))
        if self._texts.pop(key, None) is None:
            self._texts[key] = await self._text(*key)

    async def _text(self, section: str, place: int) -> str:
        try:
            return (await self._desk.sent_pick(self._message or "", section, place)).text
        except RectoError as why:
            return why.message

    async def _open_request(self, deed: Deed) -> None:
        self._request = str(deed.get("as", ""))

    async def _compare(self, deed: Deed) -> None:
        self._other = str(deed.get("value") or "") or None

    async def html(self) -> str:
        if self._message is None:
            return fill("hint", text="“Context” below a reply shows here what was sent for it.")
        talk = self._talk()
        try:
            record = await talk.request(self._message)
        except RectoError as why:
            return fill("hint", text=why.message)
        told = await talk.numbered(record.to_json())
        proof = (await self._desk.verify([record.id]))[0][1]
        message = await talk.message(self._message)
        return await asyncio.to_thread(
            fill,
            "reply",
            message=message,
            record=told,
            sent=record.was_sent,
            usage=message.usage,
            cost=record.cost_usd,
            cached=_cached(message.usage),
            bars=bars(told),
            sections=sections(told),
            counts=counts_line(told),
            used=_used(told),
            left_out=left_out(told),
            plan=plan_words(told.get("plan")),
            prefix=_prefix(told.get("prefix")),
            proof=proof,
            texts=self._texts,
            request=self._request,
            body=await self._body(record.id),
            replies=await self._replies(talk, message.id),
            other=self._other,
            difference=await self._difference(talk, message.id),
        )

    async def _body(self, request: str) -> dict[str, Any]:
        """The exact bytes, as text and as messages; nothing where they are not asked for."""
        if not self._request:
            return {}
        raw = (await self._desk.rebuild(request)).decode(errors="replace")
        if len(raw) > MOST_RAW:
            return {"size": len(raw), "raw": "", "parts": []}
        return {"size": len(raw), "raw": raw, "parts": request_parts(raw)}

    async def _replies(self, talk: AsyncTalk, but: str) -> list[tuple[str, int]]:
        """Other replies of the conversation, each with its number, the latest first."""
        said = await talk.messages(limit=2 * MOST_REPLIES, with_tools=False, with_system=False)
        return [(each.id, each.said) for each in reversed(said) if each.request and each.id != but][:MOST_REPLIES]

    async def _difference(self, talk: AsyncTalk, message: str) -> Json | None:
        if self._other is None:
            return None
        found = await self._desk.compare(self._other, message)
        told: Json = await talk.numbered(found.to_json())
        return told


def request_parts(raw: str) -> list[dict[str, str]]:
    """A request as people read it: what each message says, then tools and parameters. Any wire format: they all have
    messages with a role and a content."""
    try:
        body = json.loads(raw)
    except ValueError:
        return [{"role": "request", "text": raw}]
    if not isinstance(body, dict):
        return [{"role": "request", "text": raw}]
    parts = [{"role": "system", "text": _words(body["system"])}] if body.get("system") else []
    for message in body.get("messages") or ():
        if isinstance(message, dict):
            calls = "\n".join(pretty(json.dumps(call)) for call in message.get("tool_calls") or ())
            text = "\n".join(filter(None, (_words(message.get("content")), calls)))
            parts.append({"role": str(message.get("role", "")), "text": text})
    rest = {key: value for key, value in body.items() if key not in ("messages", "system")}
    return [*parts, {"role": "tools and parameters", "text": json.dumps(rest, indent=2, ensure_ascii=False)}]


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else json.dumps(content, ensure_ascii=False)
    return "\n".join(_block_words(each) for each in content)


def _block_words(block: Any) -> str:
    if isinstance(block, dict) and isinstance(block.get("text"), str):
        return str(block["text"])
    return json.dumps(block, indent=2, ensure_ascii=False)


def _cached(usage: Any) -> int | None:
    return round(100 * usage.cache_read / usage.input) if usage and usage.input else None


def _prefix(prefix: Json | None) -> str:
    if not prefix:
        return ""
    if prefix.get("base") is None:
        return "The first request of its conversation."
    if prefix.get("broken_by"):
        return (
            f"The prefix was broken by {prefix['broken_by']}: {prefix.get('kept')} of {prefix.get('of')} pieces kept."
        )
    return "It begins as the request before it: a prompt cache can serve that part."


def _used(told: Json) -> list[str]:
    """Sources of which the reply shows a sign of use."""
    found: Iterable[Any] = told.get("used") or ()
    return [
        f"{each.get('name')}: {each.get('sign')}" for each in found if isinstance(each, Mapping) and each.get("sign")
    ]
