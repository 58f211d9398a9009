"""Tools of plugins: each is a LocalTool, several of them, or a function that gives them."""

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from recto.errors import RectoError
from recto.mcp.tool_list import tool_call_name
from recto.plugins import Plugin, plugins_of
from recto.sources.tools import LocalTool


class PluginTools(Struct, frozen=True):
    tools: tuple[LocalTool, ...] = ()
    notes: tuple[str, ...] = ()
    """About those that cannot be used."""


def plugin_tools(servers: Collection[str]) -> PluginTools:
    """The tools of all plugins, which ask before they run, as those of servers do. `servers`: names that are taken."""
    tools, notes = list[LocalTool](), list[str]()
    for plugin in plugins_of("tool"):
        if plugin.name in servers:
            notes.append(f"the tools of the plugin {plugin.name} are not offered: an MCP server has this name")
            continue
        found = _loaded(plugin)
        tools += found.tools
        notes += found.notes
    return PluginTools(tuple(tools), tuple(notes))


@cache
def _loaded(plugin: Plugin) -> PluginTools:
    """Once in a process, whether or not it works."""
    try:
        return PluginTools(tuple(_named(plugin, each) for each in plugin.use(_several)))
    except RectoError as why:
        return PluginTools(notes=(why.message,))


def _several(given: Any) -> Sequence[Any]:
    made = given() if callable(given) and not isinstance(given, LocalTool) else given
    return [made] if isinstance(made, LocalTool) else list(made)


def _named(plugin: Plugin, given: Any) -> LocalTool:
    if not isinstance(given, LocalTool):
        raise plugin.broken(f"gives {type(given).__name__} and not a LocalTool")
    own = given.tool.name
    tool = replace(given.tool, name=tool_call_name(plugin.name, own), own_name=own, server=plugin.name)
    return replace(given, tool=tool, approval="ask" if given.approval == "allow" else given.approval)
