"""An agent in the engine: what it remembers."""
