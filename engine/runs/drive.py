"""A run is driven from its first turn to its end, by a terminal or a worker alike."""

from __future__ import annotations

import asyncio
import logging
import signal
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from django.conf import settings
from django.db import connection, connections

from engine.build import Parts, build
from engine.loop.ending import Ending, EndReason
from engine.loop.engine import Engine
from engine.loop.pulse import Pulse
from engine.runs.end import end, mark_stopping

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.ports.store import Beat
    from engine.runs.start import Begun

log = logging.getLogger(__name__)

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_TAKEN_OVER = Ending(
    reason=EndReason.INTERRUPTED, sentence="Another driver has taken this simulation over."
)


class Observer(Protocol):
    """Watches a run from outside, on the loop: once it stands, and at every beat."""

    def started(self, engine: Engine) -> None: ...

    def beat(self, engine: Engine) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Driven:
    """A run that has come to its end, or to a pause."""

    run_id: int
    ending: Ending


def drive(begun: Begun, observer: Observer, *, handle_signals: bool = True) -> Driven:
    """Drive a run whose lease is ours until it ends; its row is written when this returns."""
    parts = build(
        simulation_id=begun.simulation_id,
        run_id=begun.run_id,
        token=begun.token,
        config=begun.config,
        starts_at=begun.starts_at,
    )
    driver = _Driver(begun, parts, observer)
    # Nobody uses this thread's connection while the run lasts; it would die of its idleness.
    connection.close()
    ending = _drive(driver, parts, signals=_SIGNALS if handle_signals else ())
    is_ours = end(
        begun.run_id,
        token=begun.token,
        ending=ending,
        figures=None if driver.engine is None else driver.engine.figures,
        at=parts.clock.now(),
    )
    return Driven(run_id=begun.run_id, ending=ending if is_ours else _TAKEN_OVER)


def _drive(driver: _Driver, parts: Parts, *, signals: tuple[signal.Signals, ...]) -> Ending:
    """Return how the run ended, whatever it raised: its row must not say that it still goes on."""
    try:
        with asyncio.Runner(loop_factory=parts.loop_factory) as runner:
            return runner.run(driver.run(signals))
    except KeyboardInterrupt:
        return Ending(reason=EndReason.STOPPED)
    except Exception as error:
        log.exception("A run failed.")
        return Ending(reason=EndReason.FAILED, sentence=f"{type(error).__name__}: {error}")
    finally:
        parts.store.close()


class _Driver:
    """The engine of one run and what is connected to it: pulse, signals, observer."""

    def __init__(self, begun: Begun, parts: Parts, observer: Observer) -> None:
        self.engine: Engine | None = None
        self._begun = begun
        self._parts = parts
        self._observer = observer
        self._n_stops = 0

    async def run(self, signals: tuple[signal.Signals, ...]) -> Ending:
        with _handled(signals, self._stop):
            engine = await self._start()
            with self._pulse(engine):
                return await engine.run()

    async def _start(self) -> Engine:
        """Load the world; stops that were asked for meanwhile are passed on."""
        engine = Engine(
            loaded=await self._parts.store.load(),
            store=self._parts.store,
            llm=self._parts.llm,
            clock=self._parts.clock,
            config=self._begun.config,
        )
        for one in self._begun.spent:
            engine.rules.budget.count(one.agent, n_calls=one.n_calls, nano_usd=one.nano_usd)
        self.engine = engine
        for _ in range(self._n_stops):
            engine.stop()
        self._observer.started(engine)
        return engine

    def _stop(self) -> None:
        """Stop gently; asked again, at once."""
        self._n_stops += 1
        if self.engine is not None:
            self.engine.stop()

    def _pulse(self, engine: Engine) -> Pulse:
        def heard(beat: Beat) -> None:
            engine.heard(beat)
            self._observer.beat(engine)

        def beat() -> Beat:
            if engine.is_stopping:
                mark_stopping(self._begun.run_id, token=self._begun.token)
            return self._parts.store.beat()

        return Pulse(beat, heard, seconds=settings.SIM_PULSE_SECONDS, close=connections.close_all)


@contextmanager
def _handled(signals: tuple[signal.Signals, ...], stop: Callable[[], None]) -> Iterator[None]:
    """Let each of these signals ask for a stop."""
    loop = asyncio.get_running_loop()
    for number in signals:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
