"""Hostile text in every field that takes text, on every page: it is shown as text and does nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.exceptions import FieldError
from django.db import DatabaseError, models, transaction
from django.urls import reverse

from cohorts.models import Agent
from tests.site.every_page import one_of_each, url_of
from tests.site.test_rights_of_pages import MODELS, OWN, finish

if TYPE_CHECKING:
    from django.test import Client

    from tests.site.admin_world import Rows

pytestmark = pytest.mark.django_db

HOSTILE: Final = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>{{ 7|add:1 }}{% now 'Y' %}%s {0} "
    "[j](javascript:alert(3)) \u202eevil\u202c \u200bzero\ufeff =HYPERLINK('http://evil.example')"
)
BAD: Final = ("<script>alert", "<img src=x", "\u202e", "\u200b", 'href="javascript', "8{% now")
#: What is edited stays as it is stored.
FIELDS: Final = re.compile(r'<textarea\b.*?</textarea>|\svalue="[^"]*"', re.DOTALL)
#: Fields whose text has a meaning to the program, which a form or a constraint holds to it.
MEANT: Final = {"password", "codename", "app_label", "clock", "owner", "func"}


@pytest.fixture
def admin_user() -> User:
    """Stand in for pytest-django's, whose password takes a second to hash."""
    return User.objects.create(username="admin", is_staff=True, is_superuser=True)


def poison() -> int:
    """Put hostile text into every field of text that the database lets have it."""
    n_fields = 0
    for model in apps.get_models():
        if model._meta.app_label not in {"cohorts", "engine", "admin"}:
            continue
        for field in model._meta.concrete_fields:
            is_text = isinstance(field, models.CharField | models.TextField)
            if not is_text or field.choices or field.name in MEANT or field.primary_key:
                continue
            text = HOSTILE[: getattr(field, "max_length", None) or len(HOSTILE) * 40]
            try:
                with transaction.atomic():
                    model._default_manager.update(**{field.name: text})
                    n_fields += 1
            except (DatabaseError, FieldError):
                continue  # a constraint keeps it out
    return n_fields


def pages(rows: Rows, one: dict[str, models.Model]) -> dict[str, str]:
    found = {name: url_of(name, rows, one) for name, (look, _) in OWN.items() if look}
    for model in MODELS:
        found[f"{model}_changelist"] = reverse(f"admin:{model}_changelist")
        if model in one:
            for part in ("change", "history"):
                found[f"{model}_{part}"] = reverse(f"admin:{model}_{part}", args=[one[model].pk])
    return found | {"home": reverse("admin:index")}


def test_hostile_text_does_nothing_on_any_page(admin_client: Client) -> None:
    rows, one = one_of_each()
    every = pages(rows, one)
    assert poison() > 40
    wrong: list[tuple[str, object]] = []
    n_shown = 0
    for name, address in every.items():
        answer = admin_client.get(address, follow=True)
        if answer.streaming:
            finish(answer)
            continue
        page = answer.content.decode()
        if answer.status_code not in {200, 403}:
            wrong.append((name, answer.status_code))
        seen = FIELDS.sub("", page)
        wrong += [(name, bad) for bad in BAD if bad in seen]
        n_shown += "&lt;script&gt;alert" in page
    assert wrong == []
    assert n_shown > 20


def test_field_of_a_form_keeps_what_is_stored(admin_client: Client) -> None:
    _, one = one_of_each()
    Agent.objects.update(public_profile="a\u202eb", represents="c\u200bd")
    page = admin_client.get(reverse("admin:cohorts_agent_change", args=[one["cohorts_agent"].pk]))
    text = page.content.decode()
    assert "a\u202eb</textarea>" in text
    assert 'value="c\u200bd"' in text
    listed = admin_client.get(reverse("admin:cohorts_agent_changelist")).content.decode()
    assert "c[U+200B]d" in listed
