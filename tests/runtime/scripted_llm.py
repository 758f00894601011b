"""A model that follows a script: decisions by a function, latency by the clock, at a price."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.core.usage import Usage
from engine.ports.llm import (
    AnswerPost,
    Chosen,
    Decision,
    LlmAnswer,
    LlmPhase,
    LlmRequest,
    LookUps,
    Move,
    NewRoot,
    PostContext,
    PruneContext,
    RememberContext,
    Remembered,
    ReplyContext,
    ScanContext,
    SkipPost,
    Written,
)

if TYPE_CHECKING:
    from engine.ports.clock import Clock

Script = Callable[[LlmRequest], Decision | LookUps]


def unlike_any_other(request: LlmRequest) -> str:
    """Return a text that shares no run of three words with that of another request."""
    mark = f"{request.agent}-{request.turn}-{request.thread or 0}".replace("-", "_")
    return f"{mark}a said {mark}b then {mark}c and {mark}d"


def eager(request: LlmRequest) -> Decision:
    """Keep every post, answer the oldest kept one, propose as soon as one may, agree to all."""
    text = unlike_any_other(request)
    match request.context:
        case ScanContext() as context:
            return Chosen(seqs=tuple(post.seq for post in context.posts))
        case PruneContext() as context:
            return Chosen(seqs=tuple(post.seq for post in context.posts[: context.n_keep]))
        case ReplyContext() as context:
            wanted = (Move.ACCEPT, Move.PROPOSE, Move.CONTINUE)
            return Written(move=next(one for one in wanted if one in context.moves), text=text)
        case PostContext() as context if context.bank:
            return AnswerPost(seq=context.bank[0].entry.seq, text=text)
        case PostContext() as context if context.channels:
            return NewRoot(channel=context.channels[0].name, text=text, tag=None)
        case PostContext():
            return SkipPost(reason="nothing is on offer")
        case RememberContext():
            return Remembered(text=text)


def silent(request: LlmRequest) -> Decision:
    """Keep nothing, say nothing new, decline every talk."""
    match request.context:
        case ScanContext() | PruneContext():
            return Chosen(seqs=())
        case ReplyContext() as context:
            wanted = (Move.DECLINE, Move.CONTINUE)
            move = next(one for one in wanted if one in context.moves)
            return Written(move=move, text=unlike_any_other(request))
        case PostContext():
            return SkipPost(reason="nothing to say")
        case RememberContext():
            return Remembered(text="nothing")


def by_phase(otherwise: Script, **scripts: Script) -> Script:
    """Return a script with one of its own for some phases, named as in `LlmPhase`."""
    own = {LlmPhase(phase): script for phase, script in scripts.items()}
    return lambda request: own.get(request.phase, otherwise)(request)


def no_time(_request: LlmRequest) -> float:
    return 0.0


@dataclass(slots=True, kw_only=True)
class ScriptedLlm:
    """Implements the LLM port. `script` decides, or raises what the call is to fail with.

    The script is asked after the latency, so that a failure takes its time too. Each call costs
    `cost_nano_usd` and is estimated at `estimate_nano_usd` before. `requests` are all that were
    made, `n_in_flight` those that wait now, in all and by agent.
    """

    clock: Clock
    script: Script = eager
    latency: Callable[[LlmRequest], float] = no_time
    estimate_nano_usd: int = 0
    cost_nano_usd: int = 0
    requests: list[LlmRequest] = field(default_factory=list)
    n_in_flight: int = 0
    most_in_flight: int = 0
    n_in_flight_of: Counter[str] = field(default_factory=Counter)
    most_in_flight_of: Counter[str] = field(default_factory=Counter)
    free: bool = field(init=False)

    def __post_init__(self) -> None:
        self.free = self.estimate_nano_usd == 0

    def upper_estimate(self, request: LlmRequest) -> int:
        return self.estimate_nano_usd

    async def complete(self, request: LlmRequest) -> LlmAnswer:
        self.requests.append(request)
        self._count(request.agent, 1)
        try:
            await self.clock.sleep(self.latency(request))
            decision = self.script(request)
        finally:
            self._count(request.agent, -1)
        return LlmAnswer(
            decision=decision,
            usage=Usage(input_tokens=100, output_tokens=10, cost_nano_usd=self.cost_nano_usd),
            model="scripted",
            prompt_version="scripted-1",
            finish_reason="end_turn",
        )

    def n_calls(self, *phases: str) -> int:
        """Count the calls made, in these phases or in all."""
        return sum(not phases or request.phase in phases for request in self.requests)

    def _count(self, agent: str, step: int) -> None:
        self.n_in_flight += step
        self.n_in_flight_of[agent] += step
        self.most_in_flight = max(self.most_in_flight, self.n_in_flight)
        self.most_in_flight_of[agent] = max(
            self.most_in_flight_of[agent], self.n_in_flight_of[agent]
        )
