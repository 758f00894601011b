"""Schedules of runs, and the pages of the queue that carries them."""
