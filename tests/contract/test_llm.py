"""What every LLM backend must keep, whatever it is asked: the same body over all of them."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings

from engine.backends.clock import VirtualClock
from engine.backends.llm.anthropic import Access, AnthropicLlm
from engine.backends.llm.offline import OfflineLlm
from engine.ports.llm import (
    AnswerPost,
    Chosen,
    Context,
    Decision,
    Llm,
    LlmPhase,
    LlmRequest,
    LookUps,
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
from tests.anthropic_api.models import HAIKU
from tests.anthropic_api.server import KEY, AnthropicApi
from tests.backends.asking import PRICES
from tests.backends.talkative import talkative
from tests.core.llm_contexts import chances, memories, prunes, replies, scans
from tests.core.offline_society import AT, persona, request

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Held:
    """A backend and the loop that it lives on."""

    llm: Llm
    runner: asyncio.Runner


@contextmanager
def offline() -> Iterator[Held]:
    with asyncio.Runner() as runner:
        yield Held(OfflineLlm(7, VirtualClock(AT)), runner)


@contextmanager
def anthropic() -> Iterator[Held]:
    """The real client against the rehearsed API, which keeps no cache: usage is the same again."""
    with AnthropicApi(mind=talkative, least_cached_tokens=10**9) as api, asyncio.Runner() as runner:
        access = Access(key=KEY, base_url=api.url, timeout_seconds=60)
        llm = AnthropicLlm(access, prices=PRICES, clock=VirtualClock(AT), seed=7)
        yield Held(llm, runner)
        runner.run(llm.close())


BACKENDS = {"offline": offline, "anthropic": anthropic}
#: What any chat takes in one message.
MOST_CHARACTERS = 3000


@pytest.fixture(scope="module", params=list(BACKENDS))
def backend(request: pytest.FixtureRequest) -> Iterator[Held]:
    with BACKENDS[request.param]() as held:
        yield held


def asked_for(phase: LlmPhase, context: Context) -> LlmRequest:
    asked = request(phase, context, thread=1 if phase is LlmPhase.REPLY else None)
    return replace(asked, model=HAIKU.id)


def decide(backend: Held, phase: LlmPhase, context: Context) -> Decision:
    asked = asked_for(phase, context)
    told = backend.runner.run(backend.llm.complete(asked))
    assert told.usage.input_tokens >= 0
    cost, estimate = told.usage.cost_nano_usd, backend.llm.upper_estimate(asked)
    assert cost is not None
    assert estimate is not None
    assert cost <= estimate
    assert told.model
    assert told.prompt_version
    assert backend.runner.run(backend.llm.complete(asked)) == told
    assert not isinstance(told.decision, LookUps)
    return told.decision


anything = settings(deadline=None, max_examples=40)


@anything
@given(context=scans)
def test_scan_chooses_among_the_posts(backend: Held, context: ScanContext) -> None:
    decision = decide(backend, LlmPhase.SCAN, context)
    assert isinstance(decision, Chosen)
    assert set(decision.seqs) <= {post.seq for post in context.posts}
    assert len(set(decision.seqs)) == len(decision.seqs)


@anything
@given(context=prunes)
def test_prune_keeps_as_many_as_asked(backend: Held, context: PruneContext) -> None:
    decision = decide(backend, LlmPhase.PRUNE, context)
    assert isinstance(decision, Chosen)
    assert set(decision.seqs) <= {post.seq for post in context.posts}
    assert len(decision.seqs) == min(context.n_keep, len(context.posts))


@anything
@given(context=replies)
def test_reply_makes_an_allowed_move_with_a_text(backend: Held, context: ReplyContext) -> None:
    decision = decide(backend, LlmPhase.REPLY, context)
    assert isinstance(decision, Written)
    assert decision.move in context.moves
    assert decision.text.strip()
    assert len(decision.text) < MOST_CHARACTERS
    assert not set(decision.text) & set("@<>\x00\u202e")


@anything
@given(context=chances)
def test_post_stays_within_what_is_offered(backend: Held, context: PostContext) -> None:
    decision = decide(backend, LlmPhase.POST, context)
    match decision:
        case AnswerPost():
            assert decision.seq in {banked.entry.seq for banked in context.bank}
            assert decision.text.strip()
        case NewRoot():
            assert context.may_start_root
            assert decision.channel in {channel.name for channel in context.channels}
            assert decision.tag is None or decision.tag in {p.slug for p in context.partners}
            assert decision.text.strip()
        case SkipPost():
            assert decision.reason
        case _:
            pytest.fail(f"not an answer to a chance to post: {decision}")


@anything
@given(context=memories)
def test_memory_stays_under_300_words(backend: Held, context: RememberContext) -> None:
    decision = decide(backend, LlmPhase.REMEMBER, context)
    assert isinstance(decision, Remembered)
    assert len(decision.text.split()) < 300


def test_other_tasks_run_while_a_backend_answers(backend: Held) -> None:
    async def ask() -> list[str]:
        order: list[str] = []

        async def call() -> None:
            context = PruneContext(persona=persona("a"), posts=(), n_keep=1)
            await backend.llm.complete(asked_for(LlmPhase.PRUNE, context))
            order.append("answered")

        async def other() -> None:
            order.append("other")

        await asyncio.gather(call(), other())
        return order

    assert backend.runner.run(ask()) == ["other", "answered"]
