"""The calls of a turn: reserved before they leave, limited, retried within bounds, recorded."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.core.budget import Reservation, Spent
from engine.core.config import LOOK_UP_ROUNDS, MAX_CALLS_PER_TURN
from engine.core.effects import CALL_CANCELLED, CallRecord
from engine.core.errors import (
    EngineError,
    LlmError,
    PermanentLlmError,
    PromptRefused,
    StoreLost,
    TransientLlmError,
    Unusable,
    UnusableAnswer,
)
from engine.core.recording import CallText
from engine.core.texts import is_storable, storable
from engine.core.usage import Receipt, Usage
from engine.ports.llm import (
    AnswerPost,
    LlmRequest,
    LookUps,
    NewRoot,
    Remembered,
    Round,
    Tier,
    Written,
)
from engine.prompts import asked_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from engine.core.config import RunConfig
    from engine.core.effects import TurnRecord
    from engine.core.records import AgentSpec
    from engine.core.world import World
    from engine.ports.llm import Context, Decision, Found, LlmAnswer, LlmPhase, LookUp
    from engine.turn.line import Line


log = logging.getLogger(__name__)

#: A turn waits this long for a retry, in seconds; for longer it ends and comes back.
PATIENCE_SECONDS = 5.0
#: The first wait before a retry when the other side names none; it doubles.
FIRST_WAIT_SECONDS = 1.0
#: A call is tried this often within one turn.
ATTEMPTS = 3
#: What the other side calls a model, and why it ended, is kept up to so many characters.
MODEL_LENGTH = 100
REASON_LENGTH = 32


class BudgetSpent(EngineError):
    """The call was not made: a cap or a window forbids it."""

    def __init__(self, spent: Spent) -> None:
        super().__init__(spent.reason)
        self.spent = spent


class Backoff(EngineError):
    """The turn ends here and comes back in `wait_seconds`: the model is not to be had now."""

    def __init__(self, reason: str, wait_seconds: float) -> None:
        super().__init__(reason)
        self.wait_seconds = wait_seconds


class TurnCalls:
    """The `Mind` of one turn. `unreported` are records that no hand-in has carried yet."""

    def __init__(
        self,
        line: Line,
        *,
        world: World,
        spec: AgentSpec,
        turn: TurnRecord,
        config: RunConfig,
    ) -> None:
        self._line = line
        self._config = config
        self._world = world
        self._spec = spec
        self._turn = turn
        self._own_permits = asyncio.Semaphore(MAX_CALLS_PER_TURN)
        self._n_calls = 0
        self.unreported: list[CallRecord] = []

    def take_records(self) -> tuple[CallRecord, ...]:
        """Return the records that no hand-in has carried yet, and forget them."""
        records = tuple(sorted(self.unreported, key=lambda record: record.number))
        self.unreported.clear()
        return records

    async def ask(
        self,
        phase: LlmPhase,
        tier: Tier,
        context: Context,
        *,
        thread: int | None = None,
        look_up: Callable[[LookUp], Awaitable[Found]] | None = None,
    ) -> Decision:
        """Ask until there is a decision, with what was looked up in between.

        Raises what no further attempt of this turn can cure.
        """
        request = LlmRequest(
            agent=self._spec.slug,
            turn=self._turn.number,
            phase=phase,
            tier=tier,
            thread=thread,
            attempt=1,
            context=context,
            model=self._model(tier),
            may_look_up=look_up is not None,
        )
        if doing := self._line.doing.get(self._turn.number):
            doing.phase, doing.thread = phase, thread
        async with self._own_permits:
            while True:
                decision = await self._until_answered(request)
                if not isinstance(decision, LookUps):
                    return decision
                if look_up is None or not request.may_look_up:
                    raise UnusableAnswer(Unusable.TOOL)
                found = await asyncio.gather(*(_found(look_up, one) for one in decision.wanted))
                rounds = (*request.rounds, Round(asked=decision, found=tuple(found)))
                may_look_up = len(rounds) < LOOK_UP_ROUNDS
                request = replace(request, rounds=rounds, may_look_up=may_look_up)

    def _model(self, tier: Tier) -> str:
        spec, config = self._spec, self._config
        if tier is Tier.SMALL:
            return spec.small_model or config.small_model
        return spec.large_model or config.large_model

    async def _until_answered(self, request: LlmRequest) -> Decision | LookUps:
        """Try again after waits that are short enough to wait inside of a turn, and once with a
        shorter prompt if the whole one is not taken."""
        wait_seconds = FIRST_WAIT_SECONDS
        n_failed = 0
        while True:
            try:
                return (await self._attempt(request)).decision
            except PromptRefused as error:
                if request.is_short:
                    raise UnusableAnswer(Unusable.NOT_TAKEN) from error
                request = replace(request, is_short=True, attempt=request.attempt + 1)
                continue
            except TransientLlmError as error:
                n_failed += 1
                wait_seconds = error.retry_after_seconds or wait_seconds
                if n_failed == ATTEMPTS or wait_seconds >= PATIENCE_SECONDS:
                    raise Backoff(str(error), max(wait_seconds, PATIENCE_SECONDS)) from error
            await self._line.clock.sleep(wait_seconds)
            request = replace(request, attempt=request.attempt + 1)
            wait_seconds *= 2

    async def _attempt(self, request: LlmRequest) -> LlmAnswer:
        """Make one call under one permit; it is booked and recorded whatever comes of it."""
        async with self._line.permits.hold(self._turn.number):
            # Nobody else could use the permit meanwhile.
            await self._line.trust.wait()
            reservation = self._reserve(request)
            record = await self._promise(self._record(request, reservation), reservation)
            answer: LlmAnswer | None = None
            failure: BaseException | None = None
            try:
                if record.reserved_on is not None:
                    # The store may have taken longer than trust lasts.
                    await self._line.trust.wait()
                answer = await self._line.llm.complete(request)
                _refuse_unstorable(answer)
            except BaseException as error:
                failure = error
                raise
            finally:
                self._book(request, record, reservation, answer, failure)
        return answer

    def _reserve(self, request: LlmRequest) -> Reservation:
        nano_usd = self._line.llm.upper_estimate(request)
        n_threads = len(self._world.desk(self._spec.id).threads)
        reservation = self._line.budget.reserve(
            self._spec, self._line.clock.now(), n_threads=n_threads, nano_usd=nano_usd
        )
        if isinstance(reservation, Spent):
            raise BudgetSpent(reservation)
        return reservation

    def _record(self, request: LlmRequest, reservation: Reservation) -> CallRecord:
        """Return the row of a call that is about to leave; a free one is on no day's account."""
        self._n_calls += 1
        now = self._line.clock.now()
        return CallRecord(
            turn=self._turn.number,
            number=self._n_calls,
            agent=self._spec.id,
            agent_version=self._turn.agent_version,
            house_rules_version=self._config.house_rules_version,
            phase=request.phase,
            thread=request.thread,
            model=request.model,
            prompt_version="",
            attempt=request.attempt,
            started_at=now,
            latency_seconds=0.0,
            reserved_on=None if self._line.llm.free else self._line.budget.today(now),
            reserved_nano_usd=reservation.nano_usd or 0,
            cost_nano_usd=None,
        )

    async def _promise(self, record: CallRecord, reservation: Reservation) -> CallRecord:
        """Have what the call may cost stored as promised before it leaves, unless it is free."""
        if record.reserved_on is None:
            return record
        budget = self._line.budget
        try:
            record, refusal = await self._line.promise(
                record, turn=self._turn, caps=budget.caps_of(self._spec)
            )
        except BaseException:
            budget.give_back(reservation)
            raise
        if refusal is not None:
            now = self._line.clock.now()
            raise BudgetSpent(budget.refused(reservation, refusal, now))
        budget.granted(self._line.clock.now())
        return record

    def _book(
        self,
        request: LlmRequest,
        record: CallRecord,
        reservation: Reservation,
        answer: LlmAnswer | None,
        failure: BaseException | None,
    ) -> None:
        """Settle the call and record it; of one that died in flight nobody knows the cost: it is
        booked at its estimate."""
        self._count_failure(failure)
        receipt = _receipt(answer, failure)
        usage = None if receipt is None else receipt.usage
        cost = reservation.nano_usd if usage is None else usage.cost_nano_usd
        record = replace(
            _answered(record, receipt),
            latency_seconds=(self._line.clock.now() - record.started_at).total_seconds(),
            cost_nano_usd=cost,
            error=storable(_error_of(failure)),
        )
        if self._config.record_calls and record.reserved_on is not None:
            record = replace(record, text=_text(request, receipt, failure))
        self._line.budget.settle(reservation, cost_nano_usd=cost)
        if record.reserved_on is not None:
            self._line.store.settle(record)
        self.unreported.append(record)

    def _count_failure(self, failure: BaseException | None) -> None:
        if isinstance(failure, TransientLlmError) or _is_none_of_a_model(failure):
            self._line.n_failures_in_row += 1
            self._line.last_failure = str(failure)
        elif failure is None or isinstance(failure, UnusableAnswer):
            self._line.n_failures_in_row = 0


async def _found(look_up: Callable[[LookUp], Awaitable[Found]], wanted: LookUp | None) -> Found:
    """Return what a look-up came to; one that fails, or that is none of ours, cannot be had."""
    if wanted is None:
        return None
    try:
        return await look_up(wanted)
    except StoreLost:
        raise
    except Exception:  # a turn must not fail for something that it can do without
        log.exception("A look-up failed: %s", wanted)
        return None


def _is_none_of_a_model(failure: BaseException | None) -> bool:
    """Tell whether an answer bills nothing: a page, or other JSON, of whoever stands between."""
    if not isinstance(failure, UnusableAnswer) or failure.receipt is None:
        return False
    return failure.receipt.usage is None


def _refuse_unstorable(answer: LlmAnswer) -> None:
    """Raise `UnusableAnswer` for a text that no database would take."""
    match answer.decision:
        case (
            Written(text=text) | AnswerPost(text=text) | NewRoot(text=text) | Remembered(text=text)
        ):
            if not is_storable(text):
                raise UnusableAnswer(Unusable.UNSTORABLE)


def _receipt(answer: LlmAnswer | None, failure: BaseException | None) -> Receipt | None:
    """Return what the call came to, also when its answer could not be used; None if nobody knows."""
    if answer is None:
        return failure.receipt if isinstance(failure, LlmError) else None
    return Receipt(
        model=answer.model,
        prompt_version=answer.prompt_version,
        finish_reason=answer.finish_reason,
        usage=answer.usage,
        said=answer.said,
    )


def _text(request: LlmRequest, receipt: Receipt | None, failure: BaseException | None) -> CallText:
    """Return the call word for word."""
    return CallText(
        asked=asked_of(request),
        said="" if receipt is None else receipt.said,
        wait_seconds=getattr(failure, "retry_after_seconds", None),
    )


def _answered(record: CallRecord, receipt: Receipt | None) -> CallRecord:
    """Return the record with what came back."""
    if receipt is None:
        return record
    usage = receipt.usage or Usage()
    return replace(
        record,
        model=storable(receipt.model)[:MODEL_LENGTH],
        prompt_version=receipt.prompt_version,
        finish_reason=storable(receipt.finish_reason)[:REASON_LENGTH],
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )


def _error_of(failure: BaseException | None) -> str:
    match failure:
        case None:
            return ""
        case UnusableAnswer():
            return f"unusable: {failure.reason}"
        case TransientLlmError():
            return f"transient: {failure}"
        case PermanentLlmError():
            return f"permanent: {failure}"
        case asyncio.CancelledError():
            return CALL_CANCELLED
        case LlmError():
            return f"failed: {failure}"
    return f"failed: {type(failure).__name__}"
