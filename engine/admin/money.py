"""Pages of money: what models cost, and the most that all runs may spend in a day."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar

from django import forms
from django.contrib import admin

from engine.admin.pages import person_of
from engine.core.prices import NANO, nano_usd
from engine.models import DayCap, ModelPrice
from engine.money import set_day_cap, shipped_prices

if TYPE_CHECKING:
    from django.http import HttpRequest


@admin.register(ModelPrice)
class ModelPriceAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = (
        "model",
        "since",
        "prompt_above",
        "input",
        "output",
        "cache_write",
        "cache_read",
        "entered_by",
    )
    search_fields = ("model",)
    show_facets = admin.ShowFacets.NEVER
    fieldsets = (
        (
            None,
            {
                "fields": ("model", "since", "prompt_above"),
                "description": (
                    "A price that you enter goes before the one that came with this release "
                    f"({len({price.model for price in shipped_prices()})} models have one)."
                ),
            },
        ),
        (
            "US dollars for a million tokens",
            {"fields": ("input", "output", "cache_write", "cache_read", "source")},
        ),
    )

    def save_model(
        self,
        request: HttpRequest,
        obj: ModelPrice,
        form: forms.ModelForm[ModelPrice],
        change: bool,  # noqa: FBT001 - Django's signature
    ) -> None:
        obj.entered_by = person_of(request)
        super().save_model(request, obj, form, change)


class DayCapForm(forms.ModelForm):  # type: ignore[type-arg]
    """The money of a day, in dollars."""

    max_usd = forms.DecimalField(
        label="US dollars a day",
        required=False,
        min_value=Decimal(0),
        max_value=Decimal(10**8),
        decimal_places=4,
        help_text=(
            "The most that all runs together may spend from midnight to midnight; blank: no limit. "
            "A run that meets it pauses, and is resumed after midnight or when you raise this."
        ),
    )

    class Meta:
        model = DayCap
        fields: ClassVar[list[str]] = []

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        if self.instance.max_nano_usd is not None:
            self.initial["max_usd"] = Decimal(self.instance.max_nano_usd) / NANO


@admin.register(DayCap)
class DayCapAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    form = DayCapForm
    fields = ("max_usd",)
    list_display = ("__str__", "changed_by", "changed_at")
    show_facets = admin.ShowFacets.NEVER

    def has_add_permission(self, request: HttpRequest) -> bool:
        return super().has_add_permission(request) and not DayCap.objects.exists()

    def has_delete_permission(self, request: HttpRequest, obj: DayCap | None = None) -> bool:
        return False

    def save_model(
        self,
        request: HttpRequest,
        obj: DayCap,
        form: forms.ModelForm[DayCap],
        change: bool,  # noqa: FBT001 - Django's signature
    ) -> None:
        set_day_cap(nano_usd(form.cleaned_data["max_usd"]), who=person_of(request))
        obj.pk = 1
        obj.refresh_from_db()
