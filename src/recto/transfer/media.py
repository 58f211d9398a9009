"""Files that come with an export: found by the beginning of their name, in the export's folder or archive."""

import os
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

MAX_FILE_BYTES = 64 << 20
_KEY = re.compile(r"[A-Za-z0-9][\w-]{3,127}")

FindMedia = Callable[[str], tuple[str, bytes] | None]
"""Gives the name and the bytes of the file whose name begins with this key; None where there is none."""


def folder_media(folder: Path) -> FindMedia:
    """Files beside an export. Their names come from the folder, never from the export."""

    @cache
    def listed() -> FindMedia:
        with os.scandir(folder) as found:
            sizes = {each.name: each.stat().st_size for each in found if each.is_file(follow_symlinks=False)}
        return _finder(sizes, lambda name: (folder / name).read_bytes())

    return lambda key: listed()(key)


def archive_media(archive: ZipFile) -> FindMedia:
    sizes = {each.filename: each.file_size for each in archive.infolist() if not each.is_dir()}
    return _finder(sizes, archive.read)


def _finder(sizes: dict[str, int], read: Callable[[str], bytes]) -> FindMedia:
    names = _by_beginning(sizes)

    def find(key: str) -> tuple[str, bytes] | None:
        name = names.get(key) if _KEY.fullmatch(key) else None
        if name is None or sizes[name] > MAX_FILE_BYTES:
            return None
        own = PurePosixPath(name).name
        return own.removeprefix(key).lstrip("-_") or own, read(name)

    return find


def _by_beginning(names: Iterable[str]) -> dict[str, str]:
    """`file-abc-photo.png` and `file_abc.dat` by `file-abc` and `file_abc`."""
    found: dict[str, str] = {}
    for name in names:
        own = PurePosixPath(name).name
        found.setdefault(own.partition(".")[0], name)
        if key := re.match(r"file[-_][A-Za-z0-9]+", own):
            found.setdefault(key[0], name)
    return found
