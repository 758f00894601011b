"""The settings module under the environments that people start it with."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from simsite import settings as loaded
from simsite.environment import RefusedEnvironment

ROOT = Path(__file__).resolve().parent.parent.parent
OTHER_NAMES = ("ALLOWED_HOSTS", "DATABASE_URL", "DEBUG", "SECRET_KEY", "TIME_ZONE")
FIELD_KEY = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*OTHER_NAMES, *(name for name in os.environ if name.startswith("SIM_"))]:
        monkeypatch.delenv(name, raising=False)


def settings_with(monkeypatch: pytest.MonkeyPatch, **values: str) -> dict[str, Any]:
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    return runpy.run_path(str(ROOT / "simsite" / "settings.py"))


def test_settings_need_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_with(monkeypatch)

    assert settings["DEBUG"] is True
    assert settings["DATABASES"]["default"]["NAME"] == str(ROOT / "var" / "sim.sqlite3")
    assert settings["DATABASES"]["default"]["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert settings["SIM_LEASE_SECONDS"] == 30.0
    assert settings["SIM_LEASE_RENEW_SECONDS"] == 5.0
    assert settings["SIM_PULSE_SECONDS"] == 0.5
    assert settings["SIM_MAX_RUNS_PER_HOST"] == 2
    assert settings["SIM_MAX_RUNS"] == 20
    assert settings["SIM_MAX_CALLS_IN_FLIGHT"] == 100
    assert settings["SIM_ANTHROPIC_API_KEY"] == ""
    assert settings["SECURE_SSL_REDIRECT"] is False
    assert settings["SECRET_KEY"]


def test_settings_never_read_the_keys_of_other_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_with(monkeypatch, OTHER_API_KEY="theirs", SIM_ANTHROPIC_API_KEY="ours")

    assert settings["SIM_ANTHROPIC_API_KEY"] == "ours"
    assert "theirs" not in [value for value in settings.values() if isinstance(value, str)]


@pytest.mark.parametrize(
    ("given", "missing"), [({}, "SECRET_KEY"), ({"SECRET_KEY": "$a-long-secret"}, "SIM_FIELD_KEY")]
)
def test_settings_of_production_make_no_secret(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], missing: str
) -> None:
    with pytest.raises(RefusedEnvironment) as refusal:
        settings_with(monkeypatch, DEBUG="0", **given)

    assert str(refusal.value) == (
        f"{missing} is not set: with DEBUG off it must be; see docs/operations.md."
    )


def production(monkeypatch: pytest.MonkeyPatch, **more: str) -> dict[str, Any]:
    return settings_with(
        monkeypatch, DEBUG="0", SECRET_KEY="$a-long-secret", SIM_FIELD_KEY=FIELD_KEY, **more
    )


def test_settings_of_production_are_strict(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = production(monkeypatch)

    assert settings["SECRET_KEY"] == "$a-long-secret"
    assert settings["SECURE_SSL_REDIRECT"] is True
    assert settings["SESSION_COOKIE_SECURE"] is True
    assert settings["CSRF_COOKIE_SECURE"] is True
    assert settings["SECURE_HSTS_SECONDS"] == 31_536_000
    assert settings["SECURE_PROXY_SSL_HEADER"] is None
    assert "Manifest" in settings["STORAGES"]["staticfiles"]["BACKEND"]


def test_settings_behind_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = production(monkeypatch, SIM_BEHIND_PROXY="1", SIM_HTTPS_ONLY="0")

    assert settings["SECURE_PROXY_SSL_HEADER"] == ("HTTP_X_FORWARDED_PROTO", "https")
    assert settings["SECURE_SSL_REDIRECT"] is False
    assert settings["SECURE_HSTS_SECONDS"] == 0


def test_settings_of_a_server_check_their_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    database = settings_with(monkeypatch, DATABASE_URL="postgres://me@host/sim")["DATABASES"][
        "default"
    ]

    assert database["CONN_HEALTH_CHECKS"] is True
    assert database["CONN_MAX_AGE"] == 60
    assert "transaction_mode" not in database["OPTIONS"]
    assert database["OPTIONS"]["connect_timeout"] == 10


def test_options_in_the_address_of_a_server_go_before_our_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = "postgres://me@host/sim?connect_timeout=3&sslmode=require"
    options = settings_with(monkeypatch, DATABASE_URL=url)["DATABASES"]["default"]["OPTIONS"]

    assert (options["connect_timeout"], options["sslmode"]) == (3, "require")
    assert options["tcp_user_timeout"] == 20_000


def test_settings_make_the_folder_of_the_database(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings_with(monkeypatch, DATABASE_URL=f"sqlite:///{tmp_path}/new/sim.sqlite3")

    assert (tmp_path / "new").is_dir()


def test_settings_are_all_in_the_table_of_operations() -> None:
    table = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `([A-Z_]+)` \|", table, flags=re.MULTILINE))

    assert documented == {*loaded.SIM_NAMES, *OTHER_NAMES}


def test_command_line_answers_a_bad_setting_with_one_sentence() -> None:
    environment = {**os.environ, "SIM_PULSE_SECOND": "1"}
    done = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip

    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        "SIM_PULSE_SECOND is no setting of this project: did you mean SIM_PULSE_SECONDS?\n"
    )
