"""Everything that was asked, answered and billed, for assertions; safe for threads."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace

from tests.anthropic_api.billing import Line, Usage
from tests.anthropic_api.refusal import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A request and what became of it.

    `at`: seconds of the server's clock. `headers`: the request's, names in lower case. `body` and
    `answer`: parsed, None where that cannot be. `sent`: the body of the answer, also of one that
    was cut. `error`: the kind of a refusal or failure. `usage` None: not billed. `delivered`: the
    whole answer was handed to the connection.
    """

    number: int
    at: float
    path: str
    headers: dict[str, str]
    raw: bytes
    body: Json | None = None
    key: str | None = None
    model: str | None = None
    request_id: str = ""
    status: int = 0
    sent: bytes = b""
    answer: Json | None = None
    error: str | None = None
    usage: Usage | None = None
    nano_usd: int = 0
    delivered: bool = True


@dataclass(slots=True)
class Ledger:
    """The exchanges in the order in which they were answered, and the bill."""

    _lock: threading.Condition = field(default_factory=threading.Condition)
    _exchanges: list[Exchange] = field(default_factory=list)
    _n_begun: int = 0
    _n_open: int = 0
    _most_at_once: int = 0

    def begin(self) -> int:
        """Count a request that came in; return its number, from 1."""
        with self._lock:
            self._n_begun += 1
            self._n_open += 1
            self._most_at_once = max(self._most_at_once, self._n_open)
            self._lock.notify_all()
            return self._n_begun

    def end(self, exchange: Exchange) -> None:
        """Enter what is about to be sent: who reads the answer finds it here."""
        with self._lock:
            self._n_open -= 1
            self._exchanges.append(exchange)
            self._lock.notify_all()

    def lost(self, number: int) -> None:
        """Say of an entered exchange that its answer did not go out after all."""
        with self._lock:
            self._exchanges = [
                replace(exchange, delivered=False) if exchange.number == number else exchange
                for exchange in self._exchanges
            ]
            self._lock.notify_all()

    def wait_for(self, is_so: Callable[[Ledger], bool], *, seconds: float = 30) -> None:
        """Wait until something is true of this ledger; raises TimeoutError when it never is."""
        with self._lock:
            if not self._lock.wait_for(lambda: is_so(self), seconds):
                raise TimeoutError(f"still not so after {seconds} s: {self.statuses}")

    @property
    def exchanges(self) -> list[Exchange]:
        """What was answered so far."""
        with self._lock:
            return list(self._exchanges)

    @property
    def billed(self) -> list[Exchange]:
        """What was paid for."""
        return [exchange for exchange in self.exchanges if exchange.usage is not None]

    @property
    def statuses(self) -> dict[int, int]:
        """How often each status was answered; 0 stands for a connection that was dropped."""
        return dict(sorted(Counter(exchange.status for exchange in self.exchanges).items()))

    @property
    def most_at_once(self) -> int:
        """The most requests that were being answered at one moment."""
        with self._lock:
            return self._most_at_once

    @property
    def n_open(self) -> int:
        """The requests that are being answered now."""
        with self._lock:
            return self._n_open

    def bill(self) -> dict[tuple[str, str], Line]:
        """Return the bill: a line for every key and model."""
        lines: dict[tuple[str, str], Line] = {}
        for exchange in self.billed:
            assert exchange.usage is not None
            whose = (exchange.key or "", exchange.model or "")
            line = lines.get(whose, Line())
            delivered = exchange.delivered
            lines[whose] = line.plus(exchange.usage, exchange.nano_usd, delivered=delivered)
        return lines

    def total_nano_usd(self) -> int:
        """Return what all keys owe."""
        return sum(exchange.nano_usd for exchange in self.exchanges)

    def undelivered_nano_usd(self) -> int:
        """Return what was billed and never arrived."""
        return sum(line.undelivered_nano_usd for line in self.bill().values())

    def report(self) -> Json:
        """Return all of this as JSON, for another process."""
        lines = [
            {"key": key, "model": model, **asdict(line)}
            for (key, model), line in sorted(self.bill().items())
        ]
        return {
            "bill": lines,
            "total_nano_usd": self.total_nano_usd(),
            "undelivered_nano_usd": self.undelivered_nano_usd(),
            "statuses": {str(status): n for status, n in self.statuses.items()},
            "most_at_once": self.most_at_once,
            "exchanges": [_brief(exchange) for exchange in self.exchanges],
        }


def _brief(exchange: Exchange) -> Json:
    usage = exchange.usage
    return {
        "number": exchange.number,
        "path": exchange.path,
        "model": exchange.model,
        "status": exchange.status,
        "error": exchange.error,
        "usage": None if usage is None else usage.as_json(),
        "nano_usd": exchange.nano_usd,
        "delivered": exchange.delivered,
    }
