"""Plugins: packages that add providers, strategies, embedders and tools. The example is a real package, installed
into a folder of its own."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import run as run
from tests.conftest import Open, Script

import recto
from recto import plugins
from recto.errors import BrokenPlugin, NoVectors
from recto.search.embedder import open_embedder
from recto.settings.strategy import STRATEGIES
from recto.turn import session_sources

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "plugin"
Add = Callable[..., None]


def forget() -> None:
    plugins.installed_plugins.cache_clear()
    session_sources._loaded.cache_clear()
    for name in {*STRATEGIES} - {"discard", "summarize", "hybrid"}:
        del STRATEGIES[name]


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, installed by pip."""
    target = tmp_path_factory.mktemp("plugin")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--no-build-isolation", "--target", str(target), str(EXAMPLE)], check=True)
    return target


@pytest.fixture
def with_example(example: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(example))
    monkeypatch.setenv("PYTHONPATH", str(example), prepend=":")
    forget()
    yield example
    forget()


@pytest.fixture
def add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Add]:
    """Writes a package as an installer leaves it."""
    folder = tmp_path / "site"

    def write(kind: str, name: str, code: str) -> None:
        module = f"plugin_{name.replace('-', '_')}"
        info = folder / f"{module}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-package\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{plugins.GROUPS[kind]}]\n{name} = {module}:it\n")  # type: ignore[index]
        (folder / f"{module}.py").write_text(code)
        forget()

    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    yield write
    forget()


@pytest.mark.usefixtures("with_example")
def test_a_provider_of_another_package_answers(desk: Open) -> None:
    opened = desk("echo:loud")
    reply = opened.conversation().ask("Is it dry?")
    assert reply.text == "Is it dry?"
    assert reply.message.provider == "echo"
    assert all(problem is None for _, problem in opened.verify())


@pytest.mark.usefixtures("with_example")
def test_a_strategy_of_another_package_is_a_setting_like_ours(desk: Open, script: Script) -> None:
    opened = desk(script({"text": "Yes."}), context__strategy="short-memory")
    talk = opened.conversation()
    talk.ask("Is it dry?")
    assert talk.strategy_in_force() == "short-memory"
    assert STRATEGIES["short-memory"].recall.max_tokens == 512
    assert recto.fit([{"role": "user", "content": "Hello"}], model="openai:gpt-4o", strategy="short-memory").messages


@pytest.mark.usefixtures("with_example")
def test_an_embedder_of_another_package_gives_vectors_that_are_checked(tmp_path: Path) -> None:
    embedder = open_embedder("letters", home=tmp_path)
    assert embedder is not None
    assert embedder.key == "letters/1"
    vectors = embedder.embed(["boat", "moat", "xyz"])
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]
    assert abs(float(vectors[0] @ vectors[0]) - 1) < 1e-5


@pytest.mark.usefixtures("with_example")
def test_a_tool_of_another_package_runs_once_it_is_allowed(desk: Open, script: Script) -> None:
    call = {"tool_calls": [{"name": "words__count_words", "arguments": {"text": "a b c"}}]}
    talk = desk(script(call, {"text": "Not run."}, call, {"text": "Three."})).conversation()
    talk.ask("How many?")
    assert talk.messages()[-2].results[0].is_error
    talk.allow("words/count_words")
    talk.ask("How many are they?")
    assert talk.messages()[-2].results[0].text == "3 words"


def test_a_broken_provider_is_one_sentence(add: Add, desk: Open) -> None:
    add("provider", "acme", "raise RuntimeError('no\\nlicence')")
    with pytest.raises(BrokenPlugin) as raised:
        desk("acme:one").conversation().ask("Hello")
    assert raised.value.message.startswith("the provider acme of the package acme-package cannot be loaded")
    assert "\n" not in raised.value.message


def test_a_chat_goes_on_without_a_broken_strategy(add: Add, desk: Open, script: Script) -> None:
    add("strategy", "wild", "it = 3")
    talk = desk(script({"text": "Yes."}), context__strategy="wild").conversation()
    reply = talk.ask("Is it dry?")
    assert reply.text == "Yes."
    assert any("the strategy wild of the package wild-package is int" in note for note in reply.notes)


def test_a_chat_goes_on_without_a_broken_tool(add: Add, desk: Open, script: Script) -> None:
    add("tool", "hammer", "def it(): raise ValueError('bent')")
    talk = desk(script({"text": "Yes."})).conversation()
    reply = talk.ask("Is it dry?")
    assert reply.text == "Yes."
    assert any(
        "the tool hammer of the package hammer-package failed (ValueError: bent)" in note for note in reply.notes
    )


def test_a_broken_embedder_gives_no_vectors_and_says_why(add: Add, tmp_path: Path) -> None:
    add("embedder", "blur", "import nothing_of_this_name")
    embedder = open_embedder("blur", home=tmp_path)
    assert embedder is not None
    with pytest.raises(NoVectors, match="the embedder blur of the package blur-package cannot be loaded"):
        embedder.embed(["boat"])


def test_a_known_provider_is_never_replaced(add: Add, desk: Open) -> None:
    add("provider", "openai", "raise RuntimeError('never loaded')")
    with pytest.raises(recto.NoKey):
        desk("openai:gpt-4o").conversation().ask("Hello")


def test_help_looks_for_no_plugin() -> None:
    code = "import sys; from recto.cli.main import recto; recto.main(['--help'])"
    check = f"import atexit, sys; atexit.register(lambda: print('recto.plugins' in sys.modules)); exec({code!r})"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_a_provider_that_is_none_is_told(add: Add, desk: Open) -> None:
    add("provider", "odd", "def it(home, environment): return 3")
    with pytest.raises(BrokenPlugin, match="is not a provider: it lacks name, format"):
        desk("odd:one").conversation().ask("Hello")
