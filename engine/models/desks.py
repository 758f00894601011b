"""What lies on an agent's desk from turn to turn, and the notes that tell a driver of changes."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from cohorts.models import Agent
from engine.models.messages import Message
from engine.models.simulation import Channel, Simulation


class AgentState(models.Model):
    """What an agent carries from turn to turn in a simulation; `bank` holds roots' `seq`."""

    simulation = models.ForeignKey(
        Simulation, on_delete=models.CASCADE, related_name="agent_states", db_index=False
    )
    agent = models.ForeignKey(
        Agent, on_delete=models.PROTECT, related_name="states", db_index=False
    )
    last_selected = models.PositiveBigIntegerField(default=0)
    ended_at = models.DateTimeField(null=True)
    cursor = models.PositiveBigIntegerField(default=0)
    bank = models.JSONField(default=list)
    posts_on = models.DateField(null=True)
    posts_made = models.PositiveIntegerField(default=0)
    private_posts_made = models.PositiveIntegerField(default=0)
    next_post_at = models.DateTimeField(null=True)
    skip_streak = models.PositiveIntegerField(default=0)
    away = models.BooleanField(default=False)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["simulation", "agent"], name="agent_state_unique")
        ]

    def __str__(self) -> str:
        return f"state of {self.agent}"


class Invitation(models.Model):
    """A message that asks for an agent, until it has answered or it is settled that it will not."""

    simulation = models.ForeignKey(
        Simulation, on_delete=models.CASCADE, related_name="invitations", db_index=False
    )
    agent = models.ForeignKey(
        Agent, on_delete=models.PROTECT, related_name="invitations", db_index=False
    )
    message = models.ForeignKey(
        Message, on_delete=models.CASCADE, related_name="invitations", db_index=False
    )
    root = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="+", db_index=False)
    kind = models.CharField(max_length=10)
    by_person = models.BooleanField()
    state = models.CharField(max_length=10, default="pending")
    reason = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["agent", "message"], name="invitation_unique")
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["simulation"], condition=Q(state="pending"), name="invitation_pending"
            )
        ]

    def __str__(self) -> str:
        return f"invitation of {self.agent}"


class Memory(models.Model):
    """One version of an agent's memory: its public segment (no channel) or a private channel's."""

    simulation = models.ForeignKey(
        Simulation, on_delete=models.CASCADE, related_name="memories", db_index=False
    )
    agent = models.ForeignKey(
        Agent, on_delete=models.PROTECT, related_name="memories", db_index=False
    )
    channel = models.ForeignKey(
        Channel, on_delete=models.CASCADE, related_name="memories", null=True, db_index=False
    )
    version = models.PositiveIntegerField()
    text = models.TextField(blank=True)
    upto_seq = models.PositiveBigIntegerField(default=0)
    person = models.CharField(
        max_length=150, blank=True, default="", help_text="Who edited it; empty: the agent itself."
    )
    written_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "memories"
        # Two, because a null channel differs from itself in a plain unique constraint.
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["simulation", "agent", "version"],
                condition=Q(channel__isnull=True),
                name="memory_public_version_unique",
            ),
            models.UniqueConstraint(
                fields=["simulation", "agent", "channel", "version"],
                condition=Q(channel__isnull=False),
                name="memory_private_version_unique",
            ),
        ]

    def __str__(self) -> str:
        return f"memory of {self.agent}, version {self.version}"


class Inbox(models.Model):
    """A note to the driver that a row it holds has changed.

    Written in the transaction of the change, deleted by the group that applies it. `key` names
    the agent, channel, proposal or (with `channel`) memory segment. Never read by `id >`: ids
    become visible out of order.
    """

    class Kind(models.TextChoices):
        AGENT = "agent"
        CHANNEL = "channel"
        MEMORY = "memory"
        REVIEW = "review"

    simulation = models.ForeignKey(Simulation, on_delete=models.CASCADE, related_name="inbox")
    kind = models.CharField(max_length=10, choices=Kind)
    key = models.BigIntegerField()
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, null=True, db_index=False)
    left_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "inbox"

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"
