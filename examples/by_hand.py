"""Puts Store, Engine and a scripted model together by hand and sends one message.

`recto.open()` does this for you. Here you can see the parts: the walk itself is `Engine.send` in `src/recto/engine.py`.
"""

import asyncio
import json
import tempfile
from pathlib import Path

from recto.engine import Engine
from recto.events import Event, Replied, Sent, TextDelta
from recto.settings.settings import load
from recto.store.store import Store
from recto.turn.session import ChatSession


async def main(home: Path) -> None:
    script = home / "script.json"
    script.write_text(json.dumps([{"text": "She is seven metres long."}]))
    settings = load(home, None, flags={"model": f"scripted:{script}"})
    store = Store(home / "recto.db")
    engine = Engine(store, settings, home=home, project=None, environment={})
    session = ChatSession(store.tree.create().id)

    async def emit(event: Event) -> None:
        match event:
            case Sent(window=window):
                print(f"sent {window.total} of {window.limit} tokens:", [section.name for section in window.sections])
            case TextDelta(text=text):
                print(text, end="")
            case Replied(request=request):
                print("\n\nthe bytes that were sent:", store.records.rebuild(request).decode())

    await engine.send(session, "How long is the boat?", emit)
    await engine.close()
    store.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
