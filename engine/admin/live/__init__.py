"""A live run: what a person may ask of it, and the words for it."""
