"""Executions of a simulation: what was asked for, who drives it, what people ask of it."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from cohorts.models import Agent
from engine.models.simulation import Simulation

LIVE = ("running", "paused", "stopping")


class Run(models.Model):
    """One execution of a simulation; `summary` is its summary object once it has ended."""

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        PAUSED = "paused"
        STOPPING = "stopping"
        STOPPED = "stopped"
        COMPLETED = "completed"
        FAILED = "failed"
        INTERRUPTED = "interrupted"

    class EndReason(models.TextChoices):
        IDLE = "idle"
        STOPPED = "stopped"
        TIME_LIMIT = "time_limit"
        TURN_LIMIT = "turn_limit"
        MONEY_CAP = "money_cap"
        CALL_CAP = "call_cap"
        CIRCUIT_OPEN = "circuit_open"
        PAUSE_REQUESTED = "pause_requested"
        NOBODY_LEFT = "nobody_left"
        FAILED = "failed"
        INTERRUPTED = "interrupted"

    simulation = models.ForeignKey(Simulation, on_delete=models.CASCADE, related_name="runs")
    status = models.CharField(max_length=12, choices=Status, default=Status.QUEUED)
    end_reason = models.CharField(max_length=20, choices=EndReason, blank=True, default="")
    detail = models.TextField(blank=True, default="", help_text="Why it ended, in one sentence.")
    configuration = models.JSONField(default=dict)
    started_by = models.CharField(max_length=150, blank=True, default="")
    code_version = models.CharField(max_length=64, blank=True, default="")
    seed = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    takeovers = models.PositiveIntegerField(default=0)
    summary = models.JSONField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-id"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["simulation"], condition=Q(status__in=LIVE), name="run_one_live"
            ),
            models.CheckConstraint(
                condition=Q(
                    status__in=["queued", *LIVE, "stopped", "completed", "failed", "interrupted"]
                ),
                name="run_status_known",
            ),
        ]
        # Counted by state at each look from outside, and looked through for what ended lately.
        indexes: ClassVar = [models.Index(fields=["status", "finished_at"], name="run_by_status")]

    def __str__(self) -> str:
        return f"run {self.pk} of {self.simulation}"


class RunLease(models.Model):
    """The right to drive a simulation; written by drivers alone.

    One row for the life of the simulation, so that `token` and `commit_no` only grow: a driver
    of an earlier run is fenced by the same comparison as a late one of this run. `expires` is a
    number of seconds on the clock that `clock` names: the database's ("database", since 1970),
    or a machine's since its boot (the boot id). `wrote_at` is the latest time that a
    driver has stamped.
    """

    simulation = models.OneToOneField(
        Simulation, on_delete=models.CASCADE, primary_key=True, related_name="lease"
    )
    run = models.ForeignKey(
        Run, on_delete=models.SET_NULL, null=True, related_name="+", db_index=False
    )
    token = models.PositiveBigIntegerField(default=0)
    commit_no = models.PositiveBigIntegerField(default=0)
    wrote_at = models.DateTimeField(null=True)
    expires = models.FloatField(default=0.0)
    clock = models.CharField(max_length=64, blank=True, default="")
    owner = models.CharField(max_length=200, blank=True, default="")
    beat_at = models.DateTimeField(null=True)
    counters = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"lease of {self.simulation}"


class RunControl(models.Model):
    """What people ask of a run; written by people alone. A raised cap replaces the run's own."""

    class Wish(models.TextChoices):
        RUN = "run"
        PAUSE = "pause"
        DRAIN = "drain"
        STOP = "stop"

    run = models.OneToOneField(
        Run, on_delete=models.CASCADE, primary_key=True, related_name="control"
    )
    wish = models.CharField(max_length=10, choices=Wish, default=Wish.RUN)
    max_nano_usd = models.PositiveBigIntegerField(null=True, blank=True)
    max_calls = models.PositiveBigIntegerField(null=True, blank=True)
    asked_by = models.CharField(max_length=150, blank=True, default="")
    asked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.wish} {self.run}"


class Turn(models.Model):
    """One activation of one agent; `number` counts the selections of the simulation."""

    simulation = models.ForeignKey(
        Simulation, on_delete=models.CASCADE, related_name="turns", db_index=False
    )
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="turns")
    number = models.PositiveBigIntegerField()
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="turns", db_index=False)
    agent_version = models.PositiveIntegerField()
    selected_at = models.DateTimeField()
    waited_seconds = models.FloatField()
    wait_bound_seconds = models.FloatField()
    finished_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=12)
    llm_calls = models.PositiveIntegerField(default=0)
    committed = models.PositiveIntegerField(default=0)
    gate_filtered = models.PositiveIntegerField(default=0)
    rejected = models.JSONField(default=dict)
    detail = models.TextField(blank=True, default="")

    class Meta:
        ordering: ClassVar = ["number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["simulation", "number"], name="turn_number_unique")
        ]

    def __str__(self) -> str:
        return f"turn {self.number} of {self.agent}"


class LlmCall(models.Model):
    """One attempt of one call; (run, turn, number) is its key. Money in nano-USD.

    `thread` is the `seq` of a root, since a call may be about a thread that never opens. One that
    costs money is stored as reserved before it leaves, on the day `reserved_on`; its cost is NULL
    until it is settled, and for ever if its model has no price.
    """

    class State(models.TextChoices):
        RESERVED = "reserved"
        SETTLED = "settled"

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="llm_calls", db_index=False)
    turn = models.PositiveBigIntegerField()
    number = models.PositiveIntegerField()
    agent = models.ForeignKey(
        Agent, on_delete=models.PROTECT, related_name="llm_calls", db_index=False
    )
    agent_version = models.PositiveIntegerField()
    house_rules_version = models.PositiveIntegerField(default=0)
    phase = models.CharField(max_length=12)
    thread = models.PositiveBigIntegerField(null=True)
    model = models.CharField(max_length=100)
    prompt_version = models.CharField(max_length=64)
    attempt = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    latency_seconds = models.FloatField()
    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    cache_read_tokens = models.PositiveBigIntegerField(default=0)
    cache_write_tokens = models.PositiveBigIntegerField(default=0)
    state = models.CharField(max_length=8, choices=State, default=State.SETTLED)
    reserved_on = models.DateField(null=True)
    reserved_nano_usd = models.PositiveBigIntegerField(default=0)
    cost_nano_usd = models.PositiveBigIntegerField(null=True, default=0)
    finish_reason = models.CharField(max_length=32, blank=True, default="")
    error = models.TextField(blank=True, default="")

    class Meta:
        verbose_name = "LLM call"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "turn", "number"], name="llm_call_number_unique")
        ]
        # A driver that takes over reads the calls of the last ten minutes.
        # Those in flight, of all runs, are counted before each that costs money.
        indexes: ClassVar = [
            models.Index(fields=["run", "started_at"], name="llm_call_recent"),
            models.Index(fields=["run"], condition=Q(state="reserved"), name="llm_call_in_flight"),
        ]

    def __str__(self) -> str:
        return f"{self.phase} call {self.number} of turn {self.turn}"


class CallText(models.Model):
    """A call word for word, as JSON: all that the model was shown, part by part, and its answer.

    It is there for a replay and for whoever wants to know why, and goes before the call does
    (`manage.py prunesim`). It is text, since PostgreSQL's JSON takes less than what a model may say.
    `handed_in_at` is when the group was taken that carries the call, NULL if none did.
    """

    call = models.OneToOneField(
        LlmCall, on_delete=models.CASCADE, related_name="text", primary_key=True
    )
    asked = models.TextField()
    said = models.TextField(blank=True, default="")
    wait_seconds = models.FloatField(null=True)
    handed_in_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "text of an LLM call"
        verbose_name_plural = "texts of LLM calls"

    def __str__(self) -> str:
        return f"text of {self.call}"


class TopologySnapshot(models.Model):
    """The cohorts that a run went by from `at` on: the cohorts' names to their agents' slugs."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="snapshots", db_index=False)
    version = models.PositiveBigIntegerField()
    at = models.DateTimeField()
    policy = models.CharField(max_length=10)
    verdict = models.CharField(max_length=10)
    cohorts = models.JSONField(default=dict)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "version"], name="snapshot_version_unique")
        ]

    def __str__(self) -> str:
        return f"topology {self.version} of {self.run}"
