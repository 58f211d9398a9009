"""What a server answered, as an Outcome: texts as text, everything else kept beside it with a line that says so."""

import base64
import binascii
import json
from typing import TYPE_CHECKING

from recto.sources.tools import Media, Outcome

if TYPE_CHECKING:
    from mcp.types import BlobResourceContents, CallToolResult, ContentBlock, TextResourceContents

OCTETS = "application/octet-stream"


def outcome_of(result: "CallToolResult") -> Outcome:
    told = [_told(block) for block in result.content]
    texts = [text for text, _ in told if text]
    if not texts and result.structured_content is not None:
        texts = [json.dumps(result.structured_content, ensure_ascii=False)]
    media = tuple(each for _, each in told if each)
    return Outcome("\n\n".join(texts), result.is_error, media)


def _told(block: "ContentBlock") -> tuple[str, Media | None]:
    match block.type:
        case "text":
            return block.text, None
        case "image" | "audio":
            return _media(block.type, block.mime_type, block.data)
        case "resource":
            return _resource(block.resource)
        case "resource_link":
            about = f": {block.description}" if block.description else ""
            return f"[resource: {block.title or block.name}, {block.uri}{about}]", None


def _resource(resource: "TextResourceContents | BlobResourceContents") -> tuple[str, Media | None]:
    text = getattr(resource, "text", None)
    if text is not None:
        return f"{resource.uri}\n{text}", None
    return _media(f"file {resource.uri}", resource.mime_type or OCTETS, getattr(resource, "blob", ""))


def _media(what: str, media_type: str, encoded: str) -> tuple[str, Media | None]:
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return f"[{what}: {media_type}, not valid base64, left out]", None
    return f"[{what}: {media_type}, {len(data):,} bytes, kept]", Media(media_type, data)
