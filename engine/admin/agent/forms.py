"""The form of an agent: its token can be entered or removed, never read back."""

from __future__ import annotations

from typing import ClassVar

from django import forms

from cohorts.models import Agent


class AgentForm(forms.ModelForm):  # type: ignore[type-arg]
    """All fields of an agent but the stored token, which is only written."""

    new_slack_token = forms.CharField(
        required=False,
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password"}),
        help_text="Replaces the stored token; left blank, it stays.",
    )
    remove_slack_token = forms.BooleanField(required=False)

    class Meta:
        model = Agent
        exclude: ClassVar = ["slack_token"]

    def clean(self) -> dict[str, object] | None:
        """Put the token where the model's own validation and saving find it."""
        cleaned = super().clean()
        if self.cleaned_data.get("remove_slack_token"):
            self.instance.slack_token = ""
        if token := self.cleaned_data.get("new_slack_token"):
            self.instance.slack_token = token
        return cleaned
