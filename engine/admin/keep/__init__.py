"""What is kept and what may go: space by run, and pruning after a look at what exactly would go."""
