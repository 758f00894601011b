"""A driver that cannot be sure of its lease: it selects nobody and calls nobody until it can."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from engine.ports.store import Beat, Wish
from engine.store.memory import MemoryStore
from tests.runtime.parts import at_home
from tests.runtime.scripted_llm import ScriptedLlm, eager
from tests.runtime.society import Live, play

if TYPE_CHECKING:
    from engine.ports.llm import Decision, LlmRequest

#: So many turns of the loop let everything happen that needs no time.
MANY = 200


def distrusted(live: Live) -> None:
    live.store.is_trusted = False


def regain(live: Live) -> None:
    """Let the pulse renew the lease, and be heard."""
    live.store.is_trusted = True
    live.beat()


async def everything_that_can() -> None:
    for _ in range(MANY):
        await asyncio.sleep(0)


def test_driver_without_trust_selects_nobody_until_it_is_back() -> None:
    seen: list[int] = []

    async def watch(live: Live) -> None:
        await everything_that_can()
        live.beat()  # it is heard, and changes nothing
        await everything_that_can()
        seen.append(live.engine.scheduler.n_selections)
        regain(live)

    played = play(at_home(2), watch, on_begin=distrusted, max_turns=3)
    assert seen == [0]
    assert (played.reason, len(played.tables.turns)) == ("turn_limit", 3)


def test_time_of_a_virtual_clock_stands_still_without_trust() -> None:
    """It would fly: to the close of every idle thread, for one."""
    society = at_home(2)
    began = society.starts_at

    async def watch(live: Live) -> None:
        # Another thread tells when: the loop has nothing to do meanwhile but to let time pass.
        loop, told = asyncio.get_running_loop(), asyncio.Event()
        timer = threading.Timer(0.05, loop.call_soon_threadsafe, (told.set,))
        timer.start()
        try:
            await told.wait()
        finally:
            timer.cancel()
        regain(live)

    # The end of the hour is a timer that time could jump to.
    played = play(society, watch, on_begin=distrusted, max_turns=1, max_minutes=60)
    assert (played.reason, society.starts_at) == ("turn_limit", began)


def test_call_waits_for_trust_and_leaves_when_it_is_back() -> None:
    lives: list[Live] = []
    seen: list[tuple[int, bool]] = []

    def distrust_after_the_first(request: LlmRequest) -> Decision:
        lives[0].store.is_trusted = bool(seen)
        return eager(request)

    async def watch(live: Live) -> None:
        lives.append(live)
        await everything_that_can()
        assert not live.store.is_trusted
        assert isinstance(live.llm, ScriptedLlm)
        seen.append((live.llm.n_calls(), live.engine.rules.budget.is_open))
        regain(live)

    # Three agents answer at once, and one permit lets them call one after the other.
    played = play(
        at_home(3),
        watch,
        script=distrust_after_the_first,
        max_llm_calls_in_flight=1,
        concurrent_turns=3,
        max_turns=3,
    )
    # The second call has left nothing reserved: it never began.
    assert seen == [(1, False)]
    assert played.llm.n_calls() > 1


def test_stop_asked_twice_ends_a_run_whose_calls_wait_for_trust() -> None:
    async def watch(live: Live) -> None:
        await live.until(lambda: bool(live.engine.turns))
        distrusted(live)
        live.engine.stop()
        live.engine.stop()

    played = play(at_home(2), watch, latency=5.0)
    assert played.reason == "stopped"


def test_run_that_is_lost_while_its_calls_wait_ends_interrupted() -> None:
    async def watch(live: Live) -> None:
        await everything_that_can()
        MemoryStore(live.tables)
        live.beat()

    played = play(at_home(2), watch, on_begin=distrusted)
    assert (played.reason, played.tables.turns) == ("interrupted", {})


def test_database_that_is_given_up_ends_the_run_with_a_sentence() -> None:
    async def watch(live: Live) -> None:
        await everything_that_can()
        live.engine.give_up("The database did not answer for 300 s.")

    played = play(at_home(2), watch, on_begin=distrusted)
    assert played.reason == "failed"
    assert played.ending.sentence == "The database did not answer for 300 s."
    assert played.engine.is_hurried


def test_beat_is_heard_by_who_waits_before_anybody_acts_on_it() -> None:
    """A wish to stop that comes with trust still stops."""

    async def watch(live: Live) -> None:
        await everything_that_can()
        live.store.is_trusted = True
        live.engine.heard(Beat(ours=True, wish=Wish.STOP, topology_version=0, has_mail=False))

    played = play(at_home(2), watch, on_begin=distrusted)
    assert (played.reason, played.tables.turns) == ("stopped", {})
