"""Whole runs that ask the rehearsed API: from the command line to the rows they leave."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from django.db.models import Sum

from cohorts.models import Agent
from engine.core.prices import NANO
from engine.models import LlmCall, Message, Run, Turn
from engine.simulations import save_house_rules
from tests.anthropic_api import minds, steps
from tests.anthropic_api.models import HAIKU, SONNET
from tests.anthropic_api.server import KEY, AnthropicApi
from tests.backends.talkative import talkative
from tests.backends.worlds import TEN, give_texts, play, quick_world, reasons, use
from tests.doors import runsim

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

    from tests.anthropic_api.minds import Asked, Decision

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def api(settings: Settings) -> Iterator[AnthropicApi]:
    with AnthropicApi(mind=talkative) as server:
        use(settings, server)
        yield server


def test_ten_agents_talk_to_proposals_mostly_from_the_cache(api: AnthropicApi) -> None:
    """With one slot, so that the same agents say the same at every try."""
    simulation = quick_world(agents=TEN, daily_posts=2)
    give_texts(TEN)
    save_house_rules(simulation, "Projects of one season.", who="Ada")

    told = play("--concurrent-turns", "1")

    assert (told.code, told.summary["end_reason"]) == (0, "idle"), told.err
    run = Run.objects.get()
    calls = LlmCall.objects.filter(run=run)
    assert told.summary["proposals"] >= 1
    assert told.summary["threads"]["lost"] == 0
    assert set(calls.values_list("error", flat=True)) == {""}
    assert set(calls.values_list("model", "house_rules_version")) == {
        (HAIKU.id, 1),
        (SONNET.id, 1),
    }
    assert api.ledger.statuses == {200: calls.count()}
    used = calls.aggregate(
        read=Sum("cache_read_tokens"), write=Sum("cache_write_tokens"), plain=Sum("input_tokens")
    )
    billed = [exchange.usage.prompt for exchange in api.ledger.billed if exchange.usage]
    assert used == {
        "read": sum(one.read for one in billed),
        "write": sum(one.write_5m for one in billed),
        "plain": sum(one.plain for one in billed),
    }
    assert share_read_when_warm(run) >= 0.7
    costs = calls.aggregate(cost=Sum("cost_nano_usd"))["cost"]
    assert costs == api.ledger.total_nano_usd() == round(told.summary["cost_usd"] * NANO)


def share_read_when_warm(run: Run) -> float:
    """Return the share of input that came from the cache, without each agent's first call of a
    phase: nothing of its own can have been kept before."""
    met: set[tuple[int, str]] = set()
    read = whole = 0
    for call in LlmCall.objects.filter(run=run).order_by("started_at", "pk"):
        key = (call.agent_id, call.phase)
        if key in met:
            read += call.cache_read_tokens
            whole += call.cache_read_tokens + call.cache_write_tokens + call.input_tokens
        met.add(key)
    return read / whole


def test_without_a_key_no_run_begins(settings: Settings) -> None:
    settings.SIM_ANTHROPIC_API_KEY = ""
    quick_world()

    told = play()

    assert told.code == 2
    assert told.err == (
        "CommandError: SIM_ANTHROPIC_API_KEY is not set: set it to the key of your account, or use "
        "--llm offline.\n"
    )
    assert not Run.objects.exists()


def test_wrong_key_fails_the_run_at_once(api: AnthropicApi, settings: Settings) -> None:
    settings.SIM_ANTHROPIC_API_KEY = "not-a-key"
    quick_world()

    told = play()

    run = Run.objects.get()
    assert (told.code, run.status) == (1, "failed")
    assert run.detail.startswith("The service does not know the key. Check SIM_ANTHROPIC_API_KEY.")
    assert told.err.strip().endswith(run.detail)
    assert len(api.ledger.exchanges) <= 3  # those of the slots


@pytest.mark.parametrize("words", [("--small-model", "claude-nobody"), ()])
def test_model_that_is_not_there_fails_the_run_at_once(
    api: AnthropicApi, words: tuple[str, ...]
) -> None:
    quick_world(agents=("ash",))
    Agent.objects.update(large_model="claude-nobody")

    told = play(*words)

    assert told.code == 1
    assert "The service has no model claude-nobody." in told.err


def test_key_without_permission_fails_the_run_at_once(settings: Settings) -> None:
    quick_world()
    with AnthropicApi(mind=talkative, keys={KEY: frozenset({HAIKU.id})}) as server:
        use(settings, server)
        told = play()

    assert told.code == 1
    assert "The key may not use claude-sonnet-5-5." in told.err


@pytest.mark.usefixtures("hurried")
def test_service_that_stays_overloaded_pauses_the_run(api: AnthropicApi) -> None:
    quick_world()
    api.script.add(*[steps.rate_limited("0.05")] * 10, *[steps.overloaded()] * 30)

    told = play()

    assert (told.code, told.summary["end_reason"]) == (4, "circuit_open")
    assert "times in a row, at last like this: The service could not answer (" in told.err
    errors = LlmCall.objects.values_list("error", flat=True)
    assert all(error.startswith("transient: ") for error in errors)
    assert not LlmCall.objects.exclude(cost_nano_usd=0).exists()

    api.script = type(api.script)()
    again = runsim("--resume", "--json")
    assert (again.code, again.summary["end_reason"]) == (0, "idle")


def test_pages_in_place_of_answers_pause_the_run(api: AnthropicApi) -> None:
    """A proxy that answers everything with its own page: nobody loses a thread by it."""
    quick_world(agents=TEN)
    api.script.add(*[steps.html_with_200()] * 40)

    told = play()

    assert (told.code, told.summary["end_reason"]) == (4, "circuit_open")
    assert "at last like this: html" in told.err
    assert told.summary["threads"]["lost"] == 0


def test_long_wait_ends_the_turn_and_says_until_when(api: AnthropicApi) -> None:
    quick_world(agents=("ash",))
    api.script.add(steps.rate_limited("30"))

    told = play("--max-turns", "1")

    assert told.summary["end_reason"] == "turn_limit"
    turn = Turn.objects.get()
    assert turn.outcome == "backoff"
    assert "429 rate_limit_error" in turn.detail
    assert " Waiting until " in turn.detail


@pytest.mark.usefixtures("hurried")
def test_short_waits_are_waited_inside_of_the_turn(api: AnthropicApi) -> None:
    quick_world(agents=("ash",), daily_posts=1)
    api.script.add(steps.rate_limited("0.1"), steps.overloaded(), steps.answers())

    told = play()

    assert told.summary["end_reason"] == "idle"
    calls = LlmCall.objects.filter(turn=1).order_by("number")
    assert list(calls.values_list("attempt", flat=True)) == [1, 2, 3]
    assert [bool(call.error) for call in calls] == [True, True, False]


SPOILED = {
    **{name: steps.FAULTS[name] for name in ("html", "other_json", "no_usage", "no_content")},
    **{name: steps.FAULTS[name] for name in ("cut_json", "truncated", "refusal", "empty")},
    **{name: steps.FAULTS[name] for name in ("blank", "prose", "two_blocks", "unknown_tool")},
}


def test_spoiled_answers_crash_nothing_and_poison_nothing(api: AnthropicApi) -> None:
    """Every kind of answer that cannot be used, in every phase: the run goes on to its end."""
    quick_world(agents=(*TEN, *(f"{slug}x" for slug in TEN)), daily_posts=1)
    for field in ("choice", "posts"):
        api.script.add(*SPOILED.values(), when=_asks_for(field))
    for field in ("move", "memory"):
        api.script.add(SPOILED["truncated"], when=_asks_for(field))

    told = play()

    assert (told.code, told.summary["end_reason"]) == (0, "idle"), told.err
    run = Run.objects.get()
    assert (
        not Turn.objects.filter(run=run)
        .exclude(outcome__in=["worked", "nothing", "skipped"])
        .exists()
    )
    told_reasons = {reason for reason in reasons(run) if reason.startswith("unusable_")}
    assert told_reasons == {
        "unusable_html",
        "unusable_empty",
        "unusable_no_usage",
        "unusable_unparsable",
        "unusable_truncated",
        "unusable_refused",
        "unusable_blank",
        "unusable_prose",
        "unusable_ambiguous",
        "unusable_tool",
    }
    texts = list(Message.objects.values_list("text", flat=True))
    assert {len(text.split()) for text in texts} == {40}
    assert {400, 422} & set(api.ledger.statuses) == set()
    assert told.summary["proposals"] >= 1


def _asks_for(field: str) -> Any:
    return lambda asked: field in (asked.schema or {}).get("properties", {})


def test_prompt_that_is_too_long_is_shortened_once(settings: Settings) -> None:
    quick_world(agents=("ash",), daily_posts=1)
    Agent.objects.update(private_instructions="x" * 16_000)
    small = [replace(model, context_tokens=7_500) for model in (HAIKU, SONNET)]
    with AnthropicApi(mind=talkative, models=small) as server:
        use(settings, server)
        told = play()

    assert told.summary["end_reason"] == "idle"
    first, second = LlmCall.objects.filter(turn=1).order_by("number")
    assert (first.error.split(":")[0], first.attempt) == ("failed", 1)
    assert (second.error, second.attempt) == ("", 2)
    assert server.ledger.statuses[400] == LlmCall.objects.filter(attempt=1).count()


def test_prompt_that_is_never_taken_is_counted(settings: Settings) -> None:
    quick_world(agents=("ash",), daily_posts=1)
    small = [replace(model, context_tokens=10) for model in (HAIKU, SONNET)]
    with AnthropicApi(mind=talkative, models=small) as server:
        use(settings, server)
        told = play("--max-turns", "2")

    assert reasons(Run.objects.get())["unusable_not_taken"] >= 1
    assert told.code in {0, 1}


def test_look_ups_go_through_the_gate_and_are_each_a_call(api: AnthropicApi) -> None:
    quick_world(agents=("ash", "elm"), daily_posts=1)
    api.mind = _curious

    told = play()

    assert told.summary["end_reason"] == "idle"
    rounds = [e.body for e in api.ledger.exchanges if e.body and len(e.body["messages"]) == 3]
    assert rounds
    profile, hits, nothing = (block["content"] for block in rounds[0]["messages"][2]["content"])
    assert profile.startswith("<profile of=")
    assert nothing.startswith("Unavailable.")
    assert "<message by=" in hits
    asked_with_tools = [e for e in api.ledger.exchanges if e.body and "tools" in e.body]
    assert LlmCall.objects.filter(phase="reply").count() == len(asked_with_tools)


def _curious(asked: Asked) -> Decision:
    """Look up before each reply: the other side, a word of the thread, and somebody unknown."""
    if not asked.tools or len(asked.body["messages"]) > 1:
        return talkative(asked)
    shown = "\n".join(block["text"] for block in asked.body["messages"][0]["content"])
    other = "Elm" if 'name="Ash"' in asked.system else "Ash"
    word = next(line for line in shown.splitlines()[5:] if line.startswith("| ")).split()[1]
    calls = (
        minds.Call(name="read_profile", input={"name": other}),
        minds.Call(name="search_messages", input={"words": word}),
        minds.Call(name="read_profile", input={"name": "Nobody"}),
    )
    return minds.use(*calls)(asked)


def test_models_are_of_the_agent_the_run_or_the_settings(
    api: AnthropicApi, settings: Settings
) -> None:
    settings.SIM_LLM = "anthropic"
    settings.SIM_ANTHROPIC_LARGE_MODEL = "claude-opus-5-5"
    quick_world(agents=("ash", "elm"), daily_posts=1)
    Agent.objects.filter(slug="elm").update(large_model=SONNET.id)

    told = runsim("--until-idle", "--json", "--small-model", "claude-haiku-4-5-20251001")

    assert told.code == 0, told.err
    asked = set(LlmCall.objects.values_list("agent__slug", "phase", "model"))
    assert {model for _, phase, model in asked if phase == "scan"} == {"claude-haiku-4-5-20251001"}
    assert ("ash", "post", "claude-opus-5-5") in asked
    assert ("elm", "post", SONNET.id) in asked


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--clock", "virtual"), "A model takes real time: leave out --clock virtual."),
        (("--large-model", "no such"), '--large-model is "no such": it must be 1 to 100 letters'),
        (
            ("--llm", "offline", "--small-model", "x"),
            "The offline LLM is no model of a choice: leave out --small-model.",
        ),
    ],
)
def test_wrong_use_is_refused_and_writes_nothing(
    api: AnthropicApi, words: tuple[str, ...], sentence: str
) -> None:
    quick_world()

    told = play(*words)

    assert told.code == 2
    assert sentence in told.err
    assert not Run.objects.exists()
