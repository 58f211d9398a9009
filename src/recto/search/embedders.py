"""Embedders by name, each imported only when it is opened."""

from pathlib import Path

from recto.errors import Invalid
from recto.search.embedder import MINILM, NONE, Embedder, EmbeddingAddress


def open_embedder(name: str, *, home: Path, address: EmbeddingAddress | None = None) -> Embedder | None:
    """Opens an embedder by name; None for `none`. A `provider:model` needs an `address`."""
    if name == NONE:
        return None
    if name == MINILM:
        from recto.search.minilm import MiniLM  # only this embedder needs it

        return MiniLM(home)
    if address is None:
        raise Invalid(f"{name!r} is not an embedder; use {MINILM}, {NONE} or provider:model.", name=name)
    from recto.search.embedding_endpoint import EmbeddingEndpoint  # only a server needs it

    return EmbeddingEndpoint(name, address)
