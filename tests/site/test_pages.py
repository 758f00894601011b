"""What every page of the site is sent with."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from wsgiref.util import setup_testing_defaults

import pytest
from django.contrib.auth.models import User
from django.test import Client

from simsite.wsgi import application

if TYPE_CHECKING:
    from collections.abc import Callable

INLINE = re.compile(r"<script(?![^>]*\bsrc=)[^>]*>|<style|\sstyle=|\son[a-z]+=", re.IGNORECASE)


@pytest.mark.django_db
def test_log_in_page_is_sent_with_a_strict_policy(client: Client) -> None:
    response = client.get("/admin/login/")

    assert response.status_code == 200
    assert sorted(response["Content-Security-Policy"].split("; ")) == [
        "base-uri 'none'",
        "default-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "img-src 'self' data:",
        "object-src 'none'",
    ]
    assert response["X-Frame-Options"] == "DENY"


@pytest.mark.django_db
def test_admin_pages_have_nothing_that_the_policy_forbids(admin_client: Client) -> None:
    for page in ("/admin/", "/admin/auth/user/", "/admin/auth/user/add/"):
        assert INLINE.findall(admin_client.get(page).content.decode()) == []
    assert INLINE.findall('<p style="x"><script>') == [" style=", "<script>"]


@pytest.mark.django_db
def test_wsgi_application_answers() -> None:
    environ: dict[str, Any] = {}
    setup_testing_defaults(environ)
    environ |= {"PATH_INFO": "/admin/login/", "HTTP_HOST": "localhost"}
    statuses: list[str] = []

    def start_response(
        status: str, headers: object, error: object = None
    ) -> Callable[[bytes], None]:
        statuses.append(status)
        return lambda _body: None

    application(environ, start_response).close()

    assert statuses == ["200 OK"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("address", "code", "says"),
    [("/admin/auth/user/", 403, "Not for you"), ("/nowhere/", 404, "There is no such page")],
)
def test_page_that_cannot_be_shown_says_so_in_plain_words(
    client: Client, address: str, code: int, says: str
) -> None:
    client.force_login(User.objects.create(username="somebody", is_staff=True))
    response = client.get(address)
    assert response.status_code == code
    page = response.content.decode()
    assert says in page
    assert "Nothing was changed." in page


@pytest.mark.django_db
def test_fault_of_ours_says_what_became_of_what_was_sent(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("django.contrib.admin.sites.AdminSite.each_context", broken)
    client.raise_request_exception = False
    client.force_login(User.objects.create(username="somebody", is_staff=True))
    response = client.get("/admin/")
    assert response.status_code == 500
    assert "Something went wrong here" in response.content.decode()


@pytest.mark.django_db
def test_form_that_was_open_too_long_is_not_taken_and_says_so() -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create(username="somebody", is_staff=True))
    response = client.post("/admin/try/")
    assert response.status_code == 403
    assert "Nothing was saved." in response.content.decode()


@pytest.mark.django_db
def test_log_in_page_says_what_became_of_what_was_sent(client: Client) -> None:
    page = client.get("/admin/engine/run/", follow=True).content.decode()
    assert "it was not saved" in page
    assert "it was not saved" not in client.get("/admin/", follow=True).content.decode()
