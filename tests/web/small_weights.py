"""The small built-in model as a short file at a hub: what runs this file downloads that."""

import hashlib

from msgspec.structs import replace

from recto.weights import weights_table
from recto.weights.weights_table import ModelFile, named

CONTENT = bytes(range(256)) * 12_000
FILE = ModelFile("small.gguf", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), "maker/small")

if __name__ == "__main__":
    small, known = named("small"), weights_table.table()
    models = {**known.models, small.name: replace(small, files=(FILE,))}
    changed = replace(known, models=models, copies=())
    vars(weights_table)["table"] = lambda: changed
