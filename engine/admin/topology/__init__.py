"""Who deals with whom: the matrix of cohorts, what a change would do, and a picture of it."""
