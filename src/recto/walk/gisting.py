"""Gisting: a better line about a document than its first sentence, written by the model behind a reply.

Never waited for: what is written is kept by the document's hash and told the next time. One failure ends it for the
turn; nobody is told, since nothing is missing.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from contextlib import suppress

from recto.errors import RectoError
from recto.store.clerk import Clerk
from recto.store.store import Store
from recto.vault.document import Document
from recto.vault.gist import gist
from recto.vault.gists import Gists
from recto.walk.asking import Question, ask, weigh_text
from recto.walk.errands import Errands
from recto.walk.opening import open_window
from recto.walk.setup import Ready
from recto.walk.standing import Standing
from recto.window.request import Parameters

ORDER = (
    "Say in one sentence of at most 20 words what this document is about. Answer with that sentence alone.\n\n{text}"
)
MOST_TOKENS, LOOKED_AT = 50, 4_000
# Of one turn; the others wait until they are referred to again.
MOST, TIMEOUT_S = 3, 60.0


def about(document: Document, gists: Gists | None) -> str:
    """One line about a document: its own, or what was written about exactly this text."""
    own = gist(document)
    return own.text if own.is_whole or gists is None else gists.get(_sha(document)) or own.text


class Gisting:
    def __init__(self, store: Store, clerk: Clerk) -> None:
        self._store, self._clerk = store, clerk
        self._errands = Errands()

    def begin(self, standing: Standing, ready: Ready, documents: Sequence[Document], gists: Gists) -> None:
        """Begins with those whose first sentence had to do; a weak model would only write worse ones."""
        wanted = [each for each in documents if not gist(each).is_whole and gists.get(_sha(each)) is None]
        if not wanted or not ready.model.summarizes:
            return
        self._errands.begin(self._make(standing, ready, wanted[:MOST], gists))

    async def _make(self, standing: Standing, ready: Ready, documents: Sequence[Document], gists: Gists) -> None:
        with suppress(RectoError):
            for document in documents:
                text = document.text[document.head[1] :][:LOOKED_AT]
                opening = await open_window(ready.scale, Parameters())
                order = (await weigh_text(ready, [ORDER.format(text=text)]))[0]
                question = Question(ready, opening, (), order, f"a line about {document.path}", MOST_TOKENS)
                if question.fits:
                    answer = await ask(question, self._store, self._clerk, standing, None, TIMEOUT_S, purpose="gist")
                    await asyncio.to_thread(gists.put, _sha(document), answer.text)

    async def close(self) -> None:
        """What is not written by now is not needed."""
        await self._errands.close()


def _sha(document: Document) -> bytes:
    return hashlib.sha256(document.text.encode()).digest()
