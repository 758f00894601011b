"""What every page of the site is sent with."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from wsgiref.util import setup_testing_defaults

import pytest

from simsite.wsgi import application

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

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
