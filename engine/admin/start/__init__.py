"""Starting a run: what it would take, in words, and then the run itself."""
