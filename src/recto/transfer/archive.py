"""ZIP archives as they are delivered. Their JSON files are unpacked into a temporary folder, within bounds."""

import lzma
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile, ZipInfo

from recto.errors import Invalid

MAGIC = b"PK\x03\x04"
MAX_UNPACKED_BYTES = 4 << 30
MAX_RATIO = 200
"""Text shrinks to a tenth; what shrinks to so little of itself was made to fill a disk."""
# Small files may shrink to nearly nothing.
HARMLESS_BYTES = 16 << 20
_CONVERSATIONS = re.compile(r"conversations(?:[-_]\d+)?\.json")


@contextmanager
def unpacked(path: Path) -> Iterator[tuple[list[Path], ZipFile]]:
    """The files with conversations, and the archive itself for what they refer to."""
    try:
        with ZipFile(path) as archive, TemporaryDirectory(prefix="recto-import-") as folder:
            yield [_unpack(archive, each, Path(folder)) for each in _conversations(archive, path)], archive
    except (BadZipFile, zlib.error, lzma.LZMAError, EOFError) as why:
        raise Invalid(f"{path.name} is damaged or was cut off ({why}); nothing was imported") from why
    except (NotImplementedError, RuntimeError) as why:  # an unknown compression, a password
        raise Invalid(f"{path.name} cannot be unpacked ({why}); unpack it yourself") from why


def _conversations(archive: ZipFile, path: Path) -> list[ZipInfo]:
    found = [each for each in archive.infolist() if _CONVERSATIONS.fullmatch(PurePosixPath(each.filename).name)]
    if not found:
        raise Invalid(f"{path.name} holds no conversations.json: it is not the export of a chat")
    size, packed = sum(each.file_size for each in found), sum(each.compress_size for each in found)
    if size > MAX_UNPACKED_BYTES or (size > HARMLESS_BYTES and size > MAX_RATIO * packed):
        raise Invalid(f"{path.name} would unpack to {size:,} bytes from {packed:,}: that is no export of a chat")
    return sorted(found, key=lambda each: each.filename)


def _unpack(archive: ZipFile, member: ZipInfo, folder: Path) -> Path:
    # the name is ours: one from an archive may lead anywhere
    target = folder / f"{len(list(folder.iterdir()))}-{PurePosixPath(member.filename).name}"
    with archive.open(member) as source, target.open("wb") as file:
        copyfileobj(source, file)
    return target
