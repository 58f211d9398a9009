"""Summaries: prompts for a model, extraction without one, statements and their verification, the ledger."""
