"""A lasting world: its roster, its channels and who is in them."""

from __future__ import annotations

from typing import ClassVar

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q

from cohorts.models import Agent, slug_validator
from cohorts.names import CHANNEL_LIKE, CHANNEL_PATTERN, SLUG_LIKE, SLUG_PATTERN

channel_validator = RegexValidator(CHANNEL_PATTERN, f"It must be {CHANNEL_LIKE}.")


class Simulation(models.Model):
    """A lasting world; its settings hold only what differs from the defaults."""

    class Policy(models.TextChoices):
        OPEN = "open", "open: an agent in no cohort deals with everyone"
        ISOLATED = "isolated", "isolated: an agent in no cohort deals with nobody"
        OFF = "off", "off: no gate"

    name = models.CharField(
        max_length=48, unique=True, validators=[slug_validator], help_text=f"{SLUG_LIKE}."
    )
    description = models.TextField(blank=True)
    policy = models.CharField(max_length=10, choices=Policy, default=Policy.OPEN)
    settings = models.JSONField(default=dict, blank=True)
    roster_chosen = models.BooleanField(
        "chosen roster", default=False, help_text="Otherwise all active agents take part."
    )
    roster = models.ManyToManyField(Agent, through="RosterEntry", related_name="simulations")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(name__regex=SLUG_PATTERN), name="simulation_name_form"
            ),
            models.CheckConstraint(
                condition=Q(policy__in=["open", "isolated", "off"]), name="simulation_policy_known"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class HouseRules(models.Model):
    """The house rules of a simulation from one save to the next; never changed, the newest count."""

    simulation = models.ForeignKey(
        Simulation, on_delete=models.CASCADE, related_name="house_rules_versions", db_index=False
    )
    number = models.PositiveIntegerField()
    text = models.TextField(blank=True)
    saved_by = models.CharField(max_length=150)
    saved_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = verbose_name_plural = "house rules"
        ordering: ClassVar = ["simulation_id", "-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["simulation", "number"], name="house_rules_unique")
        ]

    def __str__(self) -> str:
        return f"version {self.number}"


class RosterEntry(models.Model):
    """An agent of a chosen roster."""

    simulation = models.ForeignKey(
        Simulation, on_delete=models.CASCADE, related_name="roster_entries", db_index=False
    )
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="roster_entries")

    class Meta:
        verbose_name_plural = "roster entries"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["simulation", "agent"], name="roster_entry_unique")
        ]

    def __str__(self) -> str:
        return f"{self.agent} in {self.simulation}"


class Channel(models.Model):
    """A place to post; a private one is for its members and outranks the gate."""

    class Visibility(models.TextChoices):
        PUBLIC = "public"
        PRIVATE = "private"

    simulation = models.ForeignKey(
        Simulation, on_delete=models.CASCADE, related_name="channels", db_index=False
    )
    name = models.CharField(
        max_length=80, validators=[channel_validator], help_text=f"{CHANNEL_LIKE}."
    )
    topic = models.CharField(max_length=250, blank=True)
    visibility = models.CharField(max_length=10, choices=Visibility, default=Visibility.PUBLIC)
    members = models.ManyToManyField(Agent, through="ChannelMember", related_name="channels")

    class Meta:
        ordering: ClassVar = ["simulation_id", "name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["simulation", "name"], name="channel_unique"),
            models.CheckConstraint(
                condition=Q(name__regex=CHANNEL_PATTERN), name="channel_name_form"
            ),
            models.CheckConstraint(
                condition=Q(visibility__in=["public", "private"]), name="channel_visibility_known"
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.name}"


class ChannelMember(models.Model):
    """An agent that belongs to a private channel."""

    channel = models.ForeignKey(
        Channel, on_delete=models.CASCADE, related_name="channel_members", db_index=False
    )
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="channel_members")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["channel", "agent"], name="channel_member_unique")
        ]

    def __str__(self) -> str:
        return f"{self.agent} in {self.channel}"


class Subscription(models.Model):
    """An agent that reads a channel."""

    channel = models.ForeignKey(
        Channel, on_delete=models.CASCADE, related_name="subscriptions", db_index=False
    )
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="subscriptions")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["channel", "agent"], name="subscription_unique")
        ]

    def __str__(self) -> str:
        return f"{self.agent} reads {self.channel}"
