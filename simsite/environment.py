"""Reads environment variables and refuses what it cannot use, in one plain sentence.

`simsite.settings` decides which variables exist and what they mean; this module only turns text
into values. Texts are taken as they are: django-environ would read a value that starts with `$`
as the name of another variable, and a secret may start with `$`.
"""

from __future__ import annotations

import difflib
import zoneinfo
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured
from environ import Env

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

PREFIX = "SIM_"
YES = frozenset({"1", "true", "yes", "on"})
NO = frozenset({"0", "false", "no", "off"})
#: How a mail server is spoken to, and its usual port.
MAIL_PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465}
POSTGRES_SCHEMES = frozenset({"postgres", "postgresql", "pgsql", "psql"})
DatabaseSettings = dict[str, Any]


class RefusedEnvironment(ImproperlyConfigured):
    """The environment cannot be used; the message is one sentence for the person who set it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """Where mail is handed in; without a host there is none."""

    host: str = ""
    port: int = 25
    user: str = ""
    password: str = field(default="", repr=False)
    starts_tls: bool = False
    uses_tls: bool = False


class Environment:
    """The variables this project reads. No name with our prefix outside `own_names` may be set.

    An empty value counts as not set: that is how shells and compose files spell it.
    """

    def __init__(self, values: Mapping[str, str], *, own_names: Collection[str]) -> None:
        self._values = values
        self._own_names = own_names
        for name in sorted(values):
            if name.startswith(PREFIX) and name not in own_names:
                raise RefusedEnvironment(unknown_sentence(name, own_names))

    def text(self, name: str, default: str = "") -> str:
        """The value without surrounding blanks, or `default`."""
        if name.startswith(PREFIX) and name not in self._own_names:
            raise KeyError(name)
        return self._values.get(name, "").strip() or default

    def flag(self, name: str, *, default: bool) -> bool:
        """Yes or no, in the usual spellings."""
        word = self.text(name).lower()
        if word and word not in YES | NO:
            raise RefusedEnvironment(f"{name} is {word!r}: write 1 for yes or 0 for no.")
        return word in YES if word else default

    def seconds(self, name: str, *, default: float) -> float:
        """A duration in seconds, above 0 and finite."""
        text = self.text(name)
        if not text:
            return default
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0 < value < float("inf"):
            raise RefusedEnvironment(
                f"{name} is {text!r}: write a number of seconds above 0, for example {default:g}."
            )
        return value

    def count(self, name: str, *, default: int) -> int:
        """A whole number above 0."""
        text = self.text(name) or str(default)
        if not (text.isascii() and text.isdigit() and 0 < int(text) < 10**9):
            raise RefusedEnvironment(
                f"{name} is {text!r}: write a whole number above 0, for example {default}."
            )
        return int(text)

    def choice(self, name: str, *, default: str, choices: Collection[str]) -> str:
        """One of the words that are possible."""
        word = self.text(name, default)
        if word not in choices:
            raise RefusedEnvironment(f"{name} is {word!r}: write {' or '.join(choices)}.")
        return word

    def words(self, name: str, *, default: list[str]) -> list[str]:
        """Values separated by commas, without blanks and empty ones."""
        found = [word.strip() for word in self.text(name).split(",")]
        return [word for word in found if word] or default

    def time_zone(self, name: str, *, default: str) -> str:
        """The name of a time zone that this machine knows."""
        zone = self.text(name, default)
        known = zoneinfo.available_timezones()
        if zone not in known:
            hint = nearest(zone, known) or default
            raise RefusedEnvironment(f"{name} is {zone!r}, which is no time zone: try {hint!r}.")
        return zone

    def mail(self, name: str) -> MailServer:
        """The mail server of a URL; the sentence never repeats the value, which holds a password."""
        text = self.text(name)
        if not text:
            return MailServer()
        try:
            url = urlsplit(text)
            port = url.port or MAIL_PORTS[url.scheme]
        except (ValueError, KeyError):
            url = urlsplit("")
        if not url.hostname:
            raise RefusedEnvironment(
                f"{name} names no mail server: write smtp+tls://user:password@host:587, or smtps:// or"
                " smtp://, with special characters of the password percent-encoded."
            )
        return MailServer(
            host=url.hostname,
            port=port,
            user=unquote(url.username or ""),
            password=unquote(url.password or ""),
            starts_tls=url.scheme == "smtp+tls",
            uses_tls=url.scheme == "smtps",
        )

    def database(self, name: str, *, base: Path, default: Path) -> DatabaseSettings:
        """Django's settings of an SQLite file (paths relative to `base`) or a PostgreSQL server.

        The sentence never repeats the value, which may hold a password.
        """
        url = self.text(name)
        if not url:
            return {"ENGINE": "django.db.backends.sqlite3", "NAME": str(default)}
        scheme = url.partition(":")[0].lower()
        if scheme == "sqlite" and urlsplit(url).path.strip("/") and not urlsplit(url).netloc:
            config: DatabaseSettings = Env.db_url_config(url)
            return config | {"NAME": str(base / str(config["NAME"]))}
        if scheme in POSTGRES_SCHEMES:
            return postgres_settings(name, url)
        raise RefusedEnvironment(
            f"{name} names no database that works here: write sqlite:///file.sqlite3"
            " or postgres://user:password@host:5432/name."
        )


def postgres_settings(name: str, url: str) -> DatabaseSettings:
    """Parse a PostgreSQL URL; refuse one with a bad port or without a database name."""
    try:
        config: DatabaseSettings = dict(Env.db_url_config(url))
    except ValueError:
        config = {}
    if not config.get("NAME"):
        raise RefusedEnvironment(
            f"{name} cannot be read: write postgres://user:password@host:5432/name,"
            " with special characters of the password percent-encoded."
        )
    return config


def nearest(word: str, known: Collection[str]) -> str:
    """The known word most like `word`, or nothing when none is like it."""
    return next(iter(difflib.get_close_matches(word, sorted(known), n=1)), "")


def unknown_sentence(name: str, own_names: Collection[str]) -> str:
    """What to say about a variable with our prefix that we do not have."""
    hint = nearest(name, own_names)
    if hint:
        return f"{name} is no setting of this project: did you mean {hint}?"
    listed = ", ".join(sorted(own_names))
    return f"{name} is no setting of this project: unset it, or use one of {listed}."
