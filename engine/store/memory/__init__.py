"""The store's in-memory twin: product code that keeps a database's rules in dictionaries."""

from __future__ import annotations

from engine.store.memory.people import AlreadyReviewed, People
from engine.store.memory.store import MemoryStore
from engine.store.memory.tables import Tables

__all__ = ["AlreadyReviewed", "MemoryStore", "People", "Tables"]
