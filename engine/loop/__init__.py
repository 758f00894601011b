"""The loop of a run: slots, scheduler, committer, and what people ask of it meanwhile."""
