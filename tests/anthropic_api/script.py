"""What the server does with the next requests: a script first, then the weather, then an answer."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from tests.anthropic_api.minds import Asked
from tests.anthropic_api.steps import FAULTS, Answers, Step

MESSAGES = "/v1/messages"
COUNT = "/v1/messages/count_tokens"

When = Callable[[Asked], bool]


def always(asked: Asked) -> bool:
    """Let every request take the step."""
    return True


@dataclass(slots=True)
class Script:
    """Steps that requests take in order, each once; a request takes the first that is for it."""

    _steps: list[tuple[str, When, Step]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, *steps: Step, when: When = always, path: str = MESSAGES) -> None:
        """Append steps for requests to `path` of which `when` is true."""
        with self._lock:
            self._steps += [(path, when, step) for step in steps]

    def take(self, asked: Asked) -> Step | None:
        """Return the step for this request, which nobody gets again."""
        with self._lock:
            for number, (path, when, step) in enumerate(self._steps):
                if path == asked.path and when(asked):
                    del self._steps[number]
                    return step
        return None

    @property
    def n_left(self) -> int:
        """How many steps nobody has taken yet."""
        with self._lock:
            return len(self._steps)


@dataclass(slots=True, kw_only=True)
class Weather:
    """Faults at given rates, by their names in `FAULTS`.

    The seed, the bytes of the request and how often the same bytes came decide: the order in which
    concurrent requests arrive does not, and a repeated request has a new chance.
    """

    seed: int
    rates: Mapping[str, float]
    _seen: Counter[bytes] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.rates) - set(FAULTS)):
            raise ValueError(f"there are no faults {', '.join(unknown)}")
        if sum(self.rates.values()) > 1:
            raise ValueError("the rates of all faults together are more than 1")

    def now(self, asked: Asked) -> Step:
        """Return the fault that hits this request, or a good answer."""
        digest = hashlib.blake2b(asked.raw, digest_size=16).digest()
        with self._lock:
            self._seen[digest] += 1
            n_seen = self._seen[digest]
        left = Random(f"{self.seed} {digest.hex()} {n_seen}").random()
        for name in sorted(self.rates):
            left -= self.rates[name]
            if left < 0:
                return FAULTS[name]
        return Answers()
