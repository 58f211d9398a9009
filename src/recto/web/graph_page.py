"""The vault as a graph: notes and links, or notes that were used together; used ones are larger, a click opens one."""

import asyncio

from markupsafe import Markup
from nicegui import ui

from recto.api.talk import AsyncTalk
from recto.errors import Invalid
from recto.vault.graph import TOP_FOLDER, Graph, vault_graph
from recto.vault.vault import NO_VAULT, Vault
from recto.web.components import Deed, Fragment
from recto.web.full_view import Asked, FullView
from recto.web.live import LiveConversations
from recto.web.page_desk import PageDesk
from recto.web.plot import GraphData, GraphNode, Plot
from recto.web.reference_view import NoteView
from recto.web.templates import fill

# What a browser can move about; of a larger vault the most linked and used notes are shown.
MOST_NODES = 800
TOGETHER = {"turn": "used together in a turn", "conversation": "used together in a conversation"}


class GraphView(FullView):
    title = "Graph"

    def __init__(self, desk: PageDesk, live: LiveConversations, asked: Asked) -> None:
        super().__init__(desk, live, asked)
        self._by, self._folder, self._tag, self._search = "links", "", "", ""
        self._talk: AsyncTalk | None = None
        self._notes, self._is_open = NoteView(self._reader), False
        self.handlers = {"look": self._look, "choose": self._choose, "note": self._open, "close-note": self._close}
        self.handlers["open-editor"] = self._notes.handlers["open-editor"]

    def _reader(self) -> AsyncTalk:
        """A new conversation, of which only the vault is used."""
        assert self._talk is not None
        return self._talk

    async def _look(self, deed: Deed) -> None:
        self._search = str(deed.get("value", ""))

    async def _choose(self, deed: Deed) -> None:
        value, what = str(deed.get("value", "")), deed.get("what")
        if what == "by":
            self._by = value
        elif what == "folder":
            self._folder = value
        else:
            self._tag = value

    async def _open(self, deed: Deed) -> None:
        await self._notes.handlers["note"](deed)
        self._is_open = True

    async def _close(self, deed: Deed) -> None:
        self._is_open = False

    async def _clicked(self, path: str) -> None:
        await self.act({"do": "note", "link": path})

    def build(self) -> None:
        self._head = Fragment("", self.act)
        with ui.element("div").classes("graph-place"):
            self._plot = Plot(self._clicked).classes("tall")
            self._beside = Fragment("", self.act, tag="aside").classes("beside")
        self._list = Fragment("", self.act)

    async def draw(self) -> None:
        vault = self.desk.vault
        if vault is None:
            self._head.show(fill("hint", text=NO_VAULT))
            raise Invalid(NO_VAULT)
        self._talk = self._talk or await self.desk.conversation()
        graph = await self._graph(vault)
        uses = {tally.name: tally.uses for tally in await self.desk.document_stats()}
        notes = await asyncio.to_thread(vault.documents)
        tags = sorted({tag for note in notes for tag in note.tags})
        folders = sorted({node.folder for node in graph.nodes})
        shown = self._part(graph).best_linked(MOST_NODES)
        data = _data(shown, uses, self._search, self._by)
        told = {"by": self._by, "folder": self._folder, "tag": self._tag, "search": self._search}
        counts = {
            "shown": len(shown.nodes),
            "all": len(graph.nodes),
            "found": sum(node.is_found for node in data.nodes),
        }
        self._head.show(fill("graph", ways=TOGETHER, tags=tags, folders=folders, top=TOP_FOLDER, **told, **counts))
        self._plot.show_graph(data if data.nodes else None)
        self._beside.show(fill("graph_note", body=Markup(await self._notes.html())) if self._is_open else "")
        best = sorted(data.nodes, key=lambda node: (not node.is_found, -uses.get(node.id, 0), -node.size))[:40]
        self._list.show(fill("graph_list", nodes=best, uses=uses))

    async def _graph(self, vault: Vault) -> Graph:
        if self._by in TOGETHER:
            found = await self.desk.used_graph("conversation" if self._by == "conversation" else "turn")
            if not self._tag:
                return found
            tagged = {note.path for note in await asyncio.to_thread(vault.documents, "", self._tag)}
            return _only(found, tagged)
        return await asyncio.to_thread(vault_graph, vault, self._tag or None)

    def _part(self, graph: Graph) -> Graph:
        if not self._folder:
            return graph
        folder = "" if self._folder == TOP_FOLDER else self._folder
        return _only(graph, {node.path for node in graph.nodes if node.folder == folder})


def _only(graph: Graph, paths: set[str]) -> Graph:
    edges = tuple(edge for edge in graph.edges if edge[0] in paths and edge[1] in paths)
    return Graph(tuple(node for node in graph.nodes if node.path in paths), edges)


def _data(graph: Graph, uses: dict[str, int], search: str, by: str) -> GraphData:
    """Used notes are larger; those whose title or path holds what is looked for stand out."""
    groups = sorted({node.folder for node in graph.nodes}) or [""]
    part = search.strip().casefold()
    nodes = [
        GraphNode(
            node.path,
            node.title,
            (node.weight if by in TOGETHER else min(node.weight, 6) / 3) + 3 * uses.get(node.path, 0),
            groups.index(node.folder),
            node.is_broken,
            bool(part) and (part in node.title.casefold() or part in node.path.casefold()),
        )
        for node in graph.nodes
    ]
    what = "used together" if by in TOGETHER else "linked"
    label = f"{len(nodes)} notes, {len(graph.lines)} pairs {what}"
    return GraphData(label, nodes, graph.lines, [group or TOP_FOLDER for group in groups])
