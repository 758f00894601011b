"""The turn boundary: a turn from its grant to its row's end, whatever its phases raise."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from engine.core.effects import TurnOutcome, TurnRecord
from engine.core.errors import Fenced, PermanentLlmError, StoreLost
from engine.phases.scene import Scene
from engine.turn.calls import Backoff, BudgetSpent, TurnCalls
from engine.turn.line import Doing
from engine.turn.log import Door, TurnLog
from engine.turn.run import run_turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.core.participation import Rules
    from engine.core.scheduler import Grant
    from engine.core.standing import Work
    from engine.core.world import World
    from engine.ports.clock import Clock
    from engine.ports.store import Store
    from engine.turn.line import Line

log = logging.getLogger(__name__)

#: After a turn that failed by a fault of ours its agent rests this long.
FAILED_REST_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn in flight: what its phases see, and what it hands in."""

    scene: Scene
    log: TurnLog


@dataclass(frozen=True, slots=True, kw_only=True)
class Conductor:
    """Makes turns and carries them out; `fail` ends the run with a sentence."""

    world: World
    rules: Rules
    store: Store
    line: Line
    clock: Clock
    door: Door
    fail: Callable[[str], None]

    def begin(self, grant: Grant) -> Turn:
        """Make the turn of a grant, with the agent as it is now."""
        spec = self.world.agents[grant.agent]
        config = self.rules.config
        record = TurnRecord(
            number=grant.number,
            agent=grant.agent,
            agent_version=spec.version,
            selected_at=self.clock.now(),
            waited_seconds=grant.waited_seconds,
            wait_bound_seconds=grant.wait_bound_seconds(
                n_slots=config.concurrent_turns, max_turn_seconds=config.max_turn_seconds
            ),
        )
        self.line.doing[grant.number] = Doing(spec.slug, record.selected_at)
        calls = TurnCalls(self.line, world=self.world, spec=spec, turn=record, config=config)
        scene = Scene(
            agent=grant.agent,
            number=grant.number,
            seed=config.seed,
            world=self.world,
            rules=self.rules,
            store=self.store,
            mind=calls,
            clock=self.clock,
        )
        return Turn(scene, TurnLog(record, door=self.door, scene=scene, calls=calls))

    async def carry_out(self, turn: Turn, work: tuple[Work, ...]) -> datetime | None:
        """Run the phases within the deadline, and end the turn's row by what they raise.

        Returns when the agent may try again, if it was put off. Raises what ended the
        commit door when nothing can be stored any more, and `CancelledError` when the run ends.
        """
        ends, detail, wait_seconds = TurnOutcome.FAILED, "", 0.0
        try:
            async with asyncio.timeout(self.rules.config.max_turn_seconds):
                await run_turn(turn.scene, turn.log, work)
        except TimeoutError:
            ends, detail = TurnOutcome.CANCELLED, "deadline"
        except BudgetSpent as error:
            ends, detail = TurnOutcome.WORKED, error.spent.reason
        except Backoff as error:
            ends, wait_seconds = TurnOutcome.BACKOFF, error.wait_seconds
            until = self.clock.now() + timedelta(seconds=wait_seconds)
            detail = f"{error} Waiting until {until:%H:%M:%S} UTC."
        except PermanentLlmError as error:
            detail = str(error)
            self.fail(detail)
        except Fenced:
            raise
        except StoreLost as error:
            self.fail(str(error))
            raise
        except asyncio.CancelledError:
            await _end(turn.log, TurnOutcome.CANCELLED, "")
            raise
        except Exception as error:
            log.exception("Turn %s of %s failed.", turn.log.record.number, turn.scene.spec.slug)
            detail, wait_seconds = f"{type(error).__name__}: {error}", FAILED_REST_SECONDS
        await _end(turn.log, ends, detail)
        return self.clock.now() + timedelta(seconds=wait_seconds) if wait_seconds else None


async def _end(turn: TurnLog, ends: TurnOutcome, detail: str) -> None:
    if not turn.ended:
        await turn.hand_in((), ends=ends, detail=detail)
