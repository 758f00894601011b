"""Proposals: read and reviewed."""
