"""Schedules that people write, and what came of each of their times."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from engine.models.runs import Run
from engine.models.simulation import Simulation


class RunSchedule(models.Model):
    """Runs that begin by the clock: what, when, and within which limits.

    `asked` is what a run is asked for, by the names of `engine.runs.asked`; what it does not name
    is the simulation's. Everything up to `settled_until` is dealt with, and `next_at` is the next
    time after that, None when there is none. `problem` says why the schedule cannot be followed.
    """

    class Kind(models.TextChoices):
        EVERY = "every", "every so many minutes or hours"
        DAILY = "daily", "every day"
        WEEKLY = "weekly", "on days of the week"
        MONTHLY = "monthly", "on a day of the month"
        CRON = "cron", "by a cron text"

    class Missed(models.TextChoices):
        SKIP = "skip", "skip it: the next time will do"
        ONCE = "once", "run once, as soon as possible, however many times were missed"

    class Overlap(models.TextChoices):
        SKIP = "skip", "skip this time"
        QUEUE = "queue", "wait until that run is over; no more than one waits"
        STOP = "stop", "stop that run if this schedule began it, else wait for it"

    name = models.CharField(max_length=80, unique=True)
    simulation = models.ForeignKey(
        Simulation, on_delete=models.SET_NULL, null=True, related_name="schedules"
    )
    asked = models.JSONField(default=dict, blank=True)
    kind = models.CharField(max_length=8, choices=Kind, default=Kind.DAILY)
    every_minutes = models.PositiveIntegerField(null=True, blank=True)
    times = models.CharField(max_length=200, blank=True, default="")
    weekdays = models.CharField(max_length=7, blank=True, default="")
    month_day = models.PositiveSmallIntegerField(null=True, blank=True)
    cron = models.CharField(max_length=200, blank=True, default="")
    time_zone = models.CharField(max_length=64)
    first_date = models.DateField()
    last_date = models.DateField(null=True, blank=True)
    missed = models.CharField(max_length=8, choices=Missed, default=Missed.SKIP)
    overlap = models.CharField(max_length=8, choices=Overlap, default=Overlap.SKIP)
    max_nano_usd = models.PositiveBigIntegerField(null=True, blank=True)
    month_nano_usd = models.PositiveBigIntegerField(null=True, blank=True)
    owner = models.CharField(max_length=150)
    enabled = models.BooleanField("switched on", default=True)
    settled_until = models.DateTimeField()
    next_at = models.DateTimeField(null=True, blank=True)
    problem = models.TextField(blank=True, default="")
    changed_by = models.CharField(max_length=150)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = "schedule"
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(kind__in=["every", "daily", "weekly", "monthly", "cron"]),
                name="schedule_kind_known",
            ),
        ]
        # What is due is looked for every few seconds.
        indexes: ClassVar = [
            models.Index(fields=["next_at"], condition=Q(enabled=True), name="schedule_due")
        ]

    def __str__(self) -> str:
        return self.name


class Occasion(models.Model):
    """One intended time of a schedule, and what came of it: a run, or why there is none.

    Its constraint is what gives each time one run, whatever the number of clusters. `missed_since`
    is the first of the times that went by unseen before it.
    """

    class Outcome(models.TextChoices):
        RUN = "run", "a run"
        MISSED = "missed", "missed"
        SKIPPED = "skipped", "skipped"
        REFUSED = "refused", "refused"

    schedule = models.ForeignKey(
        RunSchedule, on_delete=models.CASCADE, related_name="occasions", db_index=False
    )
    intended_at = models.DateTimeField()
    decided_at = models.DateTimeField()
    outcome = models.CharField(max_length=8, choices=Outcome)
    reason = models.TextField(blank=True, default="")
    missed_since = models.DateTimeField(null=True)
    run = models.OneToOneField(Run, on_delete=models.SET_NULL, null=True, related_name="occasion")

    class Meta:
        ordering: ClassVar = ["-intended_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["schedule", "intended_at"], name="occasion_once")
        ]

    def __str__(self) -> str:
        return f"{self.schedule} at {self.intended_at:%Y-%m-%d %H:%M} UTC"
