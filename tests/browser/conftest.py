"""A real browser before a real server: pages as a person meets them.

    def test_something(visit: Visit) -> None:
        page = visit("Operator").page("/admin/")

Each page that a test has open may neither log an error nor break the policy for contents.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.test import Client
from playwright.sync_api import sync_playwright

from scripts.browser import find_browser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page
    from pytest_django.live_server_helper import LiveServer

#: Playwright's loop runs in the thread in which a test asks the database.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
WIDE: Final = 1280
NARROW: Final = 360


@dataclass(kw_only=True)
class Visit:
    """People who visit the site, each with cookies of his own, and what went wrong on the way."""

    browser: Browser
    site: str
    errors: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    contexts: list[BrowserContext] = field(default_factory=list)

    def person(self, group: str = "Owner", *, width: int = WIDE, script: bool = True) -> Person:
        """Sign a member of a group in; `superuser` is one of none who may do everything."""
        name = f"{group.lower()}-{len(self.contexts)}"
        user = User.objects.create(username=name, is_staff=True, is_superuser=group == "superuser")
        if group != "superuser":
            user.groups.add(Group.objects.get(name=group))
        client = Client()
        client.force_login(user)
        context = self.browser.new_context(
            base_url=self.site,
            viewport={"width": width, "height": 900},
            java_script_enabled=script,
            reduced_motion="reduce",
        )
        cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
        context.add_cookies(
            [{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": self.site}]
        )
        context.set_default_timeout(10_000)
        context.on("page", self._listen)
        self.contexts.append(context)
        return Person(user=user, context=context)

    def faults_of(self, page: Page) -> list[str]:
        """Return what axe finds that keeps somebody from using a page.

        What axe itself does to a page, which comes from outside, is not for the policy.
        """
        heard = len(self.errors)
        found = Axe().run(page).response["violations"]
        page.evaluate("0")  # what it has logged is heard by now
        del self.errors[heard:]
        return [
            f"{page.url}: {one['impact']}, {one['id']}: {node['html'][:160]}"
            for one in found
            if one["impact"] in {"serious", "critical"}
            for node in one["nodes"][:3]
        ]

    def _listen(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.errors.append(f"{page.url}: {error}"))
        page.on("console", self._hear)

    def _hear(self, message: ConsoleMessage) -> None:
        told = f"{message.location.get('url')}: {message.text}"
        if message.type == "error" and not any(one in told for one in self.expected):
            self.errors.append(told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who is signed in, with a browser of his own."""

    user: User
    context: BrowserContext

    def page(self, address: str = "/admin/") -> Page:
        """Open a page in a new tab."""
        page = self.context.new_page()
        page.goto(address)
        return page


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Root may not start it with its sandbox; it visits no page but ours.
        args = ["--no-sandbox"] if os.geteuid() == 0 else []
        started = playwright.chromium.launch(executable_path=find_browser(), args=args)
        yield started
        started.close()


@pytest.fixture
def visit(browser: Browser, live_server: LiveServer) -> Iterator[Visit]:
    """People on a server with a database of the test's own."""
    visit = Visit(browser=browser, site=live_server.url)
    yield visit
    for context in visit.contexts:
        context.close()
    assert visit.errors == []
