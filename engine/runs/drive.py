"""A run is driven from its first turn to its end, by a terminal or a worker alike."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from django.conf import settings
from django.db import connection

from engine.build import PATIENCE_LEASES, build
from engine.core.errors import StoreError, StoreLost
from engine.core.logged import logged_about
from engine.loop.ending import Ending, EndReason
from engine.loop.engine import Engine
from engine.loop.pulse import Pulse
from engine.runs.closing import insist
from engine.runs.end import end, mark_stopping
from engine.runs.showing import SHOWN_EVERY_SECONDS, picture_of, show
from engine.runs.stops import Stops

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.build import Parts
    from engine.ports.store import Beat
    from engine.runs.start import Begun

log = logging.getLogger(__name__)

#: A run that was asked to stop waits as many leases for a database that does not answer,
STOPPED_LEASES = 1
#: and one that was asked twice, or has given up, as many seconds.
HURRIED_SECONDS = 2.0

_TAKEN_OVER = Ending(
    reason=EndReason.INTERRUPTED, sentence="Another driver has taken this simulation over."
)


class EndUnwritten(Exception):
    """A run is over and its row could not say so; the message is for the person who ran it."""


class Observer(AbstractContextManager[object], Protocol):
    """Watches a run from outside, on the loop: once it stands, and at every beat.

    It is entered before the run is built, and left when its row is written.
    """

    def started(self, engine: Engine) -> None: ...

    def beat(self, engine: Engine) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Driven:
    """A run that has come to its end, or to a pause."""

    run_id: int
    ending: Ending


def drive(begun: Begun, observer: Observer, stops: Stops | None = None) -> Driven:
    """Drive a run whose lease is ours until it ends; its row is written when this returns.

    `stops` is who hears the signals; None while nobody does. Raises `EndUnwritten` when the
    database does not answer until the end.
    """
    driver = _Driver(begun, observer, stops or Stops())
    with logged_about(run=begun.run_id), ExitStack() as shown:
        shown.callback(begun.liveness.release)
        ending = driver.drive(shown)
        is_ours = driver.write(ending)
    return Driven(run_id=begun.run_id, ending=ending if is_ours else _TAKEN_OVER)


@contextmanager
def _lasting() -> Iterator[None]:
    """Spare what was loaded from the search for garbage: it lives as long as the run, and to look
    through ten thousand agents again and again would hold the loop up for 50 ms each time."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class _Driver:
    """The engine of one run and what is connected to it: pulse, signals, observer."""

    def __init__(self, begun: Begun, observer: Observer, stops: Stops) -> None:
        self.parts: Parts | None = None
        self.engine: Engine | None = None
        self._begun = begun
        self._observer = observer
        self._stops = stops
        self._n_passed_on = 0
        self._has_given_up = False
        self._picture: dict[str, Any] = {}
        self._show_at = 0.0

    def drive(self, shown: ExitStack) -> Ending:
        """Return how the run ended, whatever it raised: its row must not say that it still goes on.

        The observer is entered here, and left by whoever has `shown`.
        """
        try:
            shown.enter_context(self._observer)
            self.parts = parts = self._build()
            # Nobody uses this thread's connection while the run lasts; it would die of its idleness.
            connection.close()
            with (
                closing(parts.store),
                asyncio.Runner(loop_factory=parts.loop_factory) as runner,
            ):
                return runner.run(self.run(parts))
        except KeyboardInterrupt:
            return Ending(reason=EndReason.STOPPED)
        except StoreLost as error:
            return Ending(reason=EndReason.FAILED, sentence=str(error))
        except Exception as error:
            log.exception("A run failed.")
            return Ending(reason=EndReason.FAILED, sentence=f"{type(error).__name__}: {error}")

    def write(self, ending: Ending) -> bool:
        """Write how the run ended; False if it is another driver's by now."""
        write = partial(
            end,
            self._begun.run_id,
            token=self._begun.token,
            ending=ending,
            figures=None if self.engine is None else self.engine.figures,
            at=self._begun.starts_at if self.parts is None else self.parts.clock.now(),
        )
        try:
            return insist(write, seconds=self._patience_seconds)
        except StoreError as error:
            raise EndUnwritten(
                f"{ending.sentence or error} Run {self._begun.run_id} is over ({ending.reason}), "
                "which could not be written: the next start marks it interrupted."
            ) from error

    async def run(self, parts: Parts) -> Ending:
        loop = asyncio.get_running_loop()
        with (
            self._stops.told_to(lambda: loop.call_soon_threadsafe(self._pass_on)),
            self._pulse(parts),
        ):
            try:
                engine = await self._start(parts)
                with _lasting():
                    return await engine.run()
            finally:
                await parts.close_llm()

    def _build(self) -> Parts:
        begun = self._begun
        return build(
            simulation_id=begun.simulation_id,
            run_id=begun.run_id,
            token=begun.token,
            config=begun.config,
            starts_at=begun.starts_at,
            taken_at=begun.liveness.taken_at,
        )

    async def _start(self, parts: Parts) -> Engine:
        """Load the world; stops that were asked for meanwhile are passed on."""
        engine = Engine(
            loaded=await parts.store.load(),
            store=parts.store,
            llm=parts.llm,
            clock=parts.clock,
            config=self._begun.config,
        )
        for one in self._begun.spent:
            engine.rules.budget.count(one.agent, n_calls=one.n_calls, nano_usd=one.nano_usd)
        self.engine = engine
        self._pass_on()
        self._observer.started(engine)
        return engine

    def _pass_on(self) -> None:
        """Stop gently; asked again, at once."""
        while self.engine is not None and self._n_passed_on < self._stops.n_asked:
            self._n_passed_on += 1
            self.engine.stop()

    def _pulse(self, parts: Parts) -> Pulse:
        """Return the pulse: it beats from before the world is loaded, which may outlast a lease."""

        def beat() -> Beat:
            with self._begun.liveness.beating():
                found = parts.store.beat()
                self._show()
            return found

        return Pulse(
            beat,
            self._heard,
            silent=partial(self._silent, parts),
            seconds=settings.SIM_PULSE_SECONDS,
        )

    def _show(self) -> None:
        """Show, on the pulse's thread, what the loop drew at its last beat."""
        if self.engine is None:
            return
        run_id, token, picture = self._begun.run_id, self._begun.token, self._picture
        if self.engine.is_stopping:
            n_turns = len(self.engine.turns)
            mark_stopping(run_id, token=token, n_turns=n_turns, picture=picture)
        elif picture and time.monotonic() >= self._show_at:
            self._show_at = time.monotonic() + SHOWN_EVERY_SECONDS
            show(run_id, token=token, picture=picture)

    def _heard(self, beat: Beat) -> None:
        if self.engine is not None:
            self._picture = picture_of(self.engine)
            self.engine.heard(beat)
            self._observer.beat(self.engine)

    def _silent(self, parts: Parts, seconds: float) -> None:
        """Give up on a database that does not answer: late, but soon when the run is to end."""
        if seconds < self._patience_seconds() or self._has_given_up:
            return
        self._has_given_up = True
        parts.store.abandon()
        if self.engine is not None:
            self.engine.give_up(f"The database did not answer for {seconds:.0f} s.")

    def _patience_seconds(self) -> float:
        """Return how long the database is waited for, by what was asked of the run until now."""
        is_hurried = self.engine is not None and self.engine.is_hurried
        if self._has_given_up or self._stops.n_asked > 1 or (self._stops.n_asked and is_hurried):
            return HURRIED_SECONDS
        n_leases = STOPPED_LEASES if self._stops.n_asked else PATIENCE_LEASES
        return n_leases * float(settings.SIM_LEASE_SECONDS)
