"""The formats that can be imported: which one a file has, told by its content, and what reads it."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recto.chat.message import stored_time
from recto.errors import Invalid, NotFound
from recto.transfer import archive
from recto.transfer.chatgpt import is_chatgpt, read_chatgpt
from recto.transfer.claude import is_claude, read_claude
from recto.transfer.foreign import ForeignConversation, ForeignTree
from recto.transfer.incoming import ConversationSource, IncomingConversation
from recto.transfer.json_items import JsonFile, JsonItem
from recto.transfer.librechat import is_librechat, read_librechat
from recto.transfer.lines import FORMAT
from recto.transfer.llm_logs import MAGIC as SQLITE_MAGIC
from recto.transfer.llm_logs import LlmLogs
from recto.transfer.media import FindMedia, archive_media, folder_media
from recto.transfer.openai_messages import is_list, is_message, read_lists
from recto.transfer.recto_json import RectoFile
from recto.transfer.report import IMPORT_FORMATS, ImportFormat

# So much of a file tells what it is.
BEGINNING = 1 << 12
Read = Callable[[Iterator[JsonItem], FindMedia], Iterator[tuple[ForeignConversation, JsonItem]]]
_JSON: dict[ImportFormat, tuple[Callable[[Any], bool], Read]] = {
    "chatgpt": (is_chatgpt, read_chatgpt),
    "claude": (is_claude, read_claude),
    "librechat": (is_librechat, lambda items, media: read_librechat(items)),
    "openai": (lambda value: _is_openai(value), lambda items, media: read_lists(items)),
}


@contextmanager
def open_source(path: Path, format: ImportFormat | None = None) -> Iterator[ConversationSource]:
    """The conversations of a file; `format` says what it is where the file itself does not."""
    try:
        if path.is_dir():
            raise Invalid(f"{path} is a folder; name a file in it, such as conversations.json", path=str(path))
        with path.open("rb") as file:
            beginning = file.read(BEGINNING)
        if not beginning.strip():
            raise Invalid(f"{path} is empty: there is nothing to import", path=str(path))
        with _opened(path, beginning, format) as source:
            yield source
    except FileNotFoundError as why:
        raise NotFound(f"there is no file {path}", path=str(path)) from why
    except OSError as why:
        raise Invalid(f"cannot read {path}: {why.strerror or why}", path=str(path)) from why


@contextmanager
def _opened(path: Path, beginning: bytes, format: ImportFormat | None) -> Iterator[ConversationSource]:
    changed = stored_time(datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat())
    if beginning.startswith(archive.MAGIC):
        with archive.unpacked(path) as (files, found):
            yield JsonSource(files, format, archive_media(found), changed)
    elif format == "llm" or (format is None and beginning.startswith(SQLITE_MAGIC)):
        yield LlmLogs(path, changed)
    elif format == "recto" or (format is None and f'"{FORMAT}"'.encode() in beginning.partition(b"\n")[0]):
        yield RectoFile(path)
    else:
        yield JsonSource([path], format, folder_media(path.parent), changed)


class JsonSource:
    """JSON files of another program."""

    def __init__(self, files: list[Path], format: ImportFormat | None, media: FindMedia, changed: str) -> None:
        self._files = [JsonFile(file) for file in files]
        self._media, self._changed = media, changed
        self.name: ImportFormat = format or _sniffed(self._files)
        self.size = sum(file.size for file in self._files)

    def conversations(self) -> Generator[IncomingConversation, None, None]:
        before = 0
        for file in self._files:
            _, read = _JSON[self.name]
            for found, item in read(file.items(), self._media):
                yield ForeignTree(self.name, found, item.place, self._changed).incoming(before + item.end)
            before += file.size


def _sniffed(files: list[JsonFile]) -> ImportFormat:
    """The format of the first item that has one: an export may begin with an empty conversation."""
    for file in files:
        for item in file.items():
            for name, (is_in_format, _) in _JSON.items():
                if is_in_format(item.value):
                    return name
    known = ", ".join(IMPORT_FORMATS)
    raise Invalid(f"{files[0].name} is in no format that is known ({known}); nothing was imported")


def _is_openai(value: Any) -> bool:
    return is_message(value) or is_list(value) or (isinstance(value, list) and bool(value) and is_message(value[0]))
