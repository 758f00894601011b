"""What a person may write in the environment, and the one sentence that answers the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from simsite.environment import Environment, MailServer, RefusedEnvironment

NAMES = ("SIM_FIELD_KEY", "SIM_PULSE_SECONDS")
BASE = Path("/srv/sim")
DEFAULT = BASE / "var/sim.sqlite3"


def environment(**values: str) -> Environment:
    return Environment(values, own_names=NAMES)


def test_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(RefusedEnvironment) as refusal:
        environment(SIM_PULSE_SECOND="1")

    assert str(refusal.value) == (
        "SIM_PULSE_SECOND is no setting of this project: did you mean SIM_PULSE_SECONDS?"
    )


def test_unknown_name_like_no_other_is_refused_with_the_list() -> None:
    with pytest.raises(RefusedEnvironment) as refusal:
        environment(SIM_X="1")

    assert str(refusal.value) == (
        "SIM_X is no setting of this project: unset it, or use one of SIM_FIELD_KEY, SIM_PULSE_SECONDS."
    )


def test_names_of_other_programs_are_no_concern() -> None:
    assert environment(SIMULATOR="1", PATH="/bin").text("SIM_FIELD_KEY") == ""


def test_undeclared_own_name_cannot_be_read() -> None:
    with pytest.raises(KeyError, match="SIM_OTHER"):
        environment().text("SIM_OTHER")


@pytest.mark.parametrize(
    ("value", "expected"), [("$HOME", "$HOME"), ("  a b ", "a b"), ("", "none"), ("  ", "none")]
)
def test_text_is_taken_as_it_is(value: str, expected: str) -> None:
    assert environment(SIM_FIELD_KEY=value, HOME="/root").text("SIM_FIELD_KEY", "none") == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1", True),
        ("True", True),
        ("yes", True),
        ("on", True),
        ("0", False),
        ("OFF", False),
        ("", True),
    ],
)
def test_flag_reads_yes_and_no(value: str, expected: bool) -> None:
    assert environment(DEBUG=value).flag("DEBUG", default=True) is expected


def test_flag_refuses_what_is_neither() -> None:
    with pytest.raises(
        RefusedEnvironment, match=r"^DEBUG is 'ture': write 1 for yes or 0 for no.$"
    ):
        environment(DEBUG="Ture").flag("DEBUG", default=True)


def test_choice_takes_one_of_the_words() -> None:
    words = ("here", "there")

    assert environment().choice("PLACE", default="here", choices=words) == "here"
    assert environment(PLACE=" there ").choice("PLACE", default="here", choices=words) == "there"
    with pytest.raises(RefusedEnvironment, match=r"^PLACE is 'their': write here or there\.$"):
        environment(PLACE="their").choice("PLACE", default="here", choices=words)


@pytest.mark.parametrize(("value", "expected"), [("", 0.5), ("2", 2.0), ("0.25", 0.25)])
def test_seconds_reads_a_number(value: str, expected: float) -> None:
    pulse = environment(SIM_PULSE_SECONDS=value).seconds("SIM_PULSE_SECONDS", default=0.5)

    assert pulse == expected


@pytest.mark.parametrize("value", ["soon", "0", "-1", "inf", "nan"])
def test_seconds_refuses_what_is_no_duration(value: str) -> None:
    with pytest.raises(RefusedEnvironment) as refusal:
        environment(SIM_PULSE_SECONDS=value).seconds("SIM_PULSE_SECONDS", default=0.5)

    assert str(refusal.value) == (
        f"SIM_PULSE_SECONDS is '{value}': write a number of seconds above 0, for example 0.5."
    )


@pytest.mark.parametrize(("value", "expected"), [("", 2), ("7", 7)])
def test_count_reads_a_whole_number(value: str, expected: int) -> None:
    assert environment(MAX_RUNS=value).count("MAX_RUNS", default=2) == expected


@pytest.mark.parametrize("value", ["many", "0", "-1", "1.5", "²", "9999999999"])
def test_count_refuses_what_is_no_whole_number(value: str) -> None:
    with pytest.raises(RefusedEnvironment) as refusal:
        environment(MAX_RUNS=value).count("MAX_RUNS", default=2)

    assert str(refusal.value) == (
        f"MAX_RUNS is '{value}': write a whole number above 0, for example 2."
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [("a.org, b.org,", ["a.org", "b.org"]), ("", ["localhost"]), (",", ["localhost"])],
)
def test_words_are_stripped(value: str, expected: list[str]) -> None:
    assert (
        environment(ALLOWED_HOSTS=value).words("ALLOWED_HOSTS", default=["localhost"]) == expected
    )


def test_time_zone_offers_the_nearest_one() -> None:
    assert (
        environment(TIME_ZONE="Europe/Zurich").time_zone("TIME_ZONE", default="UTC")
        == "Europe/Zurich"
    )

    with pytest.raises(RefusedEnvironment) as refusal:
        environment(TIME_ZONE="Europe/Zürich").time_zone("TIME_ZONE", default="UTC")

    assert str(refusal.value) == (
        "TIME_ZONE is 'Europe/Zürich', which is no time zone: try 'Europe/Zurich'."
    )


def test_time_zone_like_no_other_offers_the_default() -> None:
    with pytest.raises(RefusedEnvironment, match="try 'UTC'"):
        environment(TIME_ZONE="123456").time_zone("TIME_ZONE", default="UTC")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("", "/srv/sim/var/sim.sqlite3"),
        ("sqlite:///data/a.sqlite3", "/srv/sim/data/a.sqlite3"),
        ("sqlite:////data/a.sqlite3", "/data/a.sqlite3"),
    ],
)
def test_database_of_a_file(url: str, name: str) -> None:
    config = environment(DATABASE_URL=url).database("DATABASE_URL", base=BASE, default=DEFAULT)

    assert (config["ENGINE"], config["NAME"]) == ("django.db.backends.sqlite3", name)


def test_database_of_a_server() -> None:
    url = "postgres://me:p%40w$@db.internal:5433/sim?sslmode=require"
    config = environment(DATABASE_URL=url).database("DATABASE_URL", base=BASE, default=DEFAULT)

    assert config == {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "sim",
        "USER": "me",
        "PASSWORD": "p@w$",
        "HOST": "db.internal",
        "PORT": 5433,
        "OPTIONS": {"sslmode": "require"},
    }


@pytest.mark.parametrize(
    "url",
    [
        "mysql://me:hush@host/sim",
        "sqlite://:memory:",
        "sqlite://",
        "sqlite://hush/a.sqlite3",
        "hush",
        "postgres://me:hush@host:port/sim",
        "postgres://me:hush@host",
    ],
)
def test_database_refuses_other_urls_without_repeating_them(url: str) -> None:
    with pytest.raises(RefusedEnvironment, match=r"^DATABASE_URL ") as refusal:
        environment(DATABASE_URL=url).database("DATABASE_URL", base=BASE, default=DEFAULT)

    assert "hush" not in str(refusal.value)


def with_mail(url: str) -> Environment:
    return Environment({"SIM_MAIL_URL": url}, own_names=("SIM_MAIL_URL",))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("", MailServer()),
        (
            "smtp+tls://ada%40x:p%2Fw@mail.example.org",
            MailServer(
                host="mail.example.org", port=587, user="ada@x", password="p/w", starts_tls=True
            ),
        ),
        ("smtps://mail:465", MailServer(host="mail", port=465, uses_tls=True)),
        ("smtp://localhost:1025", MailServer(host="localhost", port=1025)),
    ],
)
def test_mail_server_of_a_url(url: str, expected: MailServer) -> None:
    assert with_mail(url).mail("SIM_MAIL_URL") == expected


@pytest.mark.parametrize(
    "url", ["mail.example.org", "http://u:pw@host", "smtp://", "smtp://u:pw@host:x"]
)
def test_mail_server_refuses_other_urls_without_repeating_them(url: str) -> None:
    with pytest.raises(RefusedEnvironment) as refusal:
        with_mail(url).mail("SIM_MAIL_URL")

    assert str(refusal.value).startswith("SIM_MAIL_URL names no mail server: write smtp+tls://")
    assert "pw" not in str(refusal.value).replace("password", "")


def test_mail_server_hides_its_password() -> None:
    assert "p/w" not in repr(MailServer(host="mail", password="p/w"))
