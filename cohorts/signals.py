"""What other applications may listen to; `cohorts` imports none of them."""

from __future__ import annotations

from django.dispatch import Signal

agents_saved = Signal()
"""Sent inside the transaction that saves agents, with `agent_ids` (a list): whoever holds their
texts or limits is told by rows that commit together with the change."""
