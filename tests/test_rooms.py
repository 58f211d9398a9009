"""The structure itself: who knows whom, one name for one thing, one writer of a session."""

import ast
import gc
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.untraced

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "recto"
# In order of knowledge: a room knows those before it. Rooms on one line do not know each other.
ORDER = [
    {"errors"},
    {"base", "plugins"},
    {"weights"},
    {"settings"},
    {"chat"},
    {"sentences"},
    {"search"},
    {"vault"},
    {"sources"},
    {"agents", "mcp", "tasks"},
    {"window"},
    {"summary"},
    {"wire"},
    {"providers", "store"},
    {"events", "transfer"},
    {"turn"},
    {"compaction", "recall", "memory"},
    {"engine"},
    {"reports"},
    {"api"},
    {"serve"},
    {"web"},
    {"cli"},
]
MOST_NAMES = 10
LEVEL = {room: level for level, rooms in enumerate(ORDER) for room in rooms}


class Parsed(NamedTuple):
    path: Path
    room: str
    classes: list[str]
    functions: list[str]
    constants: list[str]
    nodes: list[ast.AST]
    """Imports, attributes and comparisons: all 700,000 would be in the way of every garbage collection."""


@cache
def modules() -> list[Parsed]:
    collects = gc.isenabled()
    gc.disable()  # it would take longer than parsing
    try:
        return [_parsed(path) for path in sorted(SOURCE.rglob("*.py")) if _is_module(path.relative_to(SOURCE))]
    finally:
        if collects:
            gc.enable()


def _is_module(path: Path) -> bool:
    return path.name not in ("__init__.py", "__main__.py") or len(path.parts) > 1


def _parsed(path: Path) -> Parsed:
    tree, relative = ast.parse(path.read_text()), path.relative_to(SOURCE)
    targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    return Parsed(
        relative,
        relative.parts[0].removesuffix(".py"),
        [node.name for node in tree.body if isinstance(node, ast.ClassDef)],
        [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)],
        [target.id for target in targets if isinstance(target, ast.Name)],
        [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom | ast.Attribute | ast.Compare)],
    )


def imports(nodes: list[ast.AST]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "recto":
            room = node.module.split(".")[1:2]
            for alias in node.names:
                if room or alias.name in LEVEL:
                    yield (room[0] if room else alias.name), alias.name


def test_a_room_knows_the_rooms_above_it_and_none_below() -> None:
    wrong = {
        f"{path} imports {known}"
        for path, room, *_, nodes in modules()
        for known, _ in imports(nodes)
        if known != room and LEVEL[known] >= LEVEL[room]
    }
    assert not wrong


def test_a_room_hands_out_no_name_with_an_underscore() -> None:
    wrong = {
        f"{path} imports {known}.{name}"
        for path, room, *_, nodes in modules()
        for known, name in imports(nodes)
        if known != room and name.startswith("_")
    }
    assert not wrong


def test_a_package_shows_at_most_ten_names() -> None:
    """Those that its `__init__` defines, or imports from its modules. `recto` itself shows what its page documents."""
    shown = {
        each.path.parent: [*each.classes, *each.functions, *(name for _, name in imports(each.nodes))]
        for each in modules()
        if each.path.name == "__init__.py"
    }
    names = {str(package): [name for name in found if not name.startswith("_")] for package, found in shown.items()}
    assert {package: found for package, found in names.items() if len(found) > MOST_NAMES} == {}


def test_a_name_is_defined_once_in_its_room() -> None:
    found, imported = defaultdict(set), set()
    for each in modules():
        froms = [node for node in each.nodes if isinstance(node, ast.ImportFrom)]
        imported |= {f"{node.module}.{alias.name}" for node in froms for alias in node.names}
    for each in modules():
        own = ".".join(("recto", *each.path.with_suffix("").parts))
        for name in (*each.classes, *(name for name in each.functions if f"{own}.{name}" in imported)):
            if len(each.path.parts) > 1:
                found[each.path.parent / name].add(each.path.name)
    assert {str(name): places for name, places in found.items() if len(places) > 1} == {}


def test_only_the_session_itself_writes_its_fields() -> None:
    fields = set(re.findall(r"^    (\w+): ", (SOURCE / "turn" / "session.py").read_text(), re.MULTILINE))
    writes = {
        f"{path}:{node.lineno}"
        for path, *_, nodes in modules()
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr in fields
        if _is_session(node.value)
    }
    assert not writes


def _is_session(node: ast.expr) -> bool:
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name in ("session", "_session")


def test_nothing_outside_of_providers_compares_the_name_of_a_format() -> None:
    names = {"openai", "anthropic"}
    wrong = {
        f"{path}:{node.lineno}"
        for path, room, *_, nodes in modules()
        if room != "providers"
        for node in nodes
        if isinstance(node, ast.Compare)
        if any(isinstance(each, ast.Constant) and each.value in names for each in (node.left, *node.comparators))
    }
    assert not wrong


def test_no_strategy_is_compared_by_its_name() -> None:
    names = {"discard", "summarize", "hybrid"}
    wrong = {
        f"{path}:{node.lineno}"
        for path, *_, nodes in modules()
        for node in nodes
        if isinstance(node, ast.Compare)
        if any(isinstance(each, ast.Constant) and each.value in names for each in (node.left, *node.comparators))
    }
    assert not wrong


def test_every_name_of_the_glossary_is_in_the_code() -> None:
    page = (ROOT / "docs" / "design.md").read_text()
    glossary = page[page.index("## Glossary") : page.index("## Pickers")]
    names = re.findall(r"`([a-z_]+(?:\.[a-z_]+)*)\.([A-Z]\w+)`", glossary)
    assert len(names) > 20
    missing = {f"{module}.{name}" for module, name in names if not _defines(module, name)}
    assert not missing


def _defines(module: str, name: str) -> bool:
    found = next(each for each in modules() if each.path == Path(*module.split(".")).with_suffix(".py"))
    return name in {*found.classes, *found.constants}
