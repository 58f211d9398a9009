"""An MCP server with which other assistants search and read Recto's contents: notes, conversations, memory.

It has the tools that models get in a chat, and some that search and read conversations. Tools that write are offered
only if the user allows it.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp.types import Tool as OfferedMcpTool

from recto import __version__
from recto.api.desk import AsyncDesk
from recto.api.store_queries import find_conversation
from recto.chat.blocks import ToolCall
from recto.chat.conversation import Conversation
from recto.errors import Invalid, RectoError
from recto.memory.fact_picker import fact_lines, learned_in_words
from recto.recall.message_search import MessageQuery, search_messages
from recto.recall.recall_tool import recall_tool
from recto.sources.source import Tool
from recto.sources.tools import FORGET_FACT_TOOL, RECALL_FACTS_TOOL, RECALL_TOOL, REMEMBER_TOOL, LocalTool, arguments_of
from recto.sources.vault_tools import reading_tools, writing_tools
from recto.store.fact import MCP_CLIENT
from recto.summary.prompt import transcribe
from recto.turn.session import ChatSession
from recto.wire import Json, dumps

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

Arguments = Mapping[str, Any]
MOST_FOUND, MOST_READ = 50, 50
INSTRUCTIONS = (
    "Recto keeps conversations, notes and facts. Search first; then read the messages or documents that were found, "
    "by their numbers and paths."
)


def _tool(name: str, description: str, required: str = "", **properties: Json) -> Tool:
    schema: Json = {"type": "object", "properties": properties}
    return Tool(name, description, schema | ({"required": [required]} if required else {}))


def _said(text: str) -> Json:
    return {"type": "string", "description": text}


def _counted(text: str) -> Json:
    return {"type": "integer", "description": text}


NAMED = "its number, such as #3, its id or its title"
SEARCH = _tool(
    "search_conversations",
    "Search all stored conversations by words and by meaning. Gives passages, word for word, with their places.",
    "query",
    query=_said("what to look for"),
    conversation=_said(f"only in this one: {NAMED}"),
    limit=_counted(f"at most {MOST_FOUND}; 10 unless given"),
)
LIST = _tool("list_conversations", "List stored conversations, the latest first.", limit={"type": "integer"})
READ = _tool(
    "read_conversation",
    "Read messages of a stored conversation, word for word, by their numbers.",
    "conversation",
    conversation=_said(NAMED),
    first=_counted("number of the first message; the latest ones unless given"),
    last=_counted(f"number of the last one; at most {MOST_READ} are read"),
)
RECALL = _tool(
    "recall",
    "Bring back archived messages of one conversation, verbatim, by a question or by their numbers.",
    "conversation",
    conversation=_said(NAMED),
    **RECALL_TOOL.schema["properties"],
)


def mcp_tools(desk: AsyncDesk, *, allow_write: bool) -> list[LocalTool]:
    """The tools of a desk: for the vault if it has one, for conversations and for memory."""
    tools = [*_conversation_tools(desk), *_memory_tools(desk)]
    if desk.vault is not None and desk.vault_search is not None:
        tools += [*reading_tools(desk.vault, desk.vault_search), *writing_tools(desk.vault)]
    return [each for each in tools if allow_write or not each.writes]


def _conversation_tools(desk: AsyncDesk) -> list[LocalTool]:
    store, archive = desk.store, desk.engine.message_index

    def find(arguments: Arguments) -> Conversation:
        return find_conversation(store, str(arguments["conversation"]))

    def search(arguments: Arguments) -> str:
        limit = _number(arguments, "limit", 10, MOST_FOUND)
        home = find(arguments).id if arguments.get("conversation") else None
        archive.catch_up()
        found = search_messages(archive, store, MessageQuery(str(arguments["query"]), home, limit=limit))
        hits = [
            {
                "conversation": f"#{hit.conversation_number}",
                "title": hit.title,
                "message": f"#{hit.message.said}" if hit.place != "branch" else hit.message.id,
                "said_by": hit.message.role,
                "created": hit.message.created,
                "text": hit.text,
            }
            for hit in found
        ]
        return dumps({"found": hits} | ({"note": found.note} if found.note else {}))

    def list_them(arguments: Arguments) -> str:
        found = store.tree.conversations(limit=_number(arguments, "limit", 20, 100))
        listed = [{"conversation": f"#{c.number}", "title": c.title, "updated": c.updated} for c in found]
        return dumps({"conversations": listed})

    def read(arguments: Arguments) -> str:
        home = find(arguments)
        if home.head is None:
            return "There is no message yet."
        newest = store.tree.message(home.head).said
        last = _number(arguments, "last", newest, newest)
        first = _number(arguments, "first", max(1, last - 9), newest)
        stretch = store.tree.numbered_stretch(home.head, first, min(last, first + MOST_READ - 1))
        return "\n\n".join(f"#{message.said} {transcribe(message)}" for message in stretch) or "There is nothing there."

    def recall(arguments: Arguments) -> str:
        home = find(arguments)
        archive.catch_up()
        return recall_tool(archive, store, ChatSession(home.id, home.head)).run(arguments)

    return [LocalTool(SEARCH, search), LocalTool(LIST, list_them), LocalTool(READ, read), LocalTool(RECALL, recall)]


def _memory_tools(desk: AsyncDesk) -> list[LocalTool]:
    facts = desk.facts

    def recall_facts(arguments: Arguments) -> str:
        found, note = facts.search(str(arguments["query"]))
        lines = [fact_lines(each) for each in found] or ["Nothing is remembered about this."]
        return "\n".join([*lines, *([f"({note})"] if note else [])])

    def remember(arguments: Arguments) -> str:
        learned = facts.learn(str(arguments["text"]), arguments.get("kind"), learned_by=MCP_CLIENT)
        return learned_in_words(learned.fact.number, learned.fact.marked_text, is_new=learned.is_new)

    def forget(arguments: Arguments) -> str:
        return f"Forgotten: fact {facts.forget(_number(arguments, 'number', 0, 999_999_999)).number}."

    return [
        LocalTool(RECALL_FACTS_TOOL, recall_facts),
        LocalTool(REMEMBER_TOOL, remember, writes=True),
        LocalTool(FORGET_FACT_TOOL, forget, writes=True),
    ]


def _number(arguments: Arguments, name: str, otherwise: int, most: int) -> int:
    value = arguments.get(name)
    if value is None:
        return otherwise
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise Invalid(f"{name} must be a whole number above 0")
    return min(value, most)


# -- the protocol


def mcp_server(tools: Sequence[LocalTool]) -> "Server[Any]":
    from mcp.server.lowlevel import Server  # only to serve

    by_name = {each.tool.name: each for each in tools}

    async def list_tools(context: Any, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_offered(each) for each in tools])

    async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        try:
            if (found := by_name.get(params.name)) is None:
                raise Invalid(f"there is no tool {params.name[:100]!r}")
            call = ToolCall("", params.name, json.dumps(params.arguments or {}))
            text, is_error = await asyncio.to_thread(found.run, arguments_of(call, found.tool)), False
        except RectoError as why:
            text, is_error = why.message, True
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=is_error)

    return Server(
        "recto",
        version=__version__,
        title="Recto",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _offered(each: LocalTool) -> OfferedMcpTool:
    hints = ToolAnnotations(read_only_hint=not each.writes, destructive_hint=each.writes, open_world_hint=False)
    return OfferedMcpTool(
        name=each.tool.name,
        description=each.tool.description,
        input_schema=dict(each.tool.schema),
        annotations=hints,
    )


async def serve_stdio(server: "Server[Any]") -> None:
    from mcp.server.stdio import stdio_server  # only to serve

    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
