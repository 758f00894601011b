"""What whole runs of the real client cost: the bill, the caps, the forecast."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from django.core.management import call_command
from django.db.models import Max, Sum

from engine.core.prices import NANO
from engine.models import LlmCall, Run
from tests.anthropic_api import steps
from tests.anthropic_api.script import Weather
from tests.anthropic_api.server import KEY, AnthropicApi
from tests.backends.as_offline import ToldLlm, as_offline
from tests.backends.talkative import talkative
from tests.backends.worlds import TEN, give_texts, play, quick_world, use
from tests.doors import Told, managing, runsim, told

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

pytestmark = pytest.mark.django_db(transaction=True)

CENT = 10**7
TWENTY = (*TEN, *(f"{slug}x" for slug in TEN))
#: Faults after which nobody can know what was billed: no usage arrives.
UNTOLD = ("dropped", "unsent", "cut_body", "cut_json", "no_usage", "html", "other_json")
#: Faults that cost nothing, or say what they cost.
TOLD = ("overloaded", "rate_limited", "server_error", "refusal", "prose", "truncated", "empty")


@pytest.fixture
def api(settings: Settings) -> Iterator[AnthropicApi]:
    with AnthropicApi(mind=talkative) as server:
        use(settings, server)
        yield server


def spent() -> int:
    return LlmCall.objects.aggregate(cost=Sum("cost_nano_usd"))["cost"] or 0


def test_bill_of_a_run_in_bad_weather_is_known_to_the_nano(settings: Settings) -> None:
    """What arrived costs what the server billed. Of what did not arrive whole, billed or not,
    nobody knows the price: it is booked at its estimate, which is never under the bill."""
    weather = Weather(seed=3, rates=dict.fromkeys((*UNTOLD, *TOLD), 0.02))
    quick_world(agents=TEN, daily_posts=1)
    with AnthropicApi(mind=talkative, weather=weather) as server:
        use(settings, server)
        told = play("--concurrent-turns", "5", "--max-minutes", "1")

    assert told.code == 0, told.err
    calls = LlmCall.objects.all()
    unknown = calls.filter(input_tokens=0, output_tokens=0, cost_nano_usd__gt=0)
    heard = [one for one in server.ledger.billed if one.delivered and _tells(one.answer)]
    unheard = [one for one in server.ledger.billed if one not in heard]
    assert len(unheard) > 2
    assert unknown.count() > len(unheard)  # of these nobody billed some
    assert all(call.cost_nano_usd == call.reserved_nano_usd for call in unknown)
    booked = unknown.aggregate(cost=Sum("cost_nano_usd"))["cost"]
    assert spent() - booked == sum(one.nano_usd for one in heard) > 0
    assert booked >= sum(one.nano_usd for one in unheard) > 0
    assert round(told.summary["cost_usd"] * NANO) == spent() >= server.ledger.total_nano_usd()


def _tells(answer: object) -> bool:
    return isinstance(answer, dict) and "usage" in answer


def test_twenty_agents_at_five_slots_never_overshoot(api: AnthropicApi, *, is_soak: bool) -> None:
    """Answers take a while, so that promises overlap; the last cents are too few for a call."""
    quick_world(agents=TWENTY, concurrent_turns=5, daily_posts=100)
    api.weather = Weather(seed=1, rates={"slow": 0.5})

    told = play("--max-usd", "0.20")

    assert (told.code, told.summary["end_reason"]) == (4, "money_cap"), told.err
    assert api.ledger.most_at_once > 3
    assert spent() == api.ledger.total_nano_usd()
    assert 20 * CENT - dearest() < spent() <= 20 * CENT
    assert not LlmCall.objects.filter(state=LlmCall.State.RESERVED).exists()

    again = runsim("--resume", "--max-usd", "0.25", "--json")

    assert (again.code, again.summary["end_reason"]) == (4, "money_cap"), again.err
    assert 25 * CENT - dearest() < spent() <= 25 * CENT
    assert spent() == api.ledger.total_nano_usd()
    if is_soak:
        _two_processes_share_a_day(api)


def dearest() -> int:
    most: int = LlmCall.objects.aggregate(most=Max("reserved_nano_usd"))["most"]
    return most


def _two_processes_share_a_day(api: AnthropicApi) -> None:
    call_command("simctl", "day", "--max-usd", "0.60")
    for name in ("east", "west"):
        quick_world(name, agents=TWENTY, concurrent_turns=5, daily_posts=100)
    access = {"SIM_ANTHROPIC_API_KEY": KEY, "SIM_ANTHROPIC_BASE_URL": api.url}
    words = ("runsim", "--llm", "anthropic", "--quiet", "--simulation")
    with managing(*words, "east", **access) as east, managing(*words, "west", **access) as west:
        ends: list[Told] = [told(process) for process in (east, west)]

    assert [end.code for end in ends] == [4, 4], ends
    assert set(Run.objects.exclude(simulation__name="main").values_list("detail", flat=True))
    assert 60 * CENT - dearest() < spent() <= 60 * CENT
    assert spent() == api.ledger.total_nano_usd()


def test_actual_lies_inside_of_the_estimate(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The estimate is of rehearsals with the offline LLM; the same mind answers over the wire."""
    quick_world(agents=TEN, daily_posts=1)
    give_texts(TEN)
    estimate = runsim("--llm", "anthropic", "--estimate", "--until-idle", "--seed", "5", "--json")
    monkeypatch.setattr("engine.build.AnthropicLlm", ToldLlm)
    with AnthropicApi(mind=as_offline) as server:
        use(settings, server)
        told = play()

    assert (told.code, told.summary["end_reason"]) == (0, "idle"), told.err
    assert spent() == server.ledger.total_nano_usd()
    assert steps.FAULTS
    tokens = LlmCall.objects.aggregate(
        given=Sum("input_tokens") + Sum("cache_read_tokens") + Sum("cache_write_tokens"),
        made=Sum("output_tokens"),
    )
    actual = {
        "calls": LlmCall.objects.count(),
        "input_tokens": tokens["given"],
        "output_tokens": tokens["made"],
        "cost": spent(),
    }
    print(estimate.summary, actual)
    for name, amount in actual.items():
        told_before = estimate.summary[name]
        assert told_before["low"] <= amount <= told_before["high"], (name, told_before, amount)
