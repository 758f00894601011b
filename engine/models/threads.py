"""Two-party talks: their state, their conclusions, and what came of them."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from cohorts.models import Agent
from engine.models.messages import Message
from engine.models.runs import Run
from engine.models.simulation import Channel, Simulation


class Cycle(models.Model):
    """What is known of a cycle from its opening on; `root_seq` names its thread everywhere."""

    root_seq = models.PositiveBigIntegerField()
    cycle = models.PositiveIntegerField(default=1)
    opener = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="+", db_index=False)
    partner = models.ForeignKey(
        Agent, on_delete=models.PROTECT, related_name="+", null=True, db_index=False
    )
    opened_seq = models.PositiveBigIntegerField()
    opened_at = models.DateTimeField()
    topology_version = models.PositiveBigIntegerField()
    grandfathered_at = models.DateTimeField(null=True)
    shared_cohorts = models.JSONField(default=list)

    class Meta:
        abstract = True


class Thread(Cycle):
    """A thread in its last cycle, keyed by its root.

    `low` and `high` are its pair; null, as `partner` is, while only a person is opposite.
    """

    class State(models.TextChoices):
        OPEN = "open"
        PROPOSED = "proposed"
        CLOSED = "closed"

    root = models.OneToOneField(
        Message, on_delete=models.CASCADE, primary_key=True, related_name="thread"
    )
    simulation = models.ForeignKey(
        Simulation, on_delete=models.CASCADE, related_name="threads", db_index=False
    )
    channel = models.ForeignKey(
        Channel, on_delete=models.PROTECT, related_name="threads", db_index=False
    )
    low = models.BigIntegerField(null=True)
    high = models.BigIntegerField(null=True)
    opener_viewed = models.PositiveIntegerField(default=0)
    opener_called = models.PositiveIntegerField(default=0)
    opener_misses = models.PositiveIntegerField(default=0)
    partner_viewed = models.PositiveIntegerField(default=0)
    partner_called = models.PositiveIntegerField(default=0)
    partner_misses = models.PositiveIntegerField(default=0)
    state = models.CharField(max_length=10, choices=State, default=State.OPEN)
    outcome = models.CharField(max_length=12, blank=True, default="")
    n_agent_messages = models.PositiveIntegerField(default=0)
    last_agent = models.ForeignKey(
        Agent, on_delete=models.PROTECT, related_name="+", null=True, db_index=False
    )
    last_agent_ordinal = models.PositiveIntegerField(default=0)
    asked = models.PositiveIntegerField(default=0)
    summary_by = models.ForeignKey(
        Agent, on_delete=models.PROTECT, related_name="+", null=True, db_index=False
    )
    summary_seq = models.PositiveBigIntegerField(null=True)
    owed_since = models.DateTimeField()
    closed_seq = models.PositiveBigIntegerField(null=True)
    closed_at = models.DateTimeField(null=True)
    guidance = models.TextField(blank=True, default="")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["simulation", "low", "high"],
                condition=Q(closed_seq__isnull=True),
                name="thread_one_open_per_pair",
            ),
            models.CheckConstraint(
                condition=Q(state="closed", closed_seq__isnull=False)
                | Q(state__in=["open", "proposed"], closed_seq__isnull=True),
                name="thread_closed_whole",
            ),
        ]

    def __str__(self) -> str:
        return f"thread {self.pk}"


class Decision(Cycle):
    """How a cycle ended, in the run that ended it: one per cycle of a thread, never changed."""

    class Outcome(models.TextChoices):
        PROPOSAL = "proposal"
        NO_PROPOSAL = "no_proposal"
        TIMEOUT = "timeout"
        LOST = "lost"

    simulation = models.ForeignKey(
        Simulation, on_delete=models.CASCADE, related_name="decisions", db_index=False
    )
    thread = models.ForeignKey(
        Thread, on_delete=models.CASCADE, related_name="decisions", db_index=False
    )
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="decisions")
    outcome = models.CharField(max_length=12, choices=Outcome)
    seq = models.PositiveBigIntegerField()
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["thread", "cycle"], name="decision_of_cycle_unique")
        ]
        indexes: ClassVar = [models.Index(fields=["simulation", "seq"], name="decision_by_seq")]

    def __str__(self) -> str:
        return f"{self.outcome} of {self.thread}"


class Proposal(models.Model):
    """A message `summary` by one side that the other confirmed; `version` moves with a review."""

    class State(models.TextChoices):
        PENDING = "pending"
        ACCEPTED = "accepted"
        DECLINED = "declined"
        REVISED = "revised"

    simulation = models.ForeignKey(
        Simulation, on_delete=models.CASCADE, related_name="proposals", db_index=False
    )
    thread = models.ForeignKey(
        Thread, on_delete=models.CASCADE, related_name="proposals", db_index=False
    )
    cycle = models.PositiveIntegerField()
    proposer = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="+", db_index=False)
    confirmer = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="+", db_index=False)
    summary = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="+", db_index=False)
    proposed_at = models.DateTimeField()
    state = models.CharField(max_length=10, choices=State, default=State.PENDING)
    version = models.PositiveIntegerField(default=1)
    reviewed_by = models.CharField(max_length=150, blank=True, default="")
    reviewed_at = models.DateTimeField(null=True, blank=True)
    note = models.TextField(blank=True, default="")
    refused = models.CharField(
        max_length=32, blank=True, default="", help_text="Why a revision could not begin."
    )
    assigned_to = models.CharField(max_length=150, blank=True, default="")
    snoozed_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-id"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["thread", "cycle"], name="proposal_of_cycle_unique")
        ]
        indexes: ClassVar = [
            models.Index(fields=["simulation", "state"], name="proposal_by_state"),
            models.Index(
                fields=["proposed_at"], condition=Q(state="pending"), name="proposal_waiting"
            ),
        ]

    def __str__(self) -> str:
        return f"proposal {self.pk}"

    @property
    def why_refused(self) -> str:
        """Return why a revision could not begin, in words."""
        return {
            "pair_taken": "the two talk with each other in another thread",
            "partner_full": "one of the two is in as many threads as it may be",
            "partner_gone": "one of the two has left",
        }.get(self.refused, self.refused)
