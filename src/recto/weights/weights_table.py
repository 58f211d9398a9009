"""The table of models that run on this machine: name, files by size and sha256, licence, and sources.

Knows where the files are, not how to fetch them. The data is in `weights.toml`.
"""

import os
import shutil
import sys
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.resources import files as resources
from pathlib import Path
from sysconfig import get_platform
from typing import Any

from msgspec import Struct, convert, field

from recto.errors import Invalid, NotFound

FOLDER_VARIABLE = "RECTO_MODELS"


class Carrier(Struct, frozen=True):
    """Packages of the index that hold a file, whole or in parts of equal size. `{n}` is the number of a part."""

    package: str
    member: str
    parts: int = 1
    part_bytes: int = 0


class ModelFile(Struct, frozen=True):
    name: str
    bytes: int
    sha256: str
    repo: str = ""
    """Its repository at the hub; empty if it has none."""
    carriers: tuple[Carrier, ...] = ()


class Weights(Struct, frozen=True):
    title: str
    made_by: str
    license: str
    files: tuple[ModelFile, ...]
    name: str = ""
    size: str = ""
    """A chat model's other name: standard, small or tiny."""
    memory_mb: int = 0
    max_window: int = 0
    too_slow_on: tuple[str, ...] = ()
    """Platforms, as sysconfig names them, that are too slow for it."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """A chat model's facts for the model catalog."""

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def megabytes(self) -> str:
        return f"{self.bytes / 1e6:,.0f} MB"

    def path(self, file: ModelFile) -> Path:
        return weights_folder() / self.name / file.name

    def find(self) -> list[Path] | None:
        """Its files, or None if one is missing. Raises Invalid for a file of another size; hashing takes seconds, so it
        is left to downloads."""
        paths = [self.path(file) for file in self.files]
        for path, file in zip(paths, self.files, strict=True):
            try:
                size = path.stat().st_size
            except OSError:
                return None
            if size != file.bytes:
                raise Invalid(
                    f"{path} is damaged ({size} bytes, {file.bytes} expected). Run `recto models pull {self.name}`.",
                    path=str(path),
                )
        return paths


class WeightsTable(Struct, frozen=True):
    models: Mapping[str, Weights]
    copies: tuple[str, ...]
    hub: str
    hub_path: str


def weights_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """One folder for all homes and environments."""
    if own := environment.get(FOLDER_VARIABLE):
        return Path(own).expanduser()
    if sys.platform == "darwin":
        return Path("~/Library/Caches/recto/models").expanduser()
    return Path(environment.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "recto" / "models"


@cache
def table() -> WeightsTable:
    data = tomllib.loads(resources("recto.weights").joinpath("weights.toml").read_text("utf-8"))
    for name, model in data["models"].items():
        model["name"] = name
        if like := model.get("facts", {}).pop("like", None):
            model["facts"] = data["models"][like]["facts"] | model["facts"]
    return convert(data, WeightsTable)


def named(name: str) -> Weights:
    """By name or size. Raises NotFound."""
    for each in table().models.values():
        if name in (each.name, each.size):
            return each
    known = ", ".join(f"{each.name} ({each.size})" if each.size else each.name for each in table().models.values())
    raise NotFound(f"Unknown model {name!r}. Known models: {known}.", model=name)


def chat_models() -> list[Weights]:
    return [each for each in table().models.values() if each.size]


def suitable() -> tuple[Weights, str]:
    """The best chat model for this machine's memory, disk and speed, and why it is not a better one."""
    why = ""
    for each in chat_models():
        memory, disk = _free_memory_mb(), _free_disk_mb()
        if get_platform() in each.too_slow_on:
            why = f"{each.name} would be slow here ({get_platform()})."
        elif memory < each.memory_mb:
            why = f"{each.name} needs {each.memory_mb:,} MB of memory, and {memory:,} are free."
        elif each.find() is None and disk < each.bytes / 1e6:
            why = f"{each.name} needs {each.megabytes} on the disk, and {disk:,} MB are free."
        else:
            break
    return each, why


def _free_memory_mb() -> int:
    """Available memory, or total memory if the system does not report it."""
    with suppress(OSError, ValueError, StopIteration), open("/proc/meminfo") as told:
        return int(next(line for line in told if line.startswith("MemAvailable")).split()[1]) // 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20


def _free_disk_mb() -> int:
    folder = next(each for each in (weights_folder(), *weights_folder().parents) if each.is_dir())
    return int(shutil.disk_usage(folder).free / 1e6)
