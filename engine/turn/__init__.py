"""One turn: the phases in their order, its calls, and what it hands in."""
