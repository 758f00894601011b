"""django-q2's own pages: for superusers alone, and for nothing but our own tasks.

Whoever may write a row of these tables chooses what a worker calls. And one row whose arguments
cannot be read stops all of django-q2's schedules, so they are read before they are stored.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django import forms
from django.contrib import admin
from django_q.admin import FailAdmin, QueueAdmin, ScheduleAdmin, TaskAdmin
from django_q.models import Failure, OrmQ, Schedule, Success

if TYPE_CHECKING:
    from django.db import models
    from django.http import HttpRequest

#: What a row of django-q2's schedules may call; runs that begin by the clock have pages of ours.
TASKS: Final = ("engine.tasks.drive_run",)


class SuperusersOnly:
    """Pages that nobody but a superuser finds, whatever else he may do."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return _is_superuser(request)

    def has_view_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return _is_superuser(request)

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return _is_superuser(request)

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return _is_superuser(request)


class QueueScheduleForm(forms.ModelForm):  # type: ignore[type-arg]
    """A row of django-q2's schedules, which can be followed."""

    func = forms.ChoiceField(label="Function", choices=[(name, name) for name in TASKS])

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for widget, says in zip(
            self.fields["next_run"].widget.widgets, ("Next run, day", "Next run, time"), strict=True
        ):
            widget.attrs["aria-label"] = says

    class Meta:
        model = Schedule
        fields: ClassVar = [
            "name",
            "func",
            "args",
            "kwargs",
            "schedule_type",
            "minutes",
            "repeats",
            "next_run",
            "cron",
            "cluster",
        ]

    def clean_args(self) -> str:
        """Return arguments that django-q2 can read: one value, or several with commas."""
        text = self.cleaned_data["args"] or ""
        if text:
            _read(text, "Arguments", "1 or 1, 'a'")
        return str(text)

    def clean_kwargs(self) -> str:
        """Return named arguments that django-q2 can read, which takes others for none."""
        text = self.cleaned_data["kwargs"] or ""
        if text and not isinstance(_read(text, "Keyword arguments", "{'x': 1}"), dict):
            raise forms.ValidationError("Keyword arguments are names with values, like {'x': 1}.")
        return str(text)


def _read(text: str, what: str, example: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise forms.ValidationError(f"{what} cannot be read: write them like {example}.") from error


class OurScheduleAdmin(SuperusersOnly, ScheduleAdmin):  # type: ignore[misc]
    form = QueueScheduleForm

    def has_add_permission(self, request: HttpRequest) -> bool:
        return _is_superuser(request)


class OurTaskAdmin(SuperusersOnly, TaskAdmin):  # type: ignore[misc]
    """What was done; a task is sent again by our own doors, never by its row."""

    actions = None


class OurFailAdmin(SuperusersOnly, FailAdmin):  # type: ignore[misc]
    actions = None


class OurQueueAdmin(SuperusersOnly, QueueAdmin):  # type: ignore[misc]
    """What waits: a message may be deleted; nobody writes one by hand."""

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False


def _is_superuser(request: HttpRequest) -> bool:
    user: Any = request.user
    return bool(user.is_active and user.is_superuser)


for model, page in (
    (Schedule, OurScheduleAdmin),
    (Success, OurTaskAdmin),
    (Failure, OurFailAdmin),
    (OrmQ, OurQueueAdmin),
):
    admin.site.unregister(model)
    admin.site.register(model, page)
