"""Sessions as people have them: one that ends while a form is open, and the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect

from cohorts.models import Agent
from tests.doors import make_agent

if TYPE_CHECKING:
    from tests.browser.conftest import Visit

PASSWORD = "a-long-one-7"


def test_session_that_ends_on_a_form_saves_nothing_half_and_leads_back(visit: Visit) -> None:
    agent = make_agent("ash")
    person = visit.person("Operator")
    person.user.set_password(PASSWORD)
    person.user.save()
    page = person.page(f"/admin/cohorts/agent/{agent.pk}/change/")
    # The new password has ended the session already.
    expect(page.get_by_text("You are not signed in, or no longer.")).to_be_visible()
    page.get_by_label("Username:").fill(person.user.username)
    page.get_by_label("Password:").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_label("Represents:").fill("Somebody else")
    person.context.clear_cookies()

    visit.expected += ["status of 403"]  # the token of the form went with the cookies
    page.get_by_role("button", name="Save", exact=True).click()

    expect(page.get_by_text("Nothing was saved.")).to_be_visible()
    assert Agent.objects.get().represents == agent.represents
    page.get_by_role("link", name="To the start page").click()
    expect(page.get_by_label("Username:")).to_be_visible()


def test_back_button_after_saving_shows_the_form_and_saves_nothing_twice(visit: Visit) -> None:
    agent = make_agent("ash")
    page = visit.person("Operator").page(f"/admin/cohorts/agent/{agent.pk}/change/")
    page.get_by_label("Represents:").fill("House of Ash")
    page.get_by_role("button", name="Save", exact=True).dblclick()
    expect(page.get_by_text("was changed successfully").first).to_be_visible()
    page.go_back()
    assert Agent.objects.get().represents == "House of Ash"
    assert Agent.objects.get().versions.count() == 2
