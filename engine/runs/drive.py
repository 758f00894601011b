"""A run is driven from its first turn to its end, by a terminal or a worker alike."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from django.conf import settings
from django.db import connections

from engine.build import Parts, build
from engine.loop.engine import Engine
from engine.loop.pulse import Pulse
from engine.runs.end import end, mark_stopping

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.loop.ending import Ending
    from engine.ports.store import Beat
    from engine.runs.start import Begun

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_BEGINNING = datetime.min.replace(tzinfo=UTC)


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
        starts_at=_BEGINNING,
    )
    try:
        with asyncio.Runner(loop_factory=parts.loop_factory) as runner:
            engine, ending = runner.run(
                _run(begun, parts, observer, signals=_SIGNALS if handle_signals else ())
            )
    finally:
        parts.store.close()
    end(
        begun.run_id,
        token=begun.token,
        ending=ending,
        figures=engine.figures,
        at=engine.clock.now(),
    )
    return Driven(run_id=begun.run_id, ending=ending)


async def _run(
    begun: Begun, parts: Parts, observer: Observer, *, signals: tuple[signal.Signals, ...]
) -> tuple[Engine, Ending]:
    loaded = await parts.store.load()
    engine = Engine(
        loaded=loaded, store=parts.store, llm=parts.llm, clock=parts.clock, config=begun.config
    )
    observer.started(engine)

    def heard(beat: Beat) -> None:
        engine.heard(beat)
        observer.beat(engine)

    def beat() -> Beat:
        if engine.is_ending:
            mark_stopping(begun.run_id)
        return parts.store.beat()

    pulse = Pulse(beat, heard, seconds=settings.SIM_PULSE_SECONDS, close=connections.close_all)
    with pulse, _stopped_by(engine, signals):
        ending = await engine.run()
    return engine, ending


@contextmanager
def _stopped_by(engine: Engine, signals: tuple[signal.Signals, ...]) -> Iterator[None]:
    """Let the first signal stop the run gently and the second at once."""
    loop = asyncio.get_running_loop()
    for number in signals:
        loop.add_signal_handler(number, engine.stop)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
