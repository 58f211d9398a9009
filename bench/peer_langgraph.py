"""LangGraph's SqliteSaver, keeping one conversation. Arguments: a file of turns by conversation, the database.

A node answers with the given replies. Prints {"version", "sizes": bytes after every 100 turns}; runs with the peers'
Python.
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

# the peers' packages are not in the environment that checks types
from langchain_core.messages import AIMessage, HumanMessage  # type: ignore[import-not-found]
from langgraph.checkpoint.sqlite import SqliteSaver  # type: ignore[import-not-found]
from langgraph.graph import START, MessagesState, StateGraph  # type: ignore[import-not-found]

STEP = 100


def size(saver: Any, path: Path) -> int:
    saver.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return sum(part.stat().st_size for part in path.parent.glob(path.name + "*") if not part.name.endswith("-shm"))


def main() -> None:
    [turns], path = json.loads(Path(sys.argv[1]).read_text("utf-8")), Path(sys.argv[2])
    replies = iter([reply for _, reply in turns])
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [AIMessage(next(replies))]})
    graph.add_edge(START, "model")
    sizes = []
    with SqliteSaver.from_conn_string(str(path)) as saver:
        app = graph.compile(checkpointer=saver)
        for done, (said, _) in enumerate(turns, 1):
            app.invoke({"messages": [HumanMessage(said)]}, {"configurable": {"thread_id": "one"}})
            if done % STEP == 0:
                sizes.append(size(saver, path))
    print(json.dumps({"version": version("langgraph-checkpoint-sqlite"), "sizes": sizes}))


main()
