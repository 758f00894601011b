"""Every page of the admin: usable by everybody, on a telephone, and within the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.urls import reverse

from tests.browser.conftest import NARROW, Visit
from tests.site.every_page import one_of_each, url_of
from tests.site.test_rights_of_pages import MODELS, OWN

if TYPE_CHECKING:
    from playwright.sync_api import Page

#: What stands inside other pages.
PARTS_OF_PAGES = {
    *("engine_in_use", "engine_pairs_picture", "engine_run_part"),
    *("engine_run_chart", "engine_run_export", "cohorts_agent_export"),
}
PARTS = ("changelist", "add", "change", "delete", "history")


def too_wide(page: Page) -> list[str]:
    """Return what sticks out of a narrow screen."""
    wide = page.evaluate("document.documentElement.scrollWidth")
    return [f"{page.url}: {wide} pixels wide on a screen of {NARROW}"] if wide > NARROW else []


def addresses(name: str) -> list[str]:
    """Return where the pages of a model, or a page of our own, are."""
    rows, one = one_of_each()
    if name in OWN:
        return [url_of(name, rows, one)]
    row = one.get(name)
    found = []
    for part in PARTS:
        if part in {"changelist", "add"}:
            found.append(reverse(f"admin:{name}_{part}"))
        elif row is not None:
            found.append(reverse(f"admin:{name}_{part}", args=[row.pk]))
    return found


@pytest.mark.parametrize(
    "name", [*MODELS, *sorted({name for name, (look, _) in OWN.items() if look} - PARTS_OF_PAGES)]
)
def test_page_can_be_used_by_everybody(visit: Visit, name: str) -> None:
    person = visit.person("superuser", width=NARROW)
    page = person.page()
    visit.expected += ["status of 403"]  # pages that nobody has
    wrong = []
    for address in addresses(name):
        answer = page.goto(address)
        assert answer is not None
        if answer.status == 200:
            wrong += visit.faults_of(page) + too_wide(page)
        else:
            assert answer.status == 403
    assert wrong == []


@pytest.mark.parametrize("address", ["/admin/", "/admin/login/", "/admin/password_change/"])
def test_page_beside_the_models_can_be_used_by_everybody(visit: Visit, address: str) -> None:
    one_of_each()
    page = visit.person("Owner", width=NARROW).page(address)
    assert visit.faults_of(page) + too_wide(page) == []


def test_faults_are_seen_at_all(visit: Visit) -> None:
    page = visit.person("Owner", width=NARROW).page()
    visit.expected += ["status of 404"]
    page.evaluate("document.body.innerHTML = '<img src=/x><p id=w>wide</p>'")
    page.evaluate("document.getElementById('w').style.width = '900px'")
    assert "image-alt" in visit.faults_of(page)[0]
    assert too_wide(page)
