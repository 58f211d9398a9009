"""Commands and the page go through the desk and the talk: none reaches into the engine, the store or a session."""

import ast
from collections.abc import Iterator
from pathlib import Path

import recto.cli
import recto.web

MODULES = sorted(path for room in (recto.cli, recto.web) for path in Path(room.__path__[0]).rglob("*.py"))
INSIDE = {"engine", "store", "session"}
ROOMS = ("recto.store", "recto.turn", "recto.compaction", "recto.recall", "recto.engine")
VALUES = "recto.store.fact"
# Even a type must not be one of these: what a command holds, it uses.
MACHINES = {"MessageIndex", "Engine", "Records", "Store", "Tree"}


def trespasses(source: str) -> Iterator[str]:
    """What a module does that only the door may do, a line each."""
    tree = ast.parse(source)
    typing_only = {id(each) for block in ast.walk(tree) if _is_typing(block) for each in ast.walk(block)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is_inside(node):
            yield f"{node.lineno}: .{node.attr}"
        if isinstance(node, ast.ImportFrom) and _is_room(node.module or ""):
            names = {each.name for each in node.names}
            if id(node) not in typing_only or names & MACHINES:
                yield f"{node.lineno}: imports {', '.join(sorted(names))} from {node.module}"
        if isinstance(node, ast.Import) and any(_is_room(each.name) for each in node.names):
            yield f"{node.lineno}: imports a room"


def _is_typing(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _is_inside(node: ast.Attribute) -> bool:
    is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
    is_private = node.attr.startswith("_") and not node.attr.startswith("__")
    is_run = node.attr == "run" and isinstance(node.value, ast.Name | ast.Attribute) and _last_name(node) == "desk"
    return is_run or (not is_own and (is_private or node.attr in INSIDE))


def _last_name(node: ast.Attribute) -> str:
    value = node.value
    return value.id if isinstance(value, ast.Name) else value.attr if isinstance(value, ast.Attribute) else ""


def _is_room(module: str) -> bool:
    return module != VALUES and any(module == room or module.startswith(f"{room}.") for room in ROOMS)


def test_the_modules_of_the_doors_stay_in_front_of_the_desk() -> None:
    found = {path.name: list(trespasses(path.read_text("utf-8"))) for path in MODULES}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_a_trespass_is_seen_and_what_is_allowed_is_let_pass() -> None:
    for source in (
        *("desk.engine.message_index.filled", "chat.desk.store.tree", "talk.session.head", "desk.run(work)"),
        *("chat.desk.run(work)", "talk._reader", "from recto.store.store import Store", "import recto.engine"),
        "if TYPE_CHECKING:\n    from recto.store.store import Store",
    ):
        assert list(trespasses(source)), source
    typing = "if TYPE_CHECKING:\n    from recto.store.records import Record"
    for source in ("self._head", "slash.run(chat)", "talk.head", typing):
        assert not list(trespasses(source)), source
