"""simonw's llm, keeping conversations in its own database. Arguments: a file of turns by conversation, the database.

A tiny model answers with the given replies. Prints {"version", "sizes": bytes after every 100 turns, or at the end};
runs with the peers' Python.
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

# the peers' packages are not in the environment that checks types
import llm  # type: ignore[import-not-found]
import sqlite_utils  # type: ignore[import-not-found]

STEP = 100


class Scripted(llm.Model):  # type: ignore[misc]
    model_id = "scripted"
    can_stream = True

    def __init__(self) -> None:
        self.reply = ""

    def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> Any:
        yield self.reply


def size(database: Any, path: Path) -> int:
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return sum(part.stat().st_size for part in path.parent.glob(path.name + "*") if not part.name.endswith("-shm"))


def main() -> None:
    talks, path = json.loads(Path(sys.argv[1]).read_text("utf-8")), Path(sys.argv[2])
    database = sqlite_utils.Database(path)
    model, sizes, done = Scripted(), [], 0
    for turns in talks:
        conversation = model.conversation()
        for said, model.reply in turns:
            response = conversation.prompt(said)
            response.text()
            response.log_to_db(database)
            done += 1
            if done % STEP == 0:
                sizes.append(size(database, path))
    print(json.dumps({"version": version("llm"), "sizes": sizes or [size(database, path)]}))


main()
