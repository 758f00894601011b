"""The offline LLM: no network, no cost, and the same answer for the same seed and request."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from engine.backends.llm.offline.notes import remember
from engine.backends.llm.offline.posts import post, prune, scan
from engine.backends.llm.offline.talk import reply
from engine.core.chance import keyed_random
from engine.core.usage import Usage
from engine.ports.llm import (
    AnswerPost,
    Chosen,
    Context,
    Decision,
    LlmAnswer,
    LlmRequest,
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
    from collections.abc import Iterator
    from random import Random

    from engine.ports.clock import Clock

_MODEL = "offline"
_PROMPT_VERSION = "offline-1"
_LATENCY_SIGMA = 0.8
_BYTES_PER_TOKEN = 4


class OfflineLlm:
    """Decides from the texts of a request and from keyed chance, never from anything else.

    With `latency_seconds` each answer takes a log-normal time of that median, by `clock`.
    """

    free = True

    def __init__(self, seed: int, clock: Clock, latency_seconds: float = 0) -> None:
        self._seed = seed
        self._clock = clock
        self._latency_seconds = latency_seconds

    def upper_estimate(self, request: LlmRequest) -> int:
        """Return 0: no call costs money."""
        return 0

    async def complete(self, request: LlmRequest) -> LlmAnswer:
        """Answer with a decision of the context's kind; others run meanwhile."""
        await self._clock.sleep(self._wait_seconds(request))
        decision = self._decide(request)
        return LlmAnswer(
            decision=decision,
            usage=Usage(
                input_tokens=_tokens(_shown(request.context)),
                output_tokens=_tokens(_written(decision)),
            ),
            model=_MODEL,
            prompt_version=_PROMPT_VERSION,
            finish_reason="end_turn",
        )

    def _chance(self, request: LlmRequest, *purpose: str) -> Random:
        thread = "" if request.thread is None else request.thread
        return keyed_random(
            self._seed, request.agent, request.turn, request.phase, thread, *purpose
        )

    def _wait_seconds(self, request: LlmRequest) -> float:
        if not self._latency_seconds:
            return 0.0
        spread = self._chance(request, "latency").gauss(0.0, _LATENCY_SIGMA)
        return self._latency_seconds * math.exp(spread)

    def _decide(self, request: LlmRequest) -> Decision:
        match request.context:
            case ScanContext() as context:
                return scan(context)
            case PruneContext() as context:
                return prune(context)
            case ReplyContext() as context:
                thread = context.history[0].seq if request.thread is None else request.thread
                return reply(context, self._seed, thread, self._chance(request))
            case PostContext() as context:
                return post(context, self._chance(request))
            case RememberContext() as context:
                return remember(context)


def _shown(context: Context) -> Iterator[str]:
    """Yield the texts of a context that a model would be charged for."""
    persona = context.persona
    yield from (persona.public_profile, persona.private_instructions, persona.house_rules)
    match context:
        case ScanContext():
            yield context.memory
            yield from (entry.text for entry in context.posts)
            yield from (author.public_profile for author in context.authors)
        case PruneContext():
            yield from (entry.text for entry in context.posts)
        case ReplyContext():
            yield from (context.memory, context.guidance)
            yield from (entry.text for entry in context.history)
            if context.partner is not None:
                yield context.partner.public_profile
        case PostContext():
            yield context.memory
            yield from context.recent
            yield from (banked.entry.text for banked in context.bank)
            yield from (partner.public_profile for partner in context.partners)
        case RememberContext():
            yield context.memory
            yield from (entry.text for talk in context.talks for entry in talk.history)


def _written(decision: Decision) -> Iterator[str]:
    match decision:
        case Chosen(seqs=seqs):
            yield from map(str, seqs)
        case SkipPost(reason=reason):
            yield reason
        case Written() | AnswerPost() | NewRoot() | Remembered():
            yield decision.text


def _tokens(texts: Iterator[str]) -> int:
    """Return the usual estimate: four bytes of UTF-8 are a token."""
    return sum(len(text.encode("utf-8", "replace")) for text in texts) // _BYTES_PER_TOKEN
