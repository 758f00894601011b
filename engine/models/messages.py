"""What was said: one row per message, of agents and of people."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from cohorts.models import Agent
from engine.models.runs import Run
from engine.models.simulation import Channel, Simulation


class Message(models.Model):
    """A message; `seq` and `ordinal` are null while a person's waits to be taken in.

    Only the driver gives a `seq`, strictly increasing in its simulation. `root` is null for a
    root itself. `turn` is the number of the selection that wrote it.
    """

    simulation = models.ForeignKey(
        Simulation, on_delete=models.CASCADE, related_name="messages", db_index=False
    )
    seq = models.PositiveBigIntegerField(null=True)
    channel = models.ForeignKey(
        Channel, on_delete=models.PROTECT, related_name="messages", db_index=False
    )
    root = models.ForeignKey(
        "self", on_delete=models.CASCADE, related_name="answers", null=True, db_index=False
    )
    ordinal = models.PositiveIntegerField(null=True)
    answers_ordinal = models.PositiveIntegerField(null=True)
    author = models.ForeignKey(
        Agent, on_delete=models.PROTECT, related_name="messages", null=True, db_index=False
    )
    person = models.CharField(max_length=150, blank=True, default="")
    is_bot = models.BooleanField(default=False)
    text = models.TextField()
    visibility = models.CharField(max_length=10, choices=Channel.Visibility)
    addressed = models.ForeignKey(
        Agent, on_delete=models.PROTECT, related_name="+", null=True, db_index=False
    )
    written_at = models.DateTimeField()
    committed_at = models.DateTimeField(null=True)
    run = models.ForeignKey(
        Run, on_delete=models.PROTECT, related_name="messages", null=True, db_index=False
    )
    turn = models.PositiveBigIntegerField(null=True)
    mirror_state = models.CharField(max_length=10, default="none")
    mirror_id = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["simulation", "seq"], name="message_seq_unique"),
            models.UniqueConstraint(
                fields=["root", "ordinal"],
                condition=Q(root__isnull=False),
                name="message_place_unique",
            ),
            models.CheckConstraint(
                condition=Q(ordinal__isnull=True)
                | Q(root__isnull=True, ordinal=1)
                | Q(root__isnull=False, ordinal__gt=1),
                name="message_ordinal_form",
            ),
            models.CheckConstraint(
                condition=Q(seq__isnull=True, ordinal__isnull=True, committed_at__isnull=True)
                | Q(seq__isnull=False, ordinal__isnull=False, committed_at__isnull=False),
                name="message_placed_whole",
            ),
        ]
        # Each index costs every message 20 µs at a million rows; a partial one only its own rows.
        indexes: ClassVar = [
            models.Index(
                fields=["simulation", "author", "seq"],
                condition=Q(author__isnull=False),
                name="message_of_author",
            ),
            models.Index(
                fields=["simulation", "id"], condition=Q(seq__isnull=True), name="message_waiting"
            ),
        ]

    def __str__(self) -> str:
        return f"message {self.seq}" if self.seq else "a message that waits"
