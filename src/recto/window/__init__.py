"""What the model sees: counts, budget, plan, strategies, window, request. Knows no provider and no store."""
