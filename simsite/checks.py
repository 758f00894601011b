"""System checks of the settings: what is readable on its own, yet cannot work together."""

from __future__ import annotations

import re
import stat
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cryptography.fernet import Fernet
from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as CheckWarning

from cohorts.names import MODEL_LIKE, MODEL_PATTERN
from simsite.rights import models_without_rights

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from django.apps import AppConfig

# A driver trusts its lease until 5/6 of it; below three renewals one late reply would lose a run.
RENEWALS_PER_LEASE = 3
# A change of cohorts obeys within a second, which one late pulse must not break.
LONGEST_PULSE_SECONDS = 0.5


def check_settings(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: object
) -> list[CheckMessage]:
    """Every problem of the settings; `app_configs` and `kwargs` are Django's, and not used."""
    return [*keys(), *models(), *timing(), *database(), *web()]


def keys() -> Iterator[CheckMessage]:
    """SIM_FIELD_KEY, SIM_ANTHROPIC_API_KEY and the file of made secrets."""
    try:
        Fernet(settings.SIM_FIELD_KEY)
    except ValueError:
        yield Error(
            "SIM_FIELD_KEY is no key: it must be 32 bytes in URL-safe base64.",
            hint="Make one with `openssl rand -base64 32 | tr '+/' '-_'`.",
            id="simsite.E001",
        )
    if any(char.isspace() or not char.isprintable() for char in settings.SIM_ANTHROPIC_API_KEY):
        yield Error(
            "SIM_ANTHROPIC_API_KEY holds a blank or an unprintable character.", id="simsite.E002"
        )
    file = settings.SECRETS_FILE
    if file.exists() and stat.S_IMODE(file.stat().st_mode) & 0o077:
        yield CheckWarning(
            f"{file} can be read by others.", hint=f"Run `chmod 600 {file}`.", id="simsite.W003"
        )


def models() -> Iterator[CheckMessage]:
    """SIM_LLM, SIM_ANTHROPIC_BASE_URL and the names of models."""
    if settings.SIM_LLM == "anthropic" and not settings.SIM_ANTHROPIC_API_KEY:
        yield CheckWarning(
            "SIM_LLM is anthropic, and SIM_ANTHROPIC_API_KEY is not set: no run can start.",
            id="simsite.W011",
        )
    url = urlsplit(settings.SIM_ANTHROPIC_BASE_URL)
    if url.scheme not in {"https", "http"} or not url.netloc:
        yield Error(
            "SIM_ANTHROPIC_BASE_URL is no address of a service.",
            hint="Write https://host, or leave it unset.",
            id="simsite.E012",
        )
    for name in ("SIM_ANTHROPIC_SMALL_MODEL", "SIM_ANTHROPIC_LARGE_MODEL"):
        if not re.search(MODEL_PATTERN, getattr(settings, name)):
            yield Error(f"{name} cannot name a model: it must be {MODEL_LIKE}.", id="simsite.E013")


def timing() -> Iterator[CheckMessage]:
    """SIM_LEASE_SECONDS, SIM_LEASE_RENEW_SECONDS and SIM_PULSE_SECONDS."""
    shortest = RENEWALS_PER_LEASE * settings.SIM_LEASE_RENEW_SECONDS
    if shortest > settings.SIM_LEASE_SECONDS:
        yield Error(
            f"SIM_LEASE_SECONDS is {settings.SIM_LEASE_SECONDS:g}, but with SIM_LEASE_RENEW_SECONDS"
            f" {settings.SIM_LEASE_RENEW_SECONDS:g} it must be at least {shortest:g}.",
            id="simsite.E004",
        )
    if settings.SIM_PULSE_SECONDS > settings.SIM_LEASE_RENEW_SECONDS:
        yield Error(
            "SIM_PULSE_SECONDS is above SIM_LEASE_RENEW_SECONDS: renewals are sent by the pulse.",
            id="simsite.E005",
        )
    if settings.SIM_PULSE_SECONDS > LONGEST_PULSE_SECONDS:
        yield CheckWarning(
            f"SIM_PULSE_SECONDS is {settings.SIM_PULSE_SECONDS:g}: above {LONGEST_PULSE_SECONDS:g} a"
            " change of cohorts may take longer than a second to be obeyed.",
            id="simsite.W006",
        )


def database() -> Iterator[CheckMessage]:
    """DATABASE_URL: SQLite must take its write lock at the start of a transaction."""
    default = settings.DATABASES["default"]
    options = default.get("OPTIONS", {})
    if default["ENGINE"].endswith("sqlite3") and options.get("transaction_mode") != "IMMEDIATE":
        yield Error(
            "SQLite runs without transaction_mode IMMEDIATE, so writers fail instead of waiting.",
            hint="Leave the query part of DATABASE_URL empty.",
            id="simsite.E007",
        )


def web() -> Iterator[CheckMessage]:
    """ALLOWED_HOSTS, SIM_HTTPS_ONLY and SIM_BEHIND_PROXY."""
    if "*" in settings.ALLOWED_HOSTS:
        yield CheckWarning(
            "ALLOWED_HOSTS is *: name the hosts that serve this site.", id="simsite.W008"
        )
    if not (settings.DEBUG or settings.SIM_HTTPS_ONLY):
        yield CheckWarning(
            "SIM_HTTPS_ONLY is off in production: log-ins travel unencrypted.", id="simsite.W009"
        )
    if settings.SIM_BEHIND_PROXY and not settings.SIM_HTTPS_ONLY:
        yield CheckWarning("SIM_BEHIND_PROXY has no use without SIM_HTTPS_ONLY.", id="simsite.W010")


def check_rights(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: object
) -> list[CheckMessage]:
    """Tell of each model of which `simsite.rights` does not say who may do what."""
    return [
        Error(
            f"Nobody has said who may see the model {label}.",
            hint="simsite/rights.py",
            id="simsite.E014",
        )
        for label in models_without_rights()
    ]
