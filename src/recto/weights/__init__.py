"""Weights of the models that run here: what they are, where they lie, and how they come."""

from recto.weights.fetch import pull
from recto.weights.weights_table import ModelFile, Weights, chat_models, named, suitable, table, weights_folder

__all__ = ["ModelFile", "Weights", "chat_models", "named", "pull", "suitable", "table", "weights_folder"]
