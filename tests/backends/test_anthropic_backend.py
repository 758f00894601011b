"""The Anthropic backend over the wire: the real client against the rehearsed API."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine.backends.llm.anthropic import backend as backend_module
from engine.backends.llm.anthropic.asking import body_of
from engine.backends.llm.anthropic.own_loop import OwnLoop
from engine.ports.llm import (
    AnswerPost,
    Chosen,
    LookUps,
    ReadProfile,
    Remembered,
    Round,
    SearchMessages,
    Written,
)
from engine.prompts import PROMPT_VERSION
from tests.anthropic_api import minds, steps
from tests.anthropic_api.models import HAIKU, OLDER, SONNET
from tests.anthropic_api.server import KEY, AnthropicApi
from tests.backends.asking import ask, backend, request
from tests.core.golden_prompts import CASES, DAIRY, FERRY, HISTORY, KELP
from tests.core.offline_society import profile_of, reply_context

if TYPE_CHECKING:
    from engine.ports.llm import LlmAnswer, LlmRequest

ROOT = Path(__file__).parents[2]
SCAN, REPLY, POST = (request(CASES[name]) for name in ("scan", "reply", "post"))


def test_every_phase_gets_its_decision(api: AnthropicApi) -> None:
    kinds = {
        "scan": Chosen,
        "prune": Chosen,
        "reply": Written,
        "reply-to-proposal": Written,
        "reply-to-person": Written,
        "post": AnswerPost,
        "remember": Remembered,
    }

    answers = ask(api, *(request(CASES[name]) for name in kinds))

    assert [type(answer.decision) for answer in answers] == list(kinds.values())
    assert {answer.prompt_version for answer in answers} == {PROMPT_VERSION}
    assert {answer.model for answer in answers} == {HAIKU.id, SONNET.id}
    assert api.ledger.statuses == {200: len(kinds)}


def test_cost_is_that_of_the_bill(api: AnthropicApi) -> None:
    answers = ask(api, SCAN, REPLY, SCAN, POST, REPLY)

    costs = [answer.usage.cost_nano_usd or 0 for answer in answers]
    assert sum(costs) == api.ledger.total_nano_usd() > 0


def test_estimate_is_never_under_the_bill(api: AnthropicApi) -> None:
    async def both() -> list[tuple[int | None, LlmAnswer]]:
        async with backend(api) as llm:
            asked = [request(context) for context in CASES.values()]
            return [(llm.upper_estimate(one), await llm.complete(one)) for one in asked]

    for estimate, answer in asyncio.run(both()):
        assert (estimate or 0) > (answer.usage.cost_nano_usd or 0) > 0


def test_what_stays_the_same_is_read_from_the_cache(api: AnthropicApi) -> None:
    """Another agent shares the rules; the next message of a thread adds to what was kept."""
    early = request(reply_context(FERRY, KELP, HISTORY[:2], number=3))
    kelp = replace(KELP, house_rules=FERRY.house_rules)
    other = request(reply_context(kelp, FERRY, HISTORY[:3], number=4))

    first, again, second, third = ask(api, early, early, other, REPLY)

    assert (first.usage.cache_read_tokens, first.usage.cache_write_tokens > 2500) == (0, True)
    assert again.usage.cache_read_tokens == first.usage.cache_write_tokens
    assert 1024 < second.usage.cache_read_tokens < first.usage.cache_write_tokens
    assert third.usage.cache_read_tokens == first.usage.cache_write_tokens
    assert 0 < third.usage.cache_write_tokens < 300


def test_thoughts_of_the_model_are_no_part_of_its_answer(api: AnthropicApi) -> None:
    (answer,) = ask(api, REPLY)

    assert api.ledger.exchanges[0].answer is not None
    kinds = [block["type"] for block in api.ledger.exchanges[0].answer["content"]]
    assert kinds == ["thinking", "text"]
    assert isinstance(answer.decision, Written)


def test_calls_go_out_with_our_key_and_nothing_of_other_programs(
    api: AnthropicApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "ANTHROPIC_API_KEY": "foreign-key",
        "ANTHROPIC_AUTH_TOKEN": "foreign-token",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        "ANTHROPIC_CUSTOM_HEADERS": "x-foreign: 1\nx-api-key: foreign-key",
    }.items():
        monkeypatch.setenv(name, value)

    ask(api, SCAN)

    (exchange,) = api.ledger.exchanges
    assert (exchange.status, exchange.key) == (200, KEY)
    assert not any("foreign" in name + value for name, value in exchange.headers.items())


# --- look-ups --------------------------------------------------------------------------------------


def test_look_ups_are_wanted_done_and_answered(api: AnthropicApi) -> None:
    calls = (
        minds.Call(name="read_profile", input={"name": "RindBot"}),
        minds.Call(name="search_messages", input={"words": "fog pier"}),
        minds.Call(name="search_messages", input={"name": "fog"}),
        minds.Call(name="no_such_tool", input={}),
    )
    one_more = minds.Call(name="read_profile", input={"name": "KelpBot"})
    api.script.add(
        steps.answers(minds.use(*calls, text="Let me see.")), steps.answers(minds.use(one_more))
    )
    may = replace(REPLY, may_look_up=True)

    (first,) = ask(api, may)
    assert isinstance(first.decision, LookUps)
    assert first.decision.wanted == (
        ReadProfile(name="RindBot"),
        SearchMessages(words="fog pier"),
        None,
        None,
    )
    one = Round(asked=first.decision, found=(profile_of(DAIRY), None, None, None))
    (second,) = ask(api, replace(may, rounds=(one,)))
    assert isinstance(second.decision, LookUps)
    assert second.usage.cache_read_tokens > 2_500
    two = Round(asked=second.decision, found=(None,))
    (third,) = ask(api, replace(REPLY, rounds=(one, two), may_look_up=False))

    assert isinstance(third.decision, Written)
    assert api.ledger.statuses == {200: 3}


def test_more_look_ups_than_are_done_are_unavailable(api: AnthropicApi) -> None:
    calls = [minds.Call(name="read_profile", input={"name": f"Bot{n}"}) for n in range(6)]
    api.script.add(steps.answers(minds.use(*calls)))

    (answer,) = ask(api, replace(REPLY, may_look_up=True))

    assert isinstance(answer.decision, LookUps)
    assert answer.decision.wanted[4:] == (None, None)
    assert None not in answer.decision.wanted[:4]


# --- who pays for the import -----------------------------------------------------------------------


def test_nothing_imports_the_client_until_a_run_asks_it() -> None:
    """Its import takes seconds, which the site and every other command must not pay."""
    program = (
        "import sys, django; django.setup()\n"
        "from django.core.management import get_commands, load_command_class\n"
        "for name, app in get_commands().items():\n"
        "    if app in ('engine', 'cohorts'): load_command_class(app, name)\n"
        "import engine.admin, engine.build, engine.runs, simsite.urls\n"
        "assert 'engine.backends.llm.anthropic.backend' in sys.modules\n"
        "assert 'anthropic' not in sys.modules\n"
        "from engine.backends.llm.anthropic import AnthropicLlm\n"
        "AnthropicLlm.load()\n"
        "assert 'anthropic' in sys.modules\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={"DJANGO_SETTINGS_MODULE": "simsite.settings", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def test_client_computes_on_a_loop_of_its_own(
    api: AnthropicApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it computes for a call does not hold up the loop of the run."""
    where: list[str] = []

    def noted(request: LlmRequest, effort: str) -> dict[str, Any]:
        where.append(threading.current_thread().name)
        return body_of(request, effort)

    monkeypatch.setattr(backend_module, "body_of", noted)

    ask(api, SCAN, REPLY)

    assert where == ["anthropic", "anthropic"]
    assert "anthropic" not in {thread.name for thread in threading.enumerate()}


def test_effort_is_told_to_models_that_know_it(api: AnthropicApi) -> None:
    older = replace(SCAN, model=OLDER.id)

    ask(api, SCAN, older, effort="low")

    bodies = [one.body for one in api.ledger.exchanges if one.body is not None]
    assert [body["output_config"].get("effort") for body in bodies] == ["low", None]


def test_calls_that_are_given_up_end_with_their_loop() -> None:
    """A connection takes a moment to close."""
    begun, over = threading.Event(), []

    async def call() -> None:
        try:
            begun.set()
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            await asyncio.sleep(0.05)
            over.append(threading.current_thread().name)
            raise

    async def give_up() -> BaseException | None:
        loop = OwnLoop("calls")
        asked = asyncio.create_task(loop.do(call()))
        await asyncio.to_thread(begun.wait)
        asked.cancel()
        (found,) = await asyncio.gather(asked, return_exceptions=True)
        await loop.close()
        return found

    assert isinstance(asyncio.run(give_up()), asyncio.CancelledError)
    assert over == ["calls"]
