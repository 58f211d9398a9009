"""The context of a reply: what was sent for it, piece by piece, the exact request, its proof, and what another had."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from recto.api.talk import AsyncTalk
from recto.errors import RectoError
from recto.web.live import PageDesk
from recto.web.panel import Json, bars, window_values
from recto.web.templates import fill, pretty

# Replies that can be compared with.
MOST_REPLIES = 100
# A larger request is told by its size; `recto request rebuild` has it whole.
MOST_RAW = 2_000_000


class ReplyView:
    name, title = "reply", "Reply"

    def __init__(self, desk: PageDesk, talk: Callable[[], AsyncTalk]) -> None:
        self._desk, self._talk = desk, talk
        self._message = ""
        self._texts: dict[tuple[str, int], str] = {}
        """Texts of picks that are open, by section and place."""
        self._request = ""
        """How the exact request is shown: rendered, raw, or not."""
        self._other = ""
        """The reply that it is compared with."""

    async def do_context(self, id: str) -> None:
        self._message, self._texts, self._request, self._other = id, {}, "", ""

    async def do_sent_text(self, section: str, place: int) -> None:
        key = (section, place)
        if self._texts.pop(key, None) is not None:
            return
        try:
            self._texts[key] = (await self._desk.sent_pick(self._message, section, place)).text
        except RectoError as why:
            self._texts[key] = why.message

    async def do_request(self, form: str) -> None:
        self._request = form

    async def do_compare(self, value: str) -> None:
        self._other = value

    async def html(self) -> str:
        if not self._message:
            return fill("hint", text="“Context” below a reply shows here what was sent for it.")
        talk = self._talk()
        try:
            record = await talk.request(self._message)
        except RectoError as why:
            return fill("hint", text=why.message)
        told, message = await talk.numbered(record.to_json()), await talk.message(self._message)
        usage, difference = message.usage, None
        if self._other:
            difference = await talk.numbered((await self._desk.compare(self._other, message.id)).to_json())
        return await asyncio.to_thread(
            fill,
            "reply",
            message=message,
            record=told,
            sent=record.was_sent,
            usage=usage,
            cost=record.cost_usd,
            cached=round(100 * usage.cache_read / usage.input) if usage and usage.input else None,
            bars=bars(told),
            used=[f"{each['name']}: {each['sign']}" for each in told.get("used") or () if each.get("sign")],
            prefix=_prefix(told.get("prefix")),
            proof=(await self._desk.verify([record.id]))[0][1],
            texts=self._texts,
            request=self._request,
            body=await self._body(record.id),
            replies=await self._replies(talk, message.id),
            other=self._other,
            difference=difference,
            **window_values(told),
        )

    async def _body(self, request: str) -> dict[str, Any]:
        """The exact bytes, as text and as messages; nothing where they are not asked for."""
        if not self._request:
            return {}
        raw = (await self._desk.rebuild(request)).decode(errors="replace")
        shown = raw if len(raw) <= MOST_RAW else ""
        return {"size": len(raw), "raw": shown, "parts": request_parts(shown)}

    async def _replies(self, talk: AsyncTalk, but: str) -> list[tuple[str, str]]:
        """Other replies of the conversation, the latest first."""
        said = await talk.messages(limit=2 * MOST_REPLIES, with_tools=False, with_system=False)
        replies = [(each.id, f"reply #{each.said}") for each in reversed(said) if each.request and each.id != but]
        return replies[:MOST_REPLIES]


def request_parts(raw: str) -> list[dict[str, str]]:
    """A request as people read it: what each message says, then tools and parameters. Any wire format: they all have
    messages with a role and a content."""
    try:
        body = json.loads(raw)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        return [{"role": "request", "text": raw}]
    parts = [{"role": "system", "text": _words(body["system"])}] if body.get("system") else []
    for message in body.get("messages") or ():
        if isinstance(message, dict):
            calls = [pretty(json.dumps(call)) for call in message.get("tool_calls") or ()]
            text = "\n".join(filter(None, (_words(message.get("content")), *calls)))
            parts.append({"role": str(message.get("role", "")), "text": text})
    rest = {key: value for key, value in body.items() if key not in ("messages", "system")}
    return [*parts, {"role": "tools and parameters", "text": json.dumps(rest, indent=2, ensure_ascii=False)}]


def _words(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(map(_words, content))
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        content = content["text"]
    if content is None:
        return ""
    return content if isinstance(content, str) else json.dumps(content, indent=2, ensure_ascii=False)


def _prefix(prefix: Json | None) -> str:
    if not prefix:
        return ""
    if prefix.get("base") is None:
        return "The first request of its conversation."
    if broken_by := prefix.get("broken_by"):
        return f"The prefix was broken by {broken_by}: {prefix.get('kept')} of {prefix.get('of')} pieces kept."
    return "It begins as the request before it: a prompt cache can serve that part."
