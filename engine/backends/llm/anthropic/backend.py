"""The LLM port over the Messages API: one attempt for each call, sorted where it fails."""

from __future__ import annotations

import asyncio
import importlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from engine.backends.llm.anthropic.answering import receipt_of
from engine.backends.llm.anthropic.asking import body_of, most_tokens
from engine.backends.llm.anthropic.failures import (
    asked_wait,
    connection_failure,
    status_failure,
    wait_before,
)
from engine.backends.llm.anthropic.own_loop import OwnLoop
from engine.backends.llm.said import read_said
from engine.core.chance import keyed_random
from engine.core.errors import PermanentLlmError, PromptRefused, Unusable, UnusableAnswer
from engine.core.usage import Receipt
from engine.ports.llm import LlmAnswer
from engine.prompts import PROMPT_VERSION

if TYPE_CHECKING:
    from engine.core.errors import LlmError
    from engine.core.prices import PriceTable
    from engine.core.usage import Usage
    from engine.ports.clock import Clock
    from engine.ports.llm import LlmRequest

#: After so many prompts in a row that the service did not take, none is to be expected.
REFUSED_IN_A_ROW = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How the service is reached; `timeout_seconds` bounds a whole call.

    `effort` is how hard models think, as the service names it; empty leaves it to each model.
    """

    key: str
    base_url: str
    timeout_seconds: float
    effort: str = ""


class AnthropicLlm:
    """Implements the LLM port: one client, on a loop of its own, from the first call to `close`."""

    free = False

    def __init__(self, access: Access, *, prices: PriceTable, clock: Clock, seed: int) -> None:
        self._access = access
        self._prices = prices
        self._clock = clock
        self._seed = seed
        self._n_refused_in_row = 0

    @staticmethod
    def load() -> Any:
        """Import the client, which takes seconds, unless it is there."""
        return importlib.import_module("engine.backends.llm.anthropic.client")

    @cached_property
    def _loop(self) -> OwnLoop:
        return OwnLoop("anthropic")

    @cached_property
    def _client(self) -> Any:
        access = self._access
        return self.load().make_client(
            key=access.key, base_url=access.base_url, timeout_seconds=access.timeout_seconds
        )

    def upper_estimate(self, request: LlmRequest) -> int | None:
        """Return the price of as many tokens as the request and its answer can have at most; None
        without a price."""
        input_tokens, output_tokens = most_tokens(request)
        return self._prices.upper_cost(
            request.model,
            self._clock.now(),
            input_tokens=input_tokens,
            output_tokens=output_tokens,
        )

    async def complete(self, request: LlmRequest) -> LlmAnswer:
        """Ask once. What fails raises the `LlmError` that it is, with its receipt."""
        message = await self._loop.do(self._ask(request))
        self._n_refused_in_row = 0
        receipt = receipt_of(message, request, self._cost)
        decision = read_said(request, receipt)
        assert receipt.usage is not None
        return LlmAnswer(
            decision=decision,
            usage=receipt.usage,
            model=receipt.model,
            prompt_version=receipt.prompt_version,
            finish_reason=receipt.finish_reason,
            said=receipt.said,
        )

    async def close(self) -> None:
        """Close the connections, and the loop that used them."""
        if "_loop" not in self.__dict__:
            return
        if "_client" in self.__dict__:
            await self._loop.do(self._client.close())
        await self._loop.close()

    def _cost(self, model: str, usage: Usage) -> int | None:
        return self._prices.cost(model, usage, self._clock.now())

    async def _ask(self, request: LlmRequest) -> object:
        vendor = self.load()
        try:
            async with asyncio.timeout(self._access.timeout_seconds):
                return await self._client.messages.create(**body_of(request, self._access.effort))
        except vendor.APIStatusError as error:
            raise self._sorted(error, request) from error
        except (vendor.AnthropicError, TimeoutError, OSError) as error:
            raise connection_failure(
                type(error).__name__, model=request.model, wait_seconds=self._wait(request, None)
            ) from error
        except ValueError as error:  # JSON that was cut, or that is no message at all
            receipt = Receipt(
                model=request.model, prompt_version=PROMPT_VERSION, finish_reason="", usage=None
            )
            raise UnusableAnswer(Unusable.UNPARSABLE, receipt=receipt) from error

    def _sorted(self, error: Any, request: LlmRequest) -> LlmError:
        failure = status_failure(
            error.status_code,
            str(error.type or ""),
            str(error.request_id or ""),
            model=request.model,
            wait_seconds=self._wait(request, asked_wait(error.response.headers, self._clock.now())),
        )
        if not isinstance(failure, PromptRefused):
            return failure
        self._n_refused_in_row += 1
        if self._n_refused_in_row < REFUSED_IN_A_ROW:
            return failure
        sentence = f"The service takes none of the prompts: {error.api_message or error}"
        return PermanentLlmError(sentence, receipt=failure.receipt)

    def _wait(self, request: LlmRequest, asked_seconds: float | None) -> float:
        luck = keyed_random(
            self._seed,
            request.agent,
            request.turn,
            request.phase,
            request.thread or 0,
            request.attempt,
            "wait",
        )
        return wait_before(request.attempt, asked_seconds, luck.random())
