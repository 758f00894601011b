"""The form of a schedule: each of its parts as a field in plain words, checked as it will be used."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, ClassVar, Final
from zoneinfo import available_timezones

from django import forms
from django.contrib.auth import get_user_model
from django.utils import timezone

from engine.admin.setup.settings import SETTING_NAMES, SettingsForm
from engine.core.prices import NANO, nano_usd
from engine.core.settings import RefusedSetting
from engine.core.timetable_texts import LAST_DAY, WEEKDAYS, read_times, read_when
from engine.models import RunSchedule, Simulation
from engine.runs.schedules import check_schedule

HOUR: Final = 60
#: Where a sentence about a kind of timetable belongs, once its times can be read.
_FIELD_OF_KIND: Final = {
    "every": "every_number",
    "daily": "times",
    "weekly": "weekdays",
    "monthly": "month_day",
    "cron": "cron",
}
#: What a run is asked for that is no setting of a simulation.
ASKED_NAMES: Final = (
    "llm",
    "small_model",
    "large_model",
    "policy",
    "until_idle",
    "max_minutes",
    "max_turns",
    "max_calls",
)
_AS_SIMULATION: Final = ("", "as the simulation has it")
_DATE: Final = forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")


def _usd(label: str, help_text: str) -> forms.DecimalField:
    return forms.DecimalField(
        label=label,
        required=False,
        min_value=Decimal("0.0001"),
        max_value=Decimal(10**8),
        decimal_places=4,
        help_text=help_text,
    )


class ScheduleForm(forms.ModelForm, SettingsForm):  # type: ignore[type-arg]
    """A schedule; what is left blank is the simulation's, or the site's."""

    every_number = forms.IntegerField(label="Every", required=False, min_value=1)
    every_unit = forms.ChoiceField(
        label="of these", choices=[("1", "minutes"), ("60", "hours")], required=False
    )
    weekdays = forms.MultipleChoiceField(
        label="On these days",
        required=False,
        choices=[(str(number), name) for number, name in enumerate(WEEKDAYS)],
        widget=forms.CheckboxSelectMultiple,
    )
    month_day = forms.TypedChoiceField(
        label="Day of the month",
        required=False,
        coerce=int,
        empty_value=None,
        choices=[
            ("", "choose one"),
            *((number, str(number)) for number in range(1, LAST_DAY)),
            (LAST_DAY, "the last day"),
        ],
        help_text="In a month that is too short for it, its last day.",
    )
    time_zone = forms.ChoiceField(
        choices=lambda: [(name, name) for name in sorted(available_timezones())],
        help_text="Times are those of its wall clock. On nights on which clocks are moved, a time "
        "that does not exist is due when the clock has jumped over it, and one that comes twice is "
        "due the first time.",
    )
    llm = forms.ChoiceField(
        label="Model",
        required=False,
        choices=[
            ("", "as the site has it"),
            ("offline", "none: a rehearsal, free and simulated"),
            ("anthropic", "Claude: a real model, which costs money"),
        ],
    )
    small_model = forms.CharField(
        label="Model for sorting and remembering", required=False, help_text="Blank: the site's."
    )
    large_model = forms.CharField(
        label="Model for replies and posts", required=False, help_text="Blank: the site's."
    )
    policy = forms.ChoiceField(
        label="Agents in no cohort",
        required=False,
        choices=[_AS_SIMULATION, *Simulation.Policy.choices],
    )
    until_idle = forms.BooleanField(
        label="End when nothing is left to do",
        required=False,
        initial=True,
        help_text="Without this, and without a limit, a run goes on until somebody stops it.",
    )
    max_minutes = forms.FloatField(
        label="At most so many minutes", required=False, min_value=0.001, max_value=10**6
    )
    max_turns = forms.IntegerField(label="At most so many turns", required=False, min_value=1)
    max_calls = forms.IntegerField(label="At most so many model calls", required=False, min_value=1)
    max_usd = _usd("US dollars a run", "A run that has spent them pauses; blank: no limit.")
    month_usd = _usd(
        "US dollars a month",
        "The most that all runs of this schedule may spend in a calendar month; blank: no limit.",
    )

    class Meta:
        model = RunSchedule
        fields: ClassVar = [
            "name",
            "simulation",
            "enabled",
            "owner",
            "kind",
            "times",
            "month_day",
            "cron",
            "time_zone",
            "first_date",
            "last_date",
            "missed",
            "overlap",
        ]
        labels: ClassVar = {
            "enabled": "Switched on",
            "kind": "How often",
            "times": "At these times",
            "cron": "Cron text",
            "first_date": "First day",
            "last_date": "Last day",
            "missed": "If nobody was there at a time",
            "overlap": "If a run of the simulation still goes on",
        }
        help_texts: ClassVar = {
            "owner": "Who answers for it: the user name of a person.",
            "times": "Like 9:00, or several: 9:00, 17:30.",
            "cron": "Minute, hour, day, month, weekday: 0 9 * * mon-fri is nine on working days.",
            "first_date": "“Every so many minutes or hours” counts from midnight of this day.",
            "last_date": "Blank: no end.",
            "missed": "A time counts as missed when no cluster was there for five minutes.",
        }
        widgets: ClassVar = {
            "kind": forms.RadioSelect(attrs={"class": "radiolist"}),
            "missed": forms.RadioSelect(attrs={"class": "radiolist"}),
            "overlap": forms.RadioSelect(attrs={"class": "radiolist"}),
            "first_date": _DATE,
            "last_date": _DATE,
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.now = timezone.now()
        for name in SETTING_NAMES:
            field = self.fields[name]
            bounds = str(field.help_text).partition("; blank: ")[0]
            field.help_text = f"{bounds}; blank: as the simulation has it."
            field.widget.attrs["placeholder"] = "as the simulation has it"
        if self.instance.pk:
            self._fill()

    def _fill(self) -> None:
        """Show what is stored in the fields that are not the row's own."""
        schedule = self.instance
        asked = schedule.asked if isinstance(schedule.asked, dict) else {}
        is_hours = bool(schedule.every_minutes) and schedule.every_minutes % HOUR == 0
        unit = HOUR if is_hours else 1
        stored: dict[str, Any] = {
            "every_number": schedule.every_minutes and schedule.every_minutes // unit,
            "every_unit": str(unit),
            "weekdays": list(schedule.weekdays),
            "max_usd": _dollars(schedule.max_nano_usd),
            "month_usd": _dollars(schedule.month_nano_usd),
            **{name: asked.get(name) for name in (*ASKED_NAMES, *SETTING_NAMES)},
        }
        self.initial = (
            stored
            | {"until_idle": bool(asked.get("until_idle"))}
            | {name: value for name, value in self.initial.items() if name not in stored}
        )

    def clean_owner(self) -> str:
        owner = str(self.cleaned_data["owner"])
        if not get_user_model().objects.filter(username=owner).exists():
            raise forms.ValidationError(f"There is no person “{owner}”: write a user name.")
        return owner

    def clean_weekdays(self) -> str:
        return "".join(self.cleaned_data["weekdays"])

    def clean(self) -> dict[str, Any] | None:
        """Put what the fields say where the schedule keeps it."""
        cleaned = super().clean()
        given, schedule = self.cleaned_data, self.instance
        number, unit = given.get("every_number"), int(given.get("every_unit") or 1)
        schedule.every_minutes = None if number is None else number * unit
        schedule.max_nano_usd = nano_usd(given.get("max_usd"))
        schedule.month_nano_usd = nano_usd(given.get("month_usd"))
        names = (*ASKED_NAMES, *SETTING_NAMES)
        stored = schedule.asked if isinstance(schedule.asked, dict) else {}
        others = {name: value for name, value in stored.items() if name not in names}
        asked = {name: given.get(name) for name in names}
        schedule.asked = others | {
            name: value for name, value in asked.items() if value not in (None, "")
        }
        if "kind" in given:
            self._check_when(given)
        return cleaned

    def _check_when(self, given: dict[str, Any]) -> None:
        """Say what the chosen kind of timetable lacks, at the field where it is missing."""
        kind, field = given["kind"], "times"
        try:
            if kind not in {"every", "cron"}:
                read_times(given.get("times") or "")
            field = _FIELD_OF_KIND[kind]
            read_when(
                kind,
                minutes=self.instance.every_minutes,
                times=given.get("times") or "",
                weekdays=given.get("weekdays") or "",
                day=given.get("month_day"),
                cron=given.get("cron") or "",
            )
        except RefusedSetting as refusal:
            self.add_error(field, str(refusal))

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        if self.errors:
            return
        try:
            check_schedule(self.instance, now=self.now)
        except RefusedSetting as refusal:
            self.add_error(None, str(refusal))


def _dollars(nano: int | None) -> Decimal | None:
    return None if nano is None else Decimal(nano) / NANO
