"""Weights of the models that run here: which, where, and how to fetch them."""

from recto.weights.fetch import pull
from recto.weights.weights_table import ModelFile, Weights, chat_models, named, suitable, table, weights_folder

__all__ = ["ModelFile", "Weights", "chat_models", "named", "pull", "suitable", "table", "weights_folder"]
