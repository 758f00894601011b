"""What a turn hands in, and its own row as the committer last answered it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from engine.core.effects import Answer, HandIn, TurnOutcome
from engine.core.texts import storable

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.core.effects import Effect, Result, TurnRecord
    from engine.phases.scene import Scene
    from engine.turn.calls import TurnCalls


class Door(Protocol):
    """The commit door as a turn sees it."""

    async def hand_in(self, hand_in: HandIn, told: Callable[[Answer], None] = ...) -> Answer: ...


class TurnLog:
    """One turn's hand-ins. `record` is its row; `ended` that its last hand-in was answered."""

    def __init__(self, record: TurnRecord, *, door: Door, scene: Scene, calls: TurnCalls) -> None:
        self.record = record
        self._door = door
        self._scene = scene
        self._calls = calls
        self._kept: tuple[Effect, ...] = ()

    @property
    def has_kept(self) -> bool:
        return bool(self._kept)

    @property
    def owes_calls(self) -> bool:
        """True while calls were made that no hand-in has carried: what they told must be stored."""
        return bool(self._calls.unreported)

    def keep(self, effects: tuple[Effect, ...]) -> None:
        """Let effects go in with the next hand-in that is taken, whatever becomes of the turn."""
        self._kept += effects

    @property
    def ended(self) -> bool:
        return self.record.finished_at is not None

    async def hand_in(
        self, effects: tuple[Effect, ...], *, ends: TurnOutcome | None = None, detail: str = ""
    ) -> tuple[Result, ...]:
        """Hand in effects with the calls and refusals since the last time.

        What was kept goes first. A cancelled hand-in that was not taken is withdrawn: only what was
        kept, and the calls, come with the next one.
        """
        kept, self._kept = self._kept, ()
        calls = self._calls.take_records()
        refused = tuple(self._scene.refused)
        self._scene.refused.clear()
        record = self.record
        if detail or record.n_gate_filtered != self._scene.n_gate_filtered:
            record = replace(
                record,
                n_gate_filtered=self._scene.n_gate_filtered,
                detail=storable(detail) or record.detail,
            )
        answered = False

        def told(answer: Answer) -> None:
            nonlocal answered
            answered = True
            if answer.turn is not None:
                self.record = answer.turn

        hand_in = HandIn(
            effects=(*kept, *effects), turn=record, calls=calls, refused=refused, ends=ends
        )
        try:
            answer = await self._door.hand_in(hand_in, told)
        finally:
            if not answered:
                self._kept = kept
                self._calls.unreported.extend(calls)
                self._scene.refused.extend(refused)
        return answer.results
