"""Every regular expression of the package, with the methods that it is used by: found in the source and by importing.

A pattern that a function puts together cannot be found this way. `MADE` has examples of those, by module and function,
and `find_patterns` names the ones that are missing there.
"""

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec import Struct

import recto
from recto.base.text import LazyPattern
from recto.memory.statements import _requests
from recto.sentences.words import phrases, tables, word_class
from recto.vault.gitignore import _parse_pattern
from recto.vault.question import _unspaced_asking
from recto.window.request import _openings

SOURCE = Path(recto.__file__).parent
AnyPattern = re.Pattern[str] | re.Pattern[bytes]
# All that go on after a match take as long as `finditer`.
METHODS = {
    "match": "match",
    "fullmatch": "fullmatch",
    "search": "search",
    **dict.fromkeys(("finditer", "findall", "sub", "subn", "split"), "finditer"),
}
_FLAGS_AT = {"compile": 1, "split": 3, "sub": 4, "subn": 4}


class UsedPattern(Struct, frozen=True):
    name: str
    """`recto.module.NAME`, or `recto.module.function` where it has no name."""
    pattern: AnyPattern
    method: str

    def __str__(self) -> str:
        return f"{self.name} {self.method}"


class FoundPatterns(Struct, frozen=True):
    used: tuple[UsedPattern, ...]
    missing: frozenset[str]
    """Functions that make patterns, and are not in `MADE`."""
    unneeded: frozenset[str]
    """Those in `MADE` that make none."""


_CONTROL = ("<|im_start|>", "[INST]", "<<")


def _ignore_patterns() -> list[AnyPattern]:
    found = [parsed for line in ("*a*a*b", "a/**/b/**/c", "[ab]*.tmp", "/x*/") if (parsed := _parse_pattern(line))]
    return [each.regex for each in found]


MADE: dict[str, tuple[str, Callable[[], list[AnyPattern]]]] = {
    "recto.sentences.words.__init__": ("search", lambda: [word_class(name)._inside for name in tables()]),
    "recto.sentences.words.phrases": (
        "search",
        lambda: [phrases(name) for name in ("people", "changes", "denials", "the_user", "remembering", "leaning")],
    ),
    "recto.memory.statements._requests": ("match", lambda: [*_requests()]),
    "recto.vault.question._unspaced_asking": ("finditer", lambda: [_unspaced_asking()]),
    "recto.sources.use_detection._as_written": ("search", lambda: [re.compile(r"a[\W_]+a[\W_]+b", re.IGNORECASE)]),
    "recto.base.text.without_key": ("sub", lambda: [re.compile(r"sk\-abc[\w*•…-]*")]),
    "recto.cli.drawing.transcripts._places": ("finditer", lambda: [re.compile(r"\bhar\w{0,6}\b")]),
    "recto.store.backup._named": ("fullmatch", lambda: [re.compile(r"recto-\d{8}T\d{6}(?:-\d+)?\.db")]),
    "recto.summary.evidence.states": ("search", lambda: [re.compile(r"(?<!\w)a(?!\w)")]),
    "recto.vault.gitignore._parse_pattern": ("fullmatch", _ignore_patterns),
    "recto.window.request._openings": ("finditer", lambda: [each for each in [_openings(_CONTROL)] if each]),
}
# Modules in which patterns are made; uses of a pattern; names from other modules.
_MAKES = re.compile(r"\bre\.|\b_pattern\(|\bLazyPattern\(")
_USES = re.compile(rf"\b(\w+)\.({'|'.join(METHODS)})\b")
_IMPORTS = re.compile(r"^\s*from ([\w.]+) import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)
# Compile a text that a module holds: each text is found where it is given to them.
_COMPILERS = frozenset(("_pattern", "LazyPattern"))


@cache
def find_patterns() -> FoundPatterns:
    texts = {_name_of(path): path.read_text() for path in sorted(SOURCE.rglob("*.py")) if _is_read(path)}
    modules = {name: importlib.import_module(name) for name in texts}
    calls = [_Calls(name, modules[name], ast.parse(text)) for name, text in texts.items() if _MAKES.search(text)]
    methods, dynamic = _methods(texts), {name for each in calls for name in each.dynamic}
    found = [each for of_module in calls for each in of_module.found]
    found += [(name, pattern, (method,)) for name, (method, make) in MADE.items() for pattern in make()]
    known = {(pattern.pattern, pattern.flags) for _, pattern, _ in found}
    held = ((f"{name}.{key}", pattern, ()) for name, module in modules.items() for key, pattern in _held(module))
    found += [each for each in held if (each[1].pattern, each[1].flags) not in known]
    used: dict[tuple[str, str | bytes, int], UsedPattern] = {}
    for name, pattern, by in found:
        for method in sorted({METHODS[each] for each in by or methods.get(name) or METHODS}):
            used.setdefault((method, pattern.pattern, pattern.flags), UsedPattern(name, pattern, method))
    return FoundPatterns(tuple(used.values()), frozenset(dynamic - MADE.keys()), frozenset(MADE.keys() - dynamic))


def _is_read(path: Path) -> bool:
    return path.name != "__main__.py" and "migrations" not in path.parts


def _name_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


def _methods(texts: dict[str, str]) -> dict[str, set[str]]:
    """By the name of a pattern: the methods that any module uses it by. Read as text: all syntax trees take seconds."""
    found = defaultdict[str, set[str]](set)
    for name, text in texts.items():
        imported = {
            words[-1]: f"{module}.{words[0]}"
            for module, several, one in _IMPORTS.findall(text)
            for alias in (several or one).split(",")
            if (words := alias.split())
        }
        for target, method in _USES.findall(text):
            found[imported.get(target, f"{name}.{target}")].add(method)
    return found


class _Calls:
    """The calls of a module that compile a pattern."""

    def __init__(self, name: str, module: ModuleType, tree: ast.Module) -> None:
        self._name, self._module = name, module
        self.found: list[tuple[str, AnyPattern, tuple[str, ...]]] = []
        self.dynamic: set[str] = set()
        self._walk(tree, "", None)

    def _walk(self, node: ast.AST, function: str, target: str | None) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and not function:
            target = node.targets[0].id if isinstance(node.value, ast.Call) else None
        if isinstance(node, ast.Call):
            self._call(node, function, target)
        for child in ast.iter_child_nodes(node):
            # in `_NAME = re.compile(…)` the name is that of the call, not of calls in its arguments
            self._walk(child, function, None if isinstance(node, ast.Call) else target)

    def _call(self, call: ast.Call, function: str, target: str | None) -> None:
        of = call.func
        if isinstance(of, ast.Name) and of.id in _COMPILERS and call.args:
            method, flags = "compile", re.IGNORECASE if of.id == "_pattern" else 0
        elif isinstance(of, ast.Attribute) and isinstance(of.value, ast.Name) and of.value.id == "re":
            method, flags = of.attr, 0
        else:
            return
        if method != "compile" and method not in METHODS:
            return
        at = _FLAGS_AT.get(method, 2)
        by_name = [each.value for each in call.keywords if each.arg == "flags"]
        given = next(iter([*call.args[at : at + 1], *by_name]), None)
        named = f"{self._name}.{target or function}"
        try:
            pattern = re.compile(self._value(call.args[0]), flags | (self._value(given) if given else 0))
        except NameError:
            # of what compiles a text of its module the callers are found, and of lazy patterns the values
            is_lazy = isinstance(of, ast.Name) or named == "recto.base.text._compiled"
            if not is_lazy and (function not in _COMPILERS or named in MADE) and not _is_own_text(call):
                self.dynamic.add(named)
            return
        except TypeError:
            return
        self.found.append((named, pattern, () if method == "compile" else (method,)))

    def _value(self, node: ast.expr) -> Any:
        return eval(compile(ast.Expression(node), self._name, "eval"), vars(self._module))


def _is_own_text(call: ast.Call) -> bool:
    """`re.fullmatch(names, span)`: the names are a constant of the module, and short."""
    return isinstance(call.args[0], ast.Name) and call.args[0].id == "names"


def _held(module: ModuleType) -> Iterator[tuple[str, AnyPattern]]:
    """Patterns in the values of a module: alone, in tuples and dicts, in structs, and compiled later."""
    for name, value in vars(module).items():
        if not name.startswith("__"):
            yield from ((name, pattern) for pattern in _inside(value, 0))


def _inside(value: Any, depth: int) -> Iterator[AnyPattern]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, LazyPattern):
        yield value._compiled
    elif isinstance(value, dict) and depth < 4:
        for each in (*value.keys(), *value.values()):
            yield from _inside(each, depth + 1)
    elif isinstance(value, list | tuple | set | frozenset) and depth < 4:
        for each in value:
            yield from _inside(each, depth + 1)
    elif isinstance(value, Struct) and depth < 4:
        for name in value.__struct_fields__:
            yield from _inside(getattr(value, name), depth + 1)
