"""Images and files in messages: how both formats write them, and which of them a model accepts."""

import re
from dataclasses import replace

from recto.chat.blocks import Block, File, Image, Text, ToolResult
from recto.providers.model import Model
from recto.window.request import Entry

PDF = "application/pdf"
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w-]+=[^;,]*)*;base64,", re.IGNORECASE)


def is_document(file: File) -> bool:
    """Whether the provider reads the file itself; every other file is sent as text."""
    return bool(file.base64 or file.url or file.sha256)


def fenced(file: File) -> str:
    """The file's name, and its text in a fence of backticks that is longer than any run in the text."""
    longest = max((len(run) for run in re.findall("`+", file.text)), default=0)
    fence = "`" * max(3, longest + 1)
    end = "" if file.text.endswith("\n") else "\n"
    return f"File {_one_line(file.name)}:\n{fence}\n{file.text}{end}{fence}"


def as_text(file: File) -> str:
    """The file's text, or its URL where it has no text and the format accepts no URLs."""
    return f"File {_one_line(file.name)}: {file.url}" if file.url and not file.text else fenced(file)


def _one_line(name: str) -> str:
    return " ".join(name.split())


def data_url(media_type: str, base64: str) -> str:
    return f"data:{media_type};base64,{base64}"


def split_data_url(url: str) -> tuple[str, str] | None:
    """Media type and base64 of a data URL; None for any other URL."""
    found = _DATA_URL.match(url)
    return ((found[1] or "text/plain").lower(), url[found.end() :]) if found else None


def unsupported(entry: Entry, model: Model) -> tuple[Image | File, ...]:
    """The images and files of an entry that the model does not accept, including those in tool results."""
    found: list[Image | File] = []
    for block in entry.blocks:
        blocks = block.attachments if isinstance(block, ToolResult) else (block,)
        found += [part for part in blocks if isinstance(part, Image | File) and not _accepts(model, part)]
    return tuple(found)


def without_unsupported(entry: Entry, model: Model) -> Entry:
    """The entry as this model accepts it. A file with known text stays as text; every other unsupported attachment
    becomes a line that says what was attached."""
    if not unsupported(entry, model):
        return entry
    return replace(entry, blocks=tuple(_supported(block, model) for block in entry.blocks))


def _supported(block: Block, model: Model) -> Block:
    if isinstance(block, ToolResult):
        attached = [_supported(attachment, model) for attachment in block.attachments]
        lines = [part.text for part in attached if isinstance(part, Text)]
        files = tuple(part for part in attached if isinstance(part, Image | File))
        return replace(block, text="\n".join((block.text, *lines)), attachments=files)
    if not isinstance(block, Image | File) or _accepts(model, block):
        return block
    if isinstance(block, File) and block.text:
        return replace(block, base64="", url="", sha256="")
    kind = "image" if isinstance(block, Image) else "file"
    return Text(f"[{_one_line(block.name) or f'An {kind}'} is attached, but this model cannot read {kind}s.]")


def _accepts(model: Model, block: Image | File) -> bool:
    return model.images if isinstance(block, Image) else model.files or not is_document(block)
