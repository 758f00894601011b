"""What waits for a worker: one ticket for each run that no terminal drives."""

from __future__ import annotations

from django.db import models

from engine.models.runs import Run


class Ticket(models.Model):
    """Says that a worker is to drive this run; it goes when the run ends, or pauses.

    `sent_at` is when a message about it was last put into the queue, NULL once a driver has taken
    the run, so that after its death the next message is sent at once. `waits_for` is one sentence
    on why a queued run has not begun.
    """

    run = models.OneToOneField(
        Run, on_delete=models.CASCADE, primary_key=True, related_name="ticket"
    )
    sent_at = models.DateTimeField(null=True, blank=True)
    waits_for = models.TextField(blank=True, default="")

    def __str__(self) -> str:
        return f"ticket of {self.run}"
