"""The folder of this room and its small JSON files: read as they are, written whole or not at all, for the user's eyes
only."""

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any


def private(folder: Path) -> Path:
    """Makes the folder, which nobody else may look into. One that cannot be made is told by what needs it."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
    return folder


def read_json(path: Path) -> dict[str, Any]:
    """Empty where there is none, or none that can be read: what these files hold can be found again."""
    try:
        read = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def write_json(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".", delete=False, encoding="utf-8") as file:
        try:
            json.dump(value, file, ensure_ascii=False)
            file.close()
            os.replace(file.name, path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
