"""How what is covered is told: orders to a model, sentences chosen without one, facts that are checked."""
