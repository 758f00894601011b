"""Runs and what they did: lists, the page of a run, figures, costs, turns, calls and messages."""
