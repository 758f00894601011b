"""What a person chooses for a run that a worker is to drive."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from django import forms

from engine.core.prices import nano_usd
from engine.runs import trial_asked

REHEARSAL: Final = "rehearsal"
TRIAL: Final = "trial"
REAL: Final = "real"


class StartForm(forms.Form):
    """A kind of run and its limits; the defaults work."""

    kind = forms.ChoiceField(
        label="What kind of run",
        choices=[
            (REHEARSAL, "Rehearsal: simulated answers, free, no model is asked"),
            (TRIAL, "Try three agents for real: 5 turns, the small model, costs little"),
            (REAL, "Real: all agents that take part ask Claude, which costs money"),
        ],
        initial=REHEARSAL,
        widget=forms.RadioSelect(attrs={"class": "radiolist"}),
    )
    until_idle = forms.BooleanField(
        label="End when nothing is left to do",
        required=False,
        initial=True,
        help_text="Without this, and without a limit, it goes on until somebody stops it.",
    )
    max_minutes = forms.FloatField(
        label="At most so many minutes",
        required=False,
        min_value=0.001,
        max_value=10**6,
        initial=60,
        widget=forms.NumberInput(attrs={"class": "sim-number", "step": "any"}),
    )
    max_turns = forms.IntegerField(
        label="At most so many turns",
        required=False,
        min_value=1,
        max_value=2**63 - 1,
        widget=forms.NumberInput(attrs={"class": "sim-number"}),
    )
    max_usd = forms.DecimalField(
        label="At most so many US dollars",
        required=False,
        min_value=Decimal("0.0001"),
        max_value=Decimal(10**8),
        decimal_places=4,
        initial=Decimal("2.00"),
        help_text="A run that has spent them pauses; you may raise them then, and it goes on. A "
        "rehearsal costs nothing.",
        widget=forms.NumberInput(attrs={"class": "sim-number", "step": "any"}),
    )

    @property
    def is_free(self) -> bool:
        return bool(self.cleaned_data["kind"] == REHEARSAL)

    def asked(self) -> dict[str, Any]:
        """Return what the run is asked for, by the names that every door speaks."""
        given = self.cleaned_data
        limits = {"max_minutes": given["max_minutes"]}
        money = {"max_nano_usd": nano_usd(given["max_usd"])}
        if given["kind"] == TRIAL:
            return limits | money | trial_asked()
        limits |= {"until_idle": given["until_idle"], "max_turns": given["max_turns"]}
        if given["kind"] == REHEARSAL:
            return limits | {"llm": "offline"}
        return limits | money | {"llm": "anthropic"}
