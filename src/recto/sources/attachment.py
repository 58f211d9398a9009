"""Attachments: files that a user gives with a message, as blocks: images, PDFs, and everything that is text."""

import base64
import stat
from pathlib import Path

from recto.chat.blocks import File, Image
from recto.errors import Invalid, NotFound
from recto.vault.encoding import decode_text

# Providers refuse more; a larger file is a document to search, not to attach.
LARGEST = 20_000_000
PDF = "application/pdf"
_IMAGES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def read_attachment(path: str | Path) -> Image | File:
    """The file as a block, told by its first bytes. NotFound or Invalid says why there is none."""
    place = Path(path).expanduser()
    try:
        if not stat.S_ISREG(place.stat().st_mode):  # a pipe would block, and a device has no end
            raise Invalid(f"{place} is not a file and cannot be attached", path=str(place))
        with place.open("rb") as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise Invalid(f"{place} has more than {LARGEST // 1_000_000} MB and cannot be attached", path=str(place))
        return attachment(place.name, data)
    except FileNotFoundError as why:
        raise NotFound(f"there is no file {place} to attach", path=str(place)) from why
    except OSError as why:
        raise Invalid(f"{place} cannot be read: {why.strerror}", path=str(place)) from why


def attachment(name: str, data: bytes) -> Image | File:
    """Bytes of a file as a block."""
    name = "".join(letter if letter.isprintable() else " " for letter in name)
    if not data:
        raise Invalid(f"{name} is empty: there is nothing to attach", name=name)
    encoded = base64.b64encode(data).decode
    if media_type := _image_type(data):
        return Image(media_type, encoded(), name=name)
    if data.startswith(b"%PDF-"):
        return File(name, "", PDF, base64=encoded())
    try:
        return File(name, decode_text(data, name))
    except Invalid as why:
        raise Invalid(f"{name} is neither text nor an image nor a PDF: it cannot be attached", name=name) from why


def _image_type(data: bytes) -> str:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _IMAGES.items() if data.startswith(start)), "")
