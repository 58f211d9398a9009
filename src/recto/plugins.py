"""Plugins: what other packages add by entry points: providers, strategies, embedders, tools.

What is installed is read from the packages' metadata, once. A plugin's own code runs when it is first used. What goes
wrong with one is a sentence, and costs nothing but this plugin. Knows nothing of what plugins add.
"""

import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, Literal, TypeVar

from msgspec import Struct

from recto.errors import BrokenPlugin, NotFound

log = logging.getLogger(__name__)
T = TypeVar("T")
PluginKind = Literal["provider", "strategy", "embedder", "tool"]
GROUPS: dict[PluginKind, str] = {
    "provider": "recto.providers",
    "strategy": "recto.strategies",
    "embedder": "recto.embedders",
    "tool": "recto.tools",
}
MARK = b"[recto."


class Plugin(Struct, frozen=True):
    kind: PluginKind
    name: str
    package: str
    version: str
    target: str
    """Where it is: `module:attribute`."""

    def load(self) -> Any:
        """Imports it. Raises BrokenPlugin, whatever went wrong in its code."""
        from importlib.metadata import EntryPoint  # slow, and only for plugins

        try:
            return EntryPoint(self.name, self.target, GROUPS[self.kind]).load()
        except Exception as why:
            log.warning("the plugin %s of %s cannot be loaded", self.name, self.package, exc_info=True)
            raise self.broken(f"cannot be loaded ({type(why).__name__}: {why})") from why

    def use(self, work: Callable[[Any], T]) -> T:
        """What `work` makes of it; a failure there is the plugin's."""
        loaded = self.load()
        try:
            return work(loaded)
        except Exception as why:
            log.warning("the plugin %s of %s failed", self.name, self.package, exc_info=True)
            raise self.broken(f"failed ({type(why).__name__}: {why})") from why

    def problem(self) -> str:
        """Why it cannot be loaded; empty where it can."""
        try:
            self.load()
        except BrokenPlugin as why:
            return why.message
        return ""

    def broken(self, what: str) -> BrokenPlugin:
        told = " ".join(f"the {self.kind} {self.name} of the package {self.package} {what}".split())
        return BrokenPlugin(f"{told}; update or remove the package", plugin=self.name, package=self.package)


@cache
def installed_plugins() -> tuple[Plugin, ...]:
    """All that there are, by kind and name; of two with one name the first that Python finds."""
    if not _is_any():
        return ()
    from importlib.metadata import entry_points  # slow, and only for plugins

    found: dict[tuple[PluginKind, str], Plugin] = {}
    for kind, group in GROUPS.items():
        for each in entry_points(group=group):
            package, version = (each.dist.name, each.dist.version) if each.dist else ("?", "?")
            found.setdefault((kind, each.name), Plugin(kind, each.name, package, version, each.value))
    return tuple(found[key] for key in sorted(found))


def plugins_of(kind: PluginKind) -> list[Plugin]:
    return [each for each in installed_plugins() if each.kind == kind]


def is_plugin(kind: PluginKind, name: str) -> bool:
    return any(each.name == name for each in plugins_of(kind))


def find_plugin(kind: PluginKind, name: str) -> Plugin:
    if found := next((each for each in plugins_of(kind) if each.name == name), None):
        return found
    raise NotFound(f"there is no {kind} {name}, and no package that is installed adds one", name=name)


def _is_any() -> bool:
    """Whether any package adds something: most often none does, and to read all of their metadata takes three times as
    long."""
    for folder in dict.fromkeys(sys.path):
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                with suppress(OSError), open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                    if MARK in file.read():
                        return True
    return False
