"""The checks of the settings: each problem has its id, and good settings have none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.core.checks import run_checks
from django.test import override_settings

from simsite.checks import check_settings

if TYPE_CHECKING:
    from pathlib import Path

SQLITE = {"ENGINE": "django.db.backends.sqlite3", "NAME": "a.sqlite3"}


def ids() -> list[str | None]:
    return [message.id for message in check_settings()]


@override_settings(DEBUG=True)
def test_checks_pass_with_the_defaults_and_are_registered() -> None:
    assert run_checks() == []

    with override_settings(SIM_FIELD_KEY="short"):
        assert [message.id for message in run_checks()] == ["simsite.E001"]


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        ("SIM_FIELD_KEY", "c2hvcnQ=", ["simsite.E001"]),
        ("SIM_FIELD_KEY", "é", ["simsite.E001"]),
        ("SIM_ANTHROPIC_API_KEY", "a\nb", ["simsite.E002"]),
        ("SIM_LLM", "anthropic", ["simsite.W011"]),
        ("SIM_ANTHROPIC_BASE_URL", "api.example.org", ["simsite.E012"]),
        ("SIM_ANTHROPIC_BASE_URL", "ftp://api.example.org", ["simsite.E012"]),
        ("SIM_ANTHROPIC_BASE_URL", "http://127.0.0.1:8080", []),
        ("SIM_ANTHROPIC_SMALL_MODEL", "two words", ["simsite.E013"]),
        ("SIM_ANTHROPIC_LARGE_MODEL", "", ["simsite.E013"]),
        ("SIM_LEASE_SECONDS", 14.9, ["simsite.E004"]),
        ("SIM_LEASE_SECONDS", 15.0, []),
        ("SIM_LEASE_RENEW_SECONDS", 0.4, ["simsite.E005"]),
        ("SIM_PULSE_SECONDS", 0.6, ["simsite.W006"]),
        ("DATABASES", {"default": SQLITE}, ["simsite.E007"]),
        ("DATABASES", {"default": SQLITE | {"OPTIONS": {"transaction_mode": "IMMEDIATE"}}}, []),
        ("DATABASES", {"default": {"ENGINE": "django.db.backends.postgresql"}}, []),
        ("ALLOWED_HOSTS", ["*"], ["simsite.W008"]),
        ("SIM_BEHIND_PROXY", True, ["simsite.W010"]),
    ],
)
@override_settings(DEBUG=True)
@pytest.mark.filterwarnings("ignore:Overriding setting DATABASES:UserWarning")
def test_check_names_a_setting_that_cannot_work(
    setting: str, value: Any, expected: list[str]
) -> None:
    with override_settings(**{setting: value}):
        assert ids() == expected


def test_check_warns_of_log_ins_without_encryption() -> None:
    with override_settings(DEBUG=False, SIM_HTTPS_ONLY=False):
        assert ids() == ["simsite.W009"]
    with override_settings(DEBUG=False, SIM_HTTPS_ONLY=True):
        assert ids() == []


@override_settings(DEBUG=True)
def test_check_warns_of_secrets_that_others_can_read(tmp_path: Path) -> None:
    file = tmp_path / "secrets.env"
    file.touch(mode=0o600)
    with override_settings(SECRETS_FILE=file):
        assert ids() == []
        file.chmod(0o640)
        assert ids() == ["simsite.W003"]
