"""Generates `api/blocking.py`: Talk and Desk, the blocking form of AsyncTalk and AsyncDesk.

Every public method and attribute is read from the source of the asynchronous classes, with its signature and docstring.
What only blocking code needs is in the two templates.
"""

import ast
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import recto
from recto.api.desk import AsyncDesk
from recto.api.talk import AsyncTalk

API = Path(recto.__file__).parent / "api"
BLOCKING = API / "blocking.py"
ASYNCHRONOUS = {"Talk": AsyncTalk, "Desk": AsyncDesk}
SOURCES = {"Talk": ("talk_reader.py", "talk.py"), "Desk": ("desk.py",)}
HEADER = '''"""Talk and Desk: AsyncTalk and AsyncDesk for blocking code. Work runs on a loop in a background thread.

Generated from the asynchronous classes by `make docs`; do not edit.
"""
'''
IMPORTS = """
from collections.abc import Coroutine, Generator, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar
from recto.api.desk import AsyncDesk, DeskOptions, new_desk
from recto.api.loop import Loop
from recto.api.talk import AsyncTalk
"""
STARTS = {
    "Talk": '''
class Talk:
    """One conversation, from one client's place in it. It is stored with its first message."""

    def __init__(self, talk: AsyncTalk, loop: Loop) -> None:
        self._talk, self._loop = talk, loop

    @property
    def asynchronous(self) -> AsyncTalk:
        """The same conversation for asynchronous code."""
        return self._talk
''',
    "Desk": '''
class Desk:
    """An open store with settings and a vault. Use it as a context manager, or `close()` it."""

    def __init__(self, desk: AsyncDesk) -> None:
        self._desk, self._loop = desk, Loop()

    @property
    def asynchronous(self) -> AsyncDesk:
        """The same desk for asynchronous code."""
        return self._desk

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the desk's loop."""
        return self._loop.run(work)

    def close(self) -> None:
        self._loop.run(self._desk.close())
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
''',
}
END = '''
def open_desk(**options: Unpack[DeskOptions]) -> Desk:
    """A desk on `home` (default: RECTO_HOME or ~/.recto). Keyword settings win over files and environment."""
    return Desk(new_desk(**options))
'''
Method = ast.FunctionDef | ast.AsyncFunctionDef


def blocking_source() -> str:
    """What `api/blocking.py` should be."""
    trees = {name: [ast.parse((API / file).read_text("utf-8")) for file in files] for name, files in SOURCES.items()}
    classes = "".join(STARTS[name] + "".join(_members(name, trees[name])) for name in SOURCES)
    body = f'T = TypeVar("T")\n\n{classes}\n{END}'
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    imports = [line for known in trees.values() for tree in known for line in _imports(tree, used)]
    return _formatted("\n".join((HEADER, IMPORTS, *imports, "", body)))


def _members(name: str, trees: list[ast.Module]) -> Iterator[str]:
    inner = f"self._{name.lower()}"
    for node in (node for tree in trees for node in _async_class(tree).body):
        match node:
            case ast.AnnAssign(target=ast.Name(id=attribute)) if not attribute.startswith("_"):
                returns = ast.unparse(node.annotation)
                yield f"\n    @property\n    def {attribute}(self) -> {returns}:\n        return {inner}.{attribute}\n"
            case ast.FunctionDef() | ast.AsyncFunctionDef() if not node.name.startswith("_") and node.name != "close":
                yield _method(node, inner, ASYNCHRONOUS[name])


def _async_class(tree: ast.Module) -> ast.ClassDef:
    return next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name.startswith("Async"))


def _method(node: Method, inner: str, owner: type) -> str:
    is_property = bool(node.decorator_list)
    asynchronous = ast.unparse(node.returns) if node.returns else "None"
    returns = re.sub(r"\bAsync(?=Talk|Iterator)", "", asynchronous).replace(
        "AsyncGenerator[Event, None]", "Generator[Event]"
    )
    head = "    @property\n" if is_property else ""
    return (
        f"\n{head}    def {node.name}({ast.unparse(node.args)}) -> {returns}:\n"
        f"{_docstring(node, owner)}{_body(node, asynchronous, f'{inner}.{node.name}', is_property=is_property)}"
    )


def _docstring(node: Method, owner: type) -> str:
    text = ast.get_docstring(node)
    if node.args.kwarg:
        (options,) = get_args(inspect.signature(getattr(owner, node.name)).parameters[node.args.kwarg.arg].annotation)
        listed = textwrap.fill(f"Options: {', '.join(options.__annotations__)}.", 110)
        text = f"{text}\n\n{listed}" if text else listed
    if not text:
        return ""
    end = "\n" if "\n" in text else ""
    return textwrap.indent(f'"""{text}{end}"""\n', "        ")


def _body(node: Method, returns: str, called: str, *, is_property: bool) -> str:
    """Calls the asynchronous twin with the same arguments and waits for what it gives."""
    if is_property:
        return f"        return {called}\n"
    arguments = [each.arg for each in node.args.args[1:]]
    arguments += [f"{each.arg}={each.arg}" for each in node.args.kwonlyargs]
    arguments += [f"**{node.args.kwarg.arg}"] if node.args.kwarg else []
    call = f"{called}({', '.join(arguments)})"
    if returns.startswith("AsyncGenerator"):
        return f"        return self._loop.stream({call})\n"
    if returns.startswith("AsyncIterator"):
        return f"        return self._loop.iterate({call})\n"
    if isinstance(node, ast.FunctionDef):
        return f"        return {call}\n"
    if returns == "AsyncTalk":
        return f"        return Talk(self._loop.run({call}), self._loop)\n"
    if returns == "AsyncTalk | None":
        return f"        talk = self._loop.run({call})\n        return Talk(talk, self._loop) if talk else None\n"
    return f"        {'' if returns == 'None' else 'return '}self._loop.run({call})\n"


def _imports(tree: ast.Module, used: set[str]) -> Iterator[str]:
    """The imports of a module whose names are used, and those of its own names that are."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            for each in node.names:
                if (each.asname or each.name) in used:
                    yield f"from {node.module} import {each.name}" + (f" as {each.asname}" if each.asname else "")
        elif isinstance(node, ast.ClassDef) and node.name in used and not node.name.startswith("Async"):
            yield f"from recto.api.{_file_of(node.name)} import {node.name}"


def _file_of(name: str) -> str:
    files = (file for known in SOURCES.values() for file in known)
    return next(file for file in files if f"\nclass {name}" in (API / file).read_text("utf-8")).removesuffix(".py")


def _formatted(source: str) -> str:
    for command in ("check --fix-only --quiet --select I,F401,F811", "format --quiet"):
        ruff = [sys.executable, "-m", "ruff", *command.split(), "--stdin-filename", str(BLOCKING), "-"]
        source = subprocess.run(ruff, input=source, capture_output=True, text=True, check=True).stdout
    return source
