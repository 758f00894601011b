"""Alerts: what people were told of, and who gets mail of which kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db.models import Count, Q
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html

from engine.admin.pages import HistoryAdmin, badge
from engine.alerts.looking import NO_MAIL
from engine.alerts.mailing import page_of
from engine.models import Alert, AlertReader

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.utils.safestring import SafeString

MAIL_IS_OFF = "No server takes mail (SIM_MAIL_URL): alerts are shown here only."


@admin.register(Alert)
class AlertAdmin(HistoryAdmin):
    list_display = ("what", "kind_word", "happened", "told")
    list_display_links = None
    list_filter = ("kind", "simulation")
    list_select_related = ("simulation",)
    empty_hint = (
        "No alert yet: runs have neither failed, nor paused by themselves, nor stood still."
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Alert]:
        rows: QuerySet[Alert] = super().get_queryset(request)
        return rows.annotate(
            n_mails=Count("mails"), n_sent=Count("mails", filter=Q(mails__sent_at__isnull=False))
        )

    @admin.display(description="at")
    def happened(self, alert: Alert) -> str:
        return date_format(timezone.localtime(alert.at), "j M Y H:i")

    @admin.display(description="kind")
    def kind_word(self, alert: Alert) -> SafeString:
        return badge(alert.kind, alert.get_kind_display())

    @admin.display(description="what happened")
    def what(self, alert: Alert) -> SafeString:
        link = '{}<br><a href="{}">{}</a>'
        return format_html(link, alert.sentence, page_of(alert), alert.next_step)

    @admin.display(description="mail")
    def told(self, alert: Any) -> str:
        if not alert.n_mails:
            return "–"
        return (
            "sent" if alert.n_sent == alert.n_mails else f"{alert.n_sent} of {alert.n_mails} sent"
        )


class AlertReaderForm(forms.ModelForm):  # type: ignore[type-arg]
    """Who is told of what: a person with an address, and ticks."""

    kinds = forms.MultipleChoiceField(
        label="Told when",
        choices=Alert.Kind.choices,
        widget=forms.CheckboxSelectMultiple(attrs={"class": "radiolist"}),
        help_text="Each event is told once. It also stands under Alerts, for everybody.",
    )

    class Meta:
        model = AlertReader
        fields: ClassVar[list[str]] = ["person", "kinds"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "person" in self.fields:
            people = get_user_model()._default_manager.filter(is_active=True, is_staff=True)
            self.fields["person"].queryset = people  # type: ignore[attr-defined]

    def clean_person(self) -> Any:
        """Refuse somebody whom no mail would reach."""
        person = self.cleaned_data["person"]
        if not person.email:
            raise forms.ValidationError(
                f"{person} has no e-mail address: enter it under Users, then come back."
            )
        return person


@admin.register(AlertReader)
class AlertReaderAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    form = AlertReaderForm
    list_display = ("person", "address", "told_when")
    list_select_related = ("person",)
    show_facets = admin.ShowFacets.NEVER

    def get_fieldsets(self, request: HttpRequest, obj: AlertReader | None = None) -> Any:
        is_off = settings.EMAIL_BACKEND == NO_MAIL
        return [
            (None, {"fields": ("person", "kinds"), "description": MAIL_IS_OFF if is_off else ""})
        ]

    @admin.display(description="e-mail address")
    def address(self, reader: AlertReader) -> str:
        return reader.person.email

    @admin.display(description="told when")
    def told_when(self, reader: AlertReader) -> str:
        return ", ".join(label for kind, label in Alert.Kind.choices if kind in reader.kinds)
