"""The model's view: counts, budget, plan, strategies, window, request. Knows no provider and no store."""
