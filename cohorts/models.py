"""Agents, cohorts, memberships and the record of their changes.

`cohorts.operations` is the one way to write them; the constraints here hold for everybody.
"""

from __future__ import annotations

from typing import ClassVar

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from cohorts.fields import EncryptedField
from cohorts.names import (
    BOT_NAME_LIKE,
    BOT_NAME_PATTERN,
    MODEL_LIKE,
    MODEL_PATTERN,
    RESERVED_SLUGS,
    SLUG_LIKE,
    SLUG_PATTERN,
)

slug_validator = RegexValidator(SLUG_PATTERN, f"It must be {SLUG_LIKE}.")
bot_name_validator = RegexValidator(BOT_NAME_PATTERN, f"It must be {BOT_NAME_LIKE}.")
# Not any variable: whoever edits an agent could otherwise send a secret of the machine to Slack.
env_name_validator = RegexValidator(
    r"^(?!SIM_)[A-Z][A-Z0-9_]*SLACK[A-Z0-9_]*\Z",
    "It must be capitals, digits and underscores with SLACK in it, and not begin with SIM_.",
)
model_validator = RegexValidator(MODEL_PATTERN, f"It must be {MODEL_LIKE}.")
at_least_one = MinValueValidator(1)
not_negative = MinValueValidator(0)


class Agent(models.Model):
    """Somebody's speaker: its texts, limits and chat identity. Its slug never changes."""

    class Status(models.TextChoices):
        ACTIVE = "active"
        PAUSED = "paused"
        RETIRED = "retired"

    slug = models.CharField(
        "id", max_length=48, unique=True, validators=[slug_validator], help_text=f"{SLUG_LIKE}."
    )
    bot_name = models.CharField(
        max_length=48, validators=[bot_name_validator], help_text="How posts mention it: @BotName."
    )
    represents = models.CharField(
        max_length=200, blank=True, help_text="The lab, team or customer that it speaks for."
    )
    status = models.CharField(max_length=10, choices=Status, default=Status.ACTIVE)
    public_profile = models.TextField(blank=True, help_text="Markdown; every agent may read it.")
    private_instructions = models.TextField(blank=True, help_text="Markdown; for this agent alone.")
    interests = models.TextField(
        blank=True, help_text="Words for finding channels; derived from the profile when blank."
    )
    max_calls = models.PositiveIntegerField(
        "LLM calls a run", null=True, blank=True, validators=[at_least_one]
    )
    max_usd = models.DecimalField(
        "US dollars a run",
        max_digits=12,
        decimal_places=4,
        null=True,
        blank=True,
        validators=[not_negative],
    )
    daily_posts = models.PositiveIntegerField("posts a day", null=True, blank=True)
    calls_per_window = models.PositiveIntegerField(
        "LLM calls per 600 s and open thread", null=True, blank=True, validators=[at_least_one]
    )
    small_model = models.CharField(
        max_length=100,
        blank=True,
        validators=[model_validator],
        help_text="For sorting and remembering; as the run says when blank.",
    )
    large_model = models.CharField(
        max_length=100,
        blank=True,
        validators=[model_validator],
        help_text="For replies and posts; as the run says when blank.",
    )
    slack_token = EncryptedField(blank=True, default="")
    slack_token_env = models.CharField(
        "environment variable of the Slack token",
        max_length=100,
        blank=True,
        validators=[env_name_validator],
        help_text="Its name, instead of a stored token.",
    )
    bot_user_id = models.CharField("Slack bot user id", max_length=32, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["slug"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(slug__regex=SLUG_PATTERN), name="agent_slug_form"),
            models.CheckConstraint(
                condition=~Q(slug__in=RESERVED_SLUGS),
                name="agent_slug_not_reserved",
                violation_error_message="This id is reserved.",
            ),
            models.CheckConstraint(
                condition=Q(bot_name__regex=BOT_NAME_PATTERN), name="agent_bot_name_form"
            ),
            models.CheckConstraint(
                condition=~Q(bot_name__iexact="channel")
                & ~Q(bot_name__iexact="everyone")
                & ~Q(bot_name__iexact="here"),
                name="agent_bot_name_not_reserved",
                violation_error_message="This bot name is reserved.",
            ),
            models.UniqueConstraint(
                Lower("bot_name"),
                name="agent_bot_name_unique",
                violation_error_message="Another agent has this bot name (case does not count).",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["active", "paused", "retired"]), name="agent_status_known"
            ),
        ]

    def __str__(self) -> str:
        return self.slug

    def clean(self) -> None:
        if self.slack_token and self.slack_token_env:
            raise ValidationError("Give a Slack token or the name of a variable, not both.")
        refuse_new_name(self, "slug")


class AgentVersion(models.Model):
    """The texts and limits of an agent from one save to the next; never changed."""

    agent = models.ForeignKey(
        Agent, on_delete=models.CASCADE, related_name="versions", db_index=False
    )
    number = models.PositiveIntegerField()
    bot_name = models.CharField(max_length=48)
    represents = models.CharField(max_length=200, blank=True)
    public_profile = models.TextField(blank=True)
    private_instructions = models.TextField(blank=True)
    interests = models.TextField(blank=True)
    max_calls = models.PositiveIntegerField(null=True)
    max_usd = models.DecimalField(max_digits=12, decimal_places=4, null=True)
    daily_posts = models.PositiveIntegerField(null=True)
    calls_per_window = models.PositiveIntegerField(null=True)
    small_model = models.CharField(max_length=100, blank=True, default="")
    large_model = models.CharField(max_length=100, blank=True, default="")
    saved_by = models.CharField(max_length=150)
    saved_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["agent_id", "-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["agent", "number"], name="agent_version_unique")
        ]

    def __str__(self) -> str:
        return f"version {self.number}"


class Cohort(models.Model):
    """A named set of agents that may act on each other's activity. Its name never changes."""

    name = models.CharField(
        max_length=48, unique=True, validators=[slug_validator], help_text=f"{SLUG_LIKE}."
    )
    description = models.TextField(blank=True)
    created_by = models.CharField(max_length=150, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    members = models.ManyToManyField(Agent, through="Membership", related_name="cohorts")

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(name__regex=SLUG_PATTERN), name="cohort_name_form"),
            models.CheckConstraint(
                condition=~Q(name__in=RESERVED_SLUGS),
                name="cohort_name_not_reserved",
                violation_error_message="This name is reserved.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        refuse_new_name(self, "name")


class Membership(models.Model):
    """An agent in a cohort; added and removed, never updated."""

    cohort = models.ForeignKey(
        Cohort, on_delete=models.PROTECT, related_name="memberships", db_index=False
    )
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="memberships")
    added_by = models.CharField(max_length=150)
    added_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cohort", "agent"], name="membership_unique")
        ]

    def __str__(self) -> str:
        return f"{self.agent} in {self.cohort}"


class TopologyVersion(models.Model):
    """One row, moved by database triggers whenever the gate's answers may change."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    version = models.PositiveBigIntegerField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(id=1), name="topology_version_one_row")
        ]

    def __str__(self) -> str:
        return f"version {self.version}"


class TopologyChange(models.Model):
    """One line of the append-only audit; names are text, so that it outlives what it names."""

    class Action(models.TextChoices):
        COHORT_CREATED = "cohort_created"
        COHORT_DELETED = "cohort_deleted"
        MEMBER_ADDED = "member_added"
        MEMBER_REMOVED = "member_removed"
        AGENT_CREATED = "agent_created"
        AGENT_DELETED = "agent_deleted"
        STATUS_CHANGED = "status_changed"
        CHANNEL_MEMBER_ADDED = "channel_member_added"
        CHANNEL_MEMBER_REMOVED = "channel_member_removed"
        MOVED = "moved"

    version = models.PositiveBigIntegerField()
    at = models.DateTimeField(auto_now_add=True)
    who = models.CharField(max_length=150)
    action = models.CharField(max_length=30, choices=Action)
    cohort = models.CharField(max_length=48, blank=True)
    agent = models.CharField(max_length=48, blank=True)
    detail = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering: ClassVar = ["-id"]

    def __str__(self) -> str:
        return f"{self.action} {self.cohort} {self.agent}".strip()


def refuse_new_name(instance: Agent | Cohort, field: str) -> None:
    """Raise ValidationError if the stored name of a row differs: audit and export name it."""
    stored = type(instance).objects.filter(pk=instance.pk).values_list(field, flat=True)
    if instance.pk and any(name != getattr(instance, field) for name in stored):
        raise ValidationError({field: "It cannot be changed."})
