"""How the past is told: prompts for a model, sentences chosen without one, facts, their verification, the ledger."""
