"""What people are told of without asking: alerts, who gets which, and the mail of each.

Beside them the sign of life of workers, by which a watchdog finds one that is stuck.
"""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from engine.models.runs import Run
from engine.models.schedules import RunSchedule
from engine.models.simulation import Simulation


class Alert(models.Model):
    """One event that a person should know of; `key` is the event's, so that it is told once.

    It is of a run, of a schedule, or else of a simulation.
    """

    class Kind(models.TextChoices):
        FAILED = "failed", "a run failed"
        PAUSED = "paused", "a run paused by itself"
        STALLED = "stalled", "a run stands still"
        LATE = "late", "a run did not start in time"
        SLOW = "slow", "a run takes far longer than usual"
        QUICK = "quick", "a run ended suspiciously fast"
        UNREVIEWED = "unreviewed", "proposals wait for review"

    key = models.CharField(max_length=100, unique=True)
    kind = models.CharField(max_length=12, choices=Kind)
    simulation = models.ForeignKey(
        Simulation, on_delete=models.CASCADE, null=True, related_name="alerts"
    )
    run = models.ForeignKey(Run, on_delete=models.CASCADE, null=True, related_name="alerts")
    schedule = models.ForeignKey(
        RunSchedule, on_delete=models.CASCADE, null=True, related_name="alerts"
    )
    at = models.DateTimeField()
    sentence = models.TextField()
    next_step = models.TextField()

    class Meta:
        ordering: ClassVar = ["-id"]

    def __str__(self) -> str:
        return f"{self.get_kind_display()}: {self.sentence}"


class AlertReader(models.Model):
    """Somebody who gets mail, and of which kinds of alerts."""

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="alert_reader"
    )
    kinds = models.JSONField(default=list)

    class Meta:
        verbose_name = "reader of alerts"
        verbose_name_plural = "readers of alerts"

    def __str__(self) -> str:
        return str(self.person)


class AlertMail(models.Model):
    """The mail of one alert to one reader: sent, or tried again from `next_try_at` on."""

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="mails", db_index=False)
    reader = models.ForeignKey(AlertReader, on_delete=models.CASCADE, related_name="mails")
    sent_at = models.DateTimeField(null=True)
    next_try_at = models.DateTimeField()
    n_tries = models.PositiveIntegerField(default=0)
    error = models.TextField(blank=True, default="")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["alert", "reader"], name="alert_mail_unique")
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["next_try_at"], condition=Q(sent_at__isnull=True), name="alert_mail_waiting"
            )
        ]

    def __str__(self) -> str:
        return f"mail to {self.reader}"


class WorkerBeat(models.Model):
    """When a worker last showed that it does its work; its name says host and queue."""

    worker = models.CharField(max_length=200, primary_key=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return self.worker
