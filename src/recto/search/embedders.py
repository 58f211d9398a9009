"""Embedders by name: which there are, and how each is opened."""

from pathlib import Path

from recto.errors import Invalid
from recto.search.embedder import MINILM, NONE, Address, Embedder


def open_embedder(name: str, *, home: Path, address: Address | None = None) -> Embedder | None:
    """The embedder of this name; None for `none`. `address` is for a `provider:model`."""
    if name == NONE:
        return None
    if name == MINILM:
        from recto.search.minilm import MiniLM  # only for this one

        return MiniLM(home)
    if address is None:
        raise Invalid(f"{name!r} is no embedder; use {MINILM}, {NONE} or provider:model.", name=name)
    from recto.search.endpoint import Endpoint  # only for a server

    return Endpoint(name, address)
