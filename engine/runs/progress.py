"""The progress of a run for a terminal: a live table, or plain lines where nobody sees one."""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Protocol, Self, TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table

if TYPE_CHECKING:
    from types import TracebackType

    from engine.loop.engine import Engine

#: A plain line is written this often, in seconds.
LINE_EVERY_SECONDS = 30.0


class Stream(Protocol):
    """What Django's commands write to."""

    def write(self, msg: str, /) -> object: ...

    def isatty(self) -> bool: ...


class Silence:
    """An observer that shows nothing; the others build on its being a context manager."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None

    def started(self, engine: Engine) -> None:
        """Nothing to show."""

    def beat(self, engine: Engine) -> None:
        """Nothing to show."""


class Lines(Silence):
    """One line at the start, one every half minute, for logs and pipes."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._next_at = 0.0

    def started(self, engine: Engine) -> None:
        self._stream.write(_headline(engine))
        self._next_at = time.monotonic() + LINE_EVERY_SECONDS

    def beat(self, engine: Engine) -> None:
        if time.monotonic() >= self._next_at:
            self._next_at = time.monotonic() + LINE_EVERY_SECONDS
            facts = (f"{name} {value}" for name, value in _facts(engine))
            self._stream.write("; ".join(facts))


class Screen(Silence):
    """A table that is drawn anew at each beat; it stays on the screen at the end."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream)
        self._live = Live(console=self._console, auto_refresh=False)
        self._engine: Engine | None = None

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._engine is not None:
            self.beat(self._engine)
        self._live.__exit__(kind, error, trace)

    def started(self, engine: Engine) -> None:
        self._engine = engine
        self._console.print(_headline(engine))

    def beat(self, engine: Engine) -> None:
        table = Table.grid(padding=(0, 2))
        for name, value in _facts(engine):
            table.add_row(name, value)
        self._live.update(table, refresh=True)


def progress_for(stream: Stream, *, quiet: bool) -> Silence:
    """Return the observer that suits a stream."""
    if quiet:
        return Silence()
    if stream.isatty():
        return Screen(sys.stderr)
    return Lines(stream)


def _headline(engine: Engine) -> str:
    config = engine.config
    simulated = "" if config.llm == "anthropic" else "; simulated, no model is asked"
    return (
        f"{len(engine.world.agents)} agents, {config.concurrent_turns} slots, "
        f"policy {config.policy} ({engine.world.gate.verdict}), llm {config.llm}, "
        f"seed {config.seed}{simulated}."
    )


def _facts(engine: Engine) -> list[tuple[str, str]]:
    figures, tally = engine.figures, engine.tally
    threads = Counter({"open": len(engine.world.threads)}) + tally.threads
    return [
        ("turns", f"{figures.n_turns}"),
        ("slots in use", f"{len(engine.turns)} of {engine.config.concurrent_turns}"),
        ("LLM calls", _listed(tally.calls) or "none"),
        ("threads", _listed(threads) or "none"),
        ("proposals", f"{tally.threads['proposal']}"),
        ("kept back by the gate", f"{tally.n_gate_filtered}"),
        ("time", f"{engine.clock.now():%H:%M:%S}"),
    ]


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{n} {name}" for name, n in counts.items())
