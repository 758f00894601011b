"""How a log record is written: as a line to read, or as an object of JSON to collect.

Neither ever shows a secret of the settings, whatever put it into a message or a traceback.
"""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from engine.core.logged import what_is_logged_about

if TYPE_CHECKING:
    from collections.abc import Iterable

LINE: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
HIDDEN: Final = "[secret]"
#: Shorter ones would also be found where they do not stand for themselves.
SHORTEST_SECRET: Final = 6


class Lines(logging.Formatter):
    """A line of text, with the traceback below it and what it is about at its end."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__(LINE)
        known = {secret for secret in secrets if len(secret) >= SHORTEST_SECRET}
        spelt = known | {quote(secret, safe="") for secret in known}
        # The longest first: one may be a part of another.
        self._secrets = sorted(spelt, key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        return self.hide(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        about = " ".join(f"{name}={value}" for name, value in what_is_logged_about().items())
        line = super().formatMessage(record)
        return f"{line} [{about}]" if about else line

    def hide(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return text


class JsonLines(Lines):
    """An object a line: time, level, logger, process, message, what it is about, and its error."""

    def format(self, record: logging.LogRecord) -> str:
        told = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "process": os.getpid(),
            **what_is_logged_about(),
            "message": self.hide(record.getMessage()),
        }
        if record.exc_info:
            told["error"] = self.hide(self.formatException(record.exc_info))
        return json.dumps(told, ensure_ascii=False)
