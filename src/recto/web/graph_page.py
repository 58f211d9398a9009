"""The vault as a graph: notes and their links; used ones are larger, a click opens one."""

import asyncio
from typing import ClassVar

from markupsafe import Markup
from nicegui import ui

from recto.errors import Invalid
from recto.vault.graph import TOP_FOLDER, Graph, Node, vault_graph
from recto.vault.vault import NO_VAULT
from recto.web.components import Fragment, GraphNode, Plot
from recto.web.documents import NoteView
from recto.web.page import FullView
from recto.web.templates import fill

# As many nodes as a browser can handle; a larger vault shows the most linked and used notes.
MOST_NODES = 800
MOST_LISTED = 40


class GraphView(FullView):
    address = "/graph"
    fields: ClassVar = {"folder": "", "tag": "", "search": ""}

    async def do_close_note(self) -> None:
        self._note.close()

    def build(self) -> None:
        self._note = NoteView(lambda: self.desk.vault)
        self.actors.append(self._note)
        self._head = Fragment("", self.act)
        with ui.element("div").classes("graph-place"):
            self._plot = Plot(self.act).classes("tall")
            self._beside = Fragment("", self.act, tag="aside").classes("beside")
        self._list = Fragment("", self.act)

    async def draw(self) -> None:
        vault = self.desk.vault
        if vault is None:
            self._head.show(fill("hint", text=NO_VAULT))
            raise Invalid(NO_VAULT)
        graph = await asyncio.to_thread(vault_graph, vault, self.form["tag"] or None)
        uses = {tally.name: tally.uses for tally in await self.desk.document_stats()}
        documents = await asyncio.to_thread(vault.documents)
        part = self._part(graph).best_linked(MOST_NODES)
        folders = sorted({node.folder for node in part.nodes})
        nodes = [self._node(node, uses.get(node.path, 0), folders.index(node.folder)) for node in part.nodes]
        self._head.show(
            fill(
                "graph",
                form=self.form,
                tags=sorted({tag for note in documents for tag in note.tags}),
                folders=[folder or TOP_FOLDER for folder in sorted({node.folder for node in graph.nodes})],
                shown=len(nodes),
                all=len(graph.nodes),
                found=sum(node.is_found for node in nodes),
            )
        )
        groups = [folder or TOP_FOLDER for folder in folders]
        self._plot.show_graph(f"{len(nodes)} notes, {len(part.lines)} pairs linked", nodes, part.lines, groups)
        self._beside.show(fill("graph_note", body=Markup(await self._note.html())) if self._note.is_open else "")
        best = sorted(nodes, key=lambda node: (not node.is_found, -uses.get(node.id, 0), -node.size))
        self._list.show(fill("graph_list", nodes=best[:MOST_LISTED], uses=uses))

    def _part(self, graph: Graph) -> Graph:
        if not self.form["folder"]:
            return graph
        folder = "" if self.form["folder"] == TOP_FOLDER else self.form["folder"]
        return graph.part({node.path for node in graph.nodes if node.folder == folder})

    def _node(self, node: Node, uses: int, group: int) -> GraphNode:
        """Used notes are larger; matches of the search are marked."""
        part = self.form["search"].strip().casefold()
        is_found = bool(part) and (part in node.title.casefold() or part in node.path.casefold())
        return GraphNode(node.path, node.title, min(node.weight, 6) / 3 + 3 * uses, group, node.is_broken, is_found)
