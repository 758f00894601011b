"""Money: what models cost, what the installation may spend in a day, what is spent and promised."""

from __future__ import annotations

from decimal import Decimal
from typing import ClassVar

from django.core.validators import MinValueValidator
from django.db import models

from engine.core.prices import NANO
from engine.models.runs import Run

not_negative = MinValueValidator(0)


def usd_field(label: str) -> models.DecimalField[str | Decimal, Decimal]:
    """Return the field of a price in US dollars for a million tokens."""
    return models.DecimalField(label, max_digits=12, decimal_places=6, validators=[not_negative])


class ModelPrice(models.Model):
    """A price that somebody entered; it goes before the shipped one of the same model and day.

    Of several prices of one day each holds for prompts of more than `prompt_above` tokens.
    """

    model = models.CharField(max_length=100, help_text="As the provider names it.")
    since = models.DateField(help_text="The first day (UTC) on which it holds.")
    prompt_above = models.PositiveIntegerField(
        "for prompts above",
        default=0,
        help_text="Tokens; 0 unless the provider charges more for long prompts.",
    )
    input = usd_field("tokens read")
    output = usd_field("tokens written")
    cache_write = usd_field("written to the cache")
    cache_read = usd_field("read from the cache")
    source = models.CharField(max_length=300, help_text="Where it can be looked up.")
    entered_by = models.CharField(max_length=150, editable=False)
    entered_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["model", "since", "prompt_above"]
        verbose_name = "price of a model"
        verbose_name_plural = "prices of models"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["model", "since", "prompt_above"],
                name="model_price_unique",
                violation_error_message="This model has a price from that day on already.",
            )
        ]

    def __str__(self) -> str:
        return f"{self.model} from {self.since}"


class DayCap(models.Model):
    """The most that all runs together may spend in a day; one row, None is no limit.

    A row, and not an environment variable: every process of every host goes by it at once.
    """

    max_nano_usd = models.PositiveBigIntegerField(null=True)
    changed_by = models.CharField(max_length=150, editable=False)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = verbose_name_plural = "money a day"
        constraints: ClassVar = [
            models.CheckConstraint(condition=models.Q(pk=1), name="day_cap_one_row")
        ]

    def __str__(self) -> str:
        if self.max_nano_usd is None:
            return "no limit"
        return f"${self.max_nano_usd / NANO:,.2f} a day"


class Purse(models.Model):
    """What was spent and is promised under one cap: of a day, a run, or an agent in a run.

    Written by drivers alone: a promise only by a statement that compares it with the cap.
    """

    name = models.CharField(max_length=64, primary_key=True)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, null=True, related_name="purses")
    spent_nano_usd = models.PositiveBigIntegerField(default=0)
    reserved_nano_usd = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return self.name
