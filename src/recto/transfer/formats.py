"""The formats that can be imported: which one a file has, told by its content, and what reads it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from recto.errors import Invalid, NotFound
from recto.transfer.incoming import ConversationSource
from recto.transfer.lines import FORMAT
from recto.transfer.recto_json import RectoFile
from recto.transfer.report import ImportFormat

FORMATS: dict[ImportFormat, Callable[[Path], ConversationSource]] = {
    "recto": RectoFile,
}
# So much of a file tells what it is.
BEGINNING = 1 << 16


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
        yield FORMATS[format or _sniffed(path, beginning)](path)
    except FileNotFoundError as why:
        raise NotFound(f"there is no file {path}", path=str(path)) from why
    except OSError as why:
        raise Invalid(f"cannot read {path}: {why.strerror}", path=str(path)) from why


def _sniffed(path: Path, beginning: bytes) -> ImportFormat:
    if f'"{FORMAT}"'.encode() in beginning.partition(b"\n")[0]:
        return "recto"
    raise Invalid(f"{path} is in no format that is known; known are {', '.join(FORMATS)}", path=str(path))
