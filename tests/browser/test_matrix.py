"""The matrix of cohorts as a person uses it: by keyboard, in two tabs, without script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect

from cohorts.models import Membership
from tests.doors import make_world

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import Visit

MATRIX = "/admin/engine/simulation/cohorts/"


def make_rows() -> None:
    cohorts = {"north": ("ash", "elm"), "south": ("fir", "oak")}
    make_world(cohorts=cohorts, policy="isolated")


def members() -> set[tuple[str, str]]:
    return set(Membership.objects.values_list("cohort__name", "agent__slug"))


def say_yes(page: Page) -> None:
    """Tick what the question wants ticked, and make the change."""
    for tick in page.locator("input[name=yes]").all():
        tick.check()
    page.get_by_role("button", name="Make this change").click()


def test_membership_is_moved_by_keyboard(visit: Visit) -> None:
    make_rows()
    page = visit.person("Operator").page(MATRIX)
    page.get_by_label("ash in north").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    expect(page.get_by_text("1 cell changed, not saved")).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_label("elm in south")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("ash and fir")).to_be_attached()
    say_yes(page)
    expect(page.get_by_text("Done: 1 membership added, 0 removed.")).to_be_visible()
    assert ("south", "ash") in members()


def test_two_tabs_keep_what_each_of_them_did(visit: Visit) -> None:
    make_rows()
    person = visit.person("Operator")
    first, second = person.page(MATRIX), person.page(MATRIX)
    first.get_by_label("ash in south").check()
    second.get_by_label("oak in north").check()
    for page in (first, second):
        page.get_by_role("button", name="See what this would do").click()
    expect(second.get_by_text("What this change would do").first).to_be_visible()
    say_yes(first)
    say_yes(second)
    expect(second.get_by_text("Somebody changed who deals with whom meanwhile")).to_be_visible()
    say_yes(second)
    assert {("south", "ash"), ("north", "oak")} <= members()


def test_silenced_agent_is_asked_about_and_back_undoes_nothing(visit: Visit) -> None:
    make_rows()
    page = visit.person("Operator").page(MATRIX)
    page.get_by_label("elm in north").uncheck()
    page.get_by_role("button", name="See what this would do").click()
    page.get_by_role("button", name="Make this change").click()
    expect(page.get_by_text("Nothing is made yet")).to_be_visible()
    page.get_by_role("link", name="No, go back").click()
    expect(page.get_by_label("elm in north")).to_be_checked()
    assert ("north", "elm") in members()


def test_matrix_works_without_script(visit: Visit) -> None:
    make_rows()
    page = visit.person("Operator", script=False).page(MATRIX)
    page.get_by_label("ash in south").check()
    page.get_by_role("button", name="See what this would do").click()
    say_yes(page)
    assert ("south", "ash") in members()
    assert len(members()) == 5


def test_observer_sees_ticks_and_cannot_change_them(visit: Visit) -> None:
    make_rows()
    page = visit.person("Observer").page(MATRIX)
    expect(page.get_by_label("ash in north")).to_be_disabled()
    expect(page.get_by_role("button", name="See what this would do")).to_have_count(0)
