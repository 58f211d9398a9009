"""DocumentSummaryWriter: a model writes one line about each long document, in the background after a reply.

Nobody waits for it: the line is kept by the document's hash and used the next time. One failure ends it for the turn.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from contextlib import suppress

from recto.concurrency import StoreThread, TaskSet
from recto.errors import RectoError
from recto.store.store import Store
from recto.turn.context import TurnContext
from recto.turn.preamble import build_preamble
from recto.turn.session import ChatSession
from recto.turn.side_call import SideCall, call_model, count_texts
from recto.vault.document import Document
from recto.vault.document_summary import DocumentSummaries, document_summary
from recto.window.request import Parameters

ORDER = (
    "Say in one sentence of at most 20 words what this document is about. Answer with that sentence alone.\n\n{text}"
)
MOST_TOKENS, LOOKED_AT = 50, 4_000
# Per turn; other documents get their line when they are referred to again.
MOST, TIMEOUT_S = 3, 60.0


def document_line(document: Document, gists: DocumentSummaries | None) -> str:
    """One line about a document: its own first sentence, or what a model wrote about exactly this text."""
    own = document_summary(document)
    return own.text if own.is_complete or gists is None else gists.get(_sha(document)) or own.text


class DocumentSummaryWriter:
    def __init__(self, store: Store, store_thread: StoreThread) -> None:
        self._store, self._store_thread = store, store_thread
        self._tasks = TaskSet()

    def begin(
        self, session: ChatSession, context: TurnContext, documents: Sequence[Document], gists: DocumentSummaries
    ) -> None:
        """Starts with documents that say nothing short about themselves; a weak model would write worse lines."""
        wanted = [
            each for each in documents if not document_summary(each).is_complete and gists.get(_sha(each)) is None
        ]
        if not wanted or not context.model.summarizes:
            return
        self._tasks.begin(self._make(session, context, wanted[:MOST], gists))

    async def _make(
        self, session: ChatSession, context: TurnContext, documents: Sequence[Document], gists: DocumentSummaries
    ) -> None:
        with suppress(RectoError):
            for document in documents:
                text = document.text[document.head[1] :][:LOOKED_AT]
                preamble = await build_preamble(context.token_cache, Parameters())
                order = (await count_texts(context, [ORDER.format(text=text)]))[0]
                question = SideCall(context, preamble, (), order, f"a line about {document.path}", MOST_TOKENS)
                if question.fits:
                    answer = await call_model(
                        question, self._store, self._store_thread, session, None, TIMEOUT_S, purpose="gist"
                    )
                    await asyncio.to_thread(gists.put, _sha(document), answer.text)

    async def close(self) -> None:
        """Drops lines that are not written yet."""
        await self._tasks.close()


def _sha(document: Document) -> bytes:
    return hashlib.sha256(document.text.encode()).digest()
