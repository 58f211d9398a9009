"""The distribution: its name, what is built, and what it does in an empty environment, without the repository."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import HTTPCookieProcessor, Request, build_opener, urlopen

import pytest
from tests.conftest import Script
from tests.journeys.test_readme import blocks

import recto

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = list(PROJECT["optional-dependencies"])
PYTHONS = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", each)]
HINT = re.compile(r"['`]([\w-]*recto[\w-]*)\[(\w+)\]")
NOTES = {
    "Welcome.md": "# Garden\n\nIt is for four people. The beans were sown on 3 May. See [[Budget]] and [[Sorrel]].\n",
    "Budget.md": "# Budget\n\nSeeds cost 40 euros.\n",
    "Sorrel.md": "# Sorrel\n\nA herb with sour leaves, 30 cm high.\n",
}
# Commands that need an extra, and settings that make them. The page is asked for below.
NEEDS = {
    "embedded": ("ask -m embedded:smollm2 Hello", {}),
    "meaning": ("vault search --vault notes seeds", {"RECTO_SEARCH_EMBEDDER": "minilm"}),
    "postgres": ("conversations list", {"RECTO_DB": "postgresql+psycopg://127.0.0.1:9/recto"}),
}


def test_every_hint_to_install_an_extra_names_our_distribution_and_an_extra_of_it() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "src").rglob("*.py")]
    hints = {hint for page in pages for hint in HINT.findall(page.read_text("utf-8"))}
    assert hints == {(PROJECT["name"], extra) for extra in EXTRAS}


def test_the_package_has_the_version_of_its_distribution() -> None:
    assert version(PROJECT["name"]) == recto.__version__ == PROJECT["version"]


def build(source: Path, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "hatchling", "build", *arguments], cwd=source, check=True)


def test_the_source_distribution_builds_the_same_wheel(tmp_path: Path) -> None:
    build(ROOT, "-d", str(tmp_path))
    (source,), (wheel,) = tmp_path.glob("*.tar.gz"), tmp_path.glob("*.whl")
    shutil.unpack_archive(source, tmp_path, filter="data")
    build(tmp_path / source.name.removesuffix(".tar.gz"), "-t", "wheel", "-d", str(tmp_path / "again"))
    assert (tmp_path / "again" / wheel.name).read_bytes() == wheel.read_bytes()


class Installed:
    """An environment, and a user's folder with notes to use it in. It may build upon another environment."""

    def __init__(self, python: str, place: Path, below: "Installed | None" = None) -> None:
        subprocess.run([python, "-m", "venv", *(["--without-pip"] if below else []), str(place)], check=True)
        (self.packages,) = place.glob("lib/python*/site-packages")
        if below:
            (self.packages / "below.pth").write_text(str(below.packages))
        self.python, self.folder = str(place / "bin" / "python"), place / "user"
        ours = ("PYTHON", "RECTO_")
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        self._environment |= {"RECTO_HOME": str(self.folder / "home")}
        (self.folder / "notes").mkdir(parents=True)
        for name, text in NOTES.items():
            (self.folder / "notes" / name).write_text(text)

    def install(self, wheels: Path, extras: str) -> None:
        wanted = f"{PROJECT['name']}[{extras}]=={PROJECT['version']}"
        self.run("-m", "pip", "install", "-q", "--disable-pip-version-check", "--find-links", str(wheels), wanted)

    def run(self, *arguments: str, may_fail: bool = False, given: str = "", **settings: str) -> str:
        """What Python prints."""
        done = subprocess.run(
            [self.python, *arguments],
            cwd=self.folder,
            env=self._environment | settings,
            input=given,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert may_fail or done.returncode == 0, f"{arguments}\n{done.stdout}"
        assert "Traceback" not in done.stdout, done.stdout
        return done.stdout

    def recto(self, command: str, *, may_fail: bool = False, given: str = "", **settings: str) -> str:
        return self.run("-m", "recto", *shlex.split(command), may_fail=may_fail, given=given, **settings)

    @contextmanager
    def server(self, command: str, **settings: str) -> Iterator[str]:
        """Its address. It ends in order."""
        process = subprocess.Popen(
            [self.python, "-m", "recto", *shlex.split(command)],
            cwd=self.folder,
            env=self._environment | settings,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert process.stdout
        told = []
        try:
            for line in process.stdout:
                told.append(line)
                if found := re.search(r"http://\S+", line):
                    yield found[0]
                    process.send_signal(signal.SIGTERM)
                    break
            told += process.stdout.readlines()
            assert process.wait() == 0, "".join(told)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def find_python(wanted: str) -> str:
    """Skips if that version is not on this machine: on the path, or kept by pyenv."""
    kept = sorted(map(str, (Path.home() / ".pyenv" / "versions").glob(f"{wanted}.*/bin/python")))
    for each in (sys.executable, f"python{wanted}", *kept):
        ask = [each, "-c", "import sys; print(sys.base_prefix, '%d.%d' % sys.version_info[:2])"]
        if shutil.which(each):
            prefix, _, found = subprocess.run(ask, capture_output=True, text=True).stdout.strip().rpartition(" ")
            if found == wanted:
                return f"{prefix}/bin/python{wanted}"
    pytest.skip(f"there is no Python {wanted} here")


def use_as_the_readme_shows(user: Installed, model: str) -> None:
    """With the user's own notes, and an agent of theirs."""
    user.recto("agent new yard")
    for line in "".join(blocks("sh")).splitlines():
        if line.startswith("recto "):
            command = line.removeprefix("recto ").replace("examples/vault", "notes")
            assert user.recto(command, RECTO_MODEL=model).strip(), line
    (code,) = blocks("python")
    assert "system" in user.run("-c", code.replace("examples/vault", "notes"), RECTO_MODEL=model)


def check_the_endpoint(user: Installed, model: str) -> None:
    with user.server("serve --open --port 0", RECTO_MODEL=model) as address:
        body = {"model": "recto", "messages": [{"role": "user", "content": "Hello"}]}
        headers = {"Content-Type": "application/json"}
        with urlopen(Request(f"{address}/chat/completions", json.dumps(body).encode(), headers)) as answer:
            assert json.load(answer)["choices"][0]["message"]["content"]


def check_the_page(user: Installed, model: str) -> None:
    with user.server("web --no-open --vault notes", RECTO_MODEL=model) as link:
        address, opener = link.partition("?")[0], build_opener(HTTPCookieProcessor(CookieJar()))
        opener.open(link).close()  # gives the cookie
        with opener.open(address) as answer:
            (style,) = re.findall(r'href="/([^"]*page\.css)"', answer.read().decode())
        with opener.open(f"{address}{style}") as answer:
            assert answer.read() == (ROOT / "src/recto/web/assets/page.css").read_bytes()


def check_extra(user: Installed, extra: str, model: str, *, is_there: bool) -> None:
    """Where it is missing, one sentence names it."""
    hint = f"pip install '{PROJECT['name']}[{extra}]'"
    if extra in NEEDS:
        command, settings = NEEDS[extra]
        told = user.recto(command, may_fail=True, **({"RECTO_MODEL": model} | settings))
        assert (hint in told) is not is_there, told
    elif extra == "web" and not is_there:
        assert user.recto("web", may_fail=True) == f"recto: the page needs an extra: {hint}\n"
    elif extra == "web":
        if is_there:
            check_the_page(user, model)
    elif extra == "serve":
        check_the_endpoint(user, model)
    else:
        assert "is stored in" in user.recto("keys set openai", given="sk-0123456789")


@pytest.mark.slow
@pytest.mark.untraced
@pytest.mark.parametrize("wanted", PYTHONS)
def test_the_wheel_does_everything_without_the_repository(wanted: str, script: Script) -> None:
    python, model = find_python(wanted), script({"text": "She was built in 1934."})
    with TemporaryDirectory() as place:
        wheels = Path(place) / "wheels"
        build(ROOT, "-t", "wheel", "-d", str(wheels))
        plain = Installed(python, Path(place) / "plain")
        plain.install(wheels, "")
        use_as_the_readme_shows(plain, model)
        for extra in EXTRAS:
            check_extra(plain, extra, model, is_there=False)
            user = Installed(python, Path(place) / extra, below=plain)
            user.install(wheels, extra)
            check_extra(user, extra, model, is_there=True)
        full = Installed(python, Path(place) / "full", below=plain)
        full.install(wheels, ",".join(EXTRAS))
        use_as_the_readme_shows(full, model)
        for extra in EXTRAS:
            check_extra(full, extra, model, is_there=True)
