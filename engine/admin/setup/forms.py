"""The forms of a simulation and of its channels."""

from __future__ import annotations

from typing import ClassVar

from django import forms

from engine.admin.setup.settings import SETTING_NAMES, SettingsForm
from engine.models import Channel, Simulation
from engine.simulations import house_rules_of


class SimulationForm(forms.ModelForm, SettingsForm):  # type: ignore[type-arg]
    """A simulation with each of its settings as a field; its raw settings are no field."""

    house_rules = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 8}),
        help_text="Purpose, tone, and what a good proposal holds; part of every prompt. Each change "
        "is a new version, and the next run uses it.",
    )

    class Meta:
        model = Simulation
        fields: ClassVar = ["name", "description", "policy", "roster_chosen"]
        labels: ClassVar = {"policy": "Agents in no cohort", "roster_chosen": "Who takes part"}
        help_texts: ClassVar = {"roster_chosen": ""}
        widgets: ClassVar = {
            "description": forms.Textarea(attrs={"rows": 3}),
            "policy": forms.RadioSelect(attrs={"class": "radiolist"}),
            "roster_chosen": forms.RadioSelect(
                attrs={"class": "radiolist"},
                choices=[(False, "All active agents"), (True, "Only the agents that you choose")],
            ),
        }

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        for name in SETTING_NAMES:
            self.initial.setdefault(name, self.instance.settings.get(name))
        if self.instance.pk:
            self.initial.setdefault("house_rules", house_rules_of(self.instance).text)

    def clean(self) -> dict[str, object] | None:
        """Put what differs from the defaults where the simulation keeps it."""
        cleaned = super().clean()
        others = {
            name: value
            for name, value in self.instance.settings.items()
            if name not in SETTING_NAMES
        }
        given = {name: self.cleaned_data.get(name) for name in SETTING_NAMES}
        self.instance.settings = others | {
            name: value for name, value in given.items() if value is not None
        }
        return cleaned


class ChannelForm(forms.ModelForm):  # type: ignore[type-arg]
    """A channel; what was said in public or in private stays so."""

    class Meta:
        model = Channel
        fields: ClassVar = ["name", "topic", "visibility"]

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        if self.instance.pk:
            self.fields["visibility"].disabled = True
            self.fields["visibility"].help_text = "It cannot be changed later."
