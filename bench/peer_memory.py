"""What mem0 or LangGraph's store remembers. Arguments: its name, a file {"told", "asked", "vectors", "most"}, a folder.

Both get our own vectors, so that they are compared by what they do with them; mem0 stores what it is told (`infer` off:
no model is asked). Prints {"version", "answers": the texts for each question, the best first, "seconds": of each}; runs
with the peers' Python.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

# the peers' packages are not in the environment that checks types
from langchain_core.embeddings import Embeddings  # type: ignore[import-not-found]

Search = Callable[[str], list[str]]


class KnownVectors(Embeddings):  # type: ignore[misc]
    def __init__(self, vectors: dict[str, list[float]]) -> None:
        self._vectors = vectors

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self._vectors[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self._vectors[text]


def langgraph(task: dict[str, Any], vectors: KnownVectors, folder: Path) -> Search:
    from langgraph.store.memory import InMemoryStore  # type: ignore[import-not-found]

    size = len(next(iter(task["vectors"].values())))
    store = InMemoryStore(index={"dims": size, "embed": vectors, "fields": ["text"]})
    for number, text in enumerate(task["told"]):
        store.put(("facts",), str(number), {"text": text})
    return lambda question: [
        item.value["text"] for item in store.search(("facts",), query=question, limit=task["most"])
    ]


def mem0(task: dict[str, Any], vectors: KnownVectors, folder: Path) -> Search:
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder), "OPENAI_API_KEY": "nobody is asked"}
    from mem0 import Memory  # type: ignore[import-not-found]

    size = len(next(iter(task["vectors"].values())))
    place = {"path": str(folder / "qdrant"), "embedding_model_dims": size, "collection_name": "facts"}
    memory = Memory.from_config(
        {
            "embedder": {"provider": "langchain", "config": {"model": vectors}},
            "vector_store": {"provider": "qdrant", "config": place},
            "history_db_path": str(folder / "history.db"),
        }
    )
    for text in task["told"]:
        memory.add(text, user_id="user", infer=False)

    def search(question: str) -> list[str]:
        found = memory.search(question, filters={"user_id": "user"}, top_k=task["most"])
        return [each["memory"] for each in found["results"]]

    return search


PEERS = {"langgraph": langgraph, "mem0ai": mem0}


def main() -> None:
    name, path, folder = sys.argv[1:]
    task = json.loads(Path(path).read_text("utf-8"))
    search = PEERS[name](task, KnownVectors(task["vectors"]), Path(folder))
    answers, seconds = [], []
    for question in task["asked"]:
        started = time.perf_counter()
        answers.append(search(question))
        seconds.append(time.perf_counter() - started)
    print(json.dumps({"version": f"{name} {version(name)}", "answers": answers, "seconds": seconds}))


main()
