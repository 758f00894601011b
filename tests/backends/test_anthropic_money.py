"""What whole runs of the real client cost: the bill, the caps, the forecast."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from threading import Event
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
from tests.doors import LONG_PATIENCE_SECONDS, Told, managing, runsim, told

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

    from tests.anthropic_api.minds import Asked

pytestmark = pytest.mark.django_db(transaction=True)

CENT = 10**7
TWENTY = (*TEN, *(f"{slug}x" for slug in TEN))
#: Faults that take too long, or say less than was billed.
MISLEADING = {"rate_limited_hour", "sparse_usage"}
#: Answers that are billed, and of which no usage arrives.
UNHEARD = (steps.unsent(), steps.cut_body(), steps.cut_json(), steps.without("usage"))
#: Answers that are not billed.
REFUSED = (steps.dropped(), steps.rate_limited(), steps.bad_gateway(), steps.overloaded())


@pytest.fixture
def api(settings: Settings) -> Iterator[AnthropicApi]:
    with AnthropicApi(mind=talkative) as server:
        use(settings, server)
        yield server


def spent() -> int:
    return LlmCall.objects.aggregate(cost=Sum("cost_nano_usd"))["cost"] or 0


@pytest.mark.usefixtures("hurried")
def test_bad_weather_breaks_no_law_and_no_bill(settings: Settings, tmp_path: Path) -> None:
    """What arrived costs what the server billed, to the nano. Of what did not arrive whole nobody
    knows whether it was billed: it is booked at its estimate, which is never under the bill."""
    rates = {name: 0.01 for name in steps.FAULTS if name not in MISLEADING}
    quick_world(agents=TEN, daily_posts=1)
    with AnthropicApi(mind=talkative, weather=Weather(seed=3, rates=rates)) as server:
        use(settings, server)
        server.script.add(*UNHEARD, *[steps.answers()] * 3, *REFUSED)
        told = play("--concurrent-turns", "5", "--max-minutes", "1")

    assert told.code == 0, told.err
    assert told.summary["messages"] > 3
    assert {0, 200, 429, 502, 529} <= set(server.ledger.statuses)
    calls = LlmCall.objects.all()
    unknown = calls.filter(input_tokens=0, output_tokens=0, cost_nano_usd__gt=0)
    heard = [one for one in server.ledger.billed if one.delivered and _tells(one.answer)]
    unheard = sum(one.nano_usd for one in server.ledger.billed if one not in heard)
    booked = unknown.aggregate(cost=Sum("cost_nano_usd"))["cost"]
    assert all(call.cost_nano_usd == call.reserved_nano_usd for call in unknown)
    assert spent() - booked == sum(one.nano_usd for one in heard) > 0
    assert booked >= unheard > 0
    assert round(told.summary["cost_usd"] * NANO) == spent() > server.ledger.total_nano_usd()
    keeps_every_law(told.summary["run"], tmp_path / "run")


def keeps_every_law(run: int, folder: Path) -> None:
    out = StringIO()
    call_command("exportrun", str(run), "--to", str(folder), stdout=StringIO())
    call_command("checkexport", str(folder), stdout=out)
    assert out.getvalue().startswith("every law kept")


def _tells(answer: object) -> bool:
    return isinstance(answer, dict) and "usage" in answer


class Meeting:
    """Is full when so many requests have come; the server asks it about each."""

    def __init__(self, n_wanted: int) -> None:
        self.is_full = Event()
        self._n_wanted = n_wanted
        self._n_come = 0

    def comes(self, _asked: Asked) -> bool:
        self._n_come += 1
        if self._n_come >= self._n_wanted:
            self.is_full.set()
        return True


@pytest.mark.usefixtures("hurried")
def test_twenty_agents_at_five_slots_never_overshoot(api: AnthropicApi, *, is_soak: bool) -> None:
    """The first answers wait until five are promised; the last cents are too few for a call."""
    quick_world(agents=TWENTY, concurrent_turns=5, daily_posts=100)
    met = Meeting(5)
    waiting = steps.Waits(seconds=30, then=steps.Answers(), until=met.is_full)
    api.script.add(*[waiting] * 5, when=met.comes)

    told = play("--max-usd", "0.46")

    assert (told.code, told.summary["end_reason"]) == (4, "money_cap"), told.err
    assert met.is_full.is_set()
    assert api.ledger.most_at_once == 5
    assert spent() == api.ledger.total_nano_usd()
    assert 46 * CENT - 2 * dearest() < spent() <= 46 * CENT
    assert not LlmCall.objects.filter(state=LlmCall.State.RESERVED).exists()

    again = runsim("--resume", "--max-usd", "0.50", "--json")

    assert (again.code, again.summary["end_reason"]) == (4, "money_cap"), again.err
    assert 50 * CENT - 2 * dearest() < spent() <= 50 * CENT
    assert spent() == api.ledger.total_nano_usd()
    if is_soak:
        _two_processes_share_a_day(api)


def dearest() -> int:
    most: int = LlmCall.objects.aggregate(most=Max("reserved_nano_usd"))["most"]
    return most


def _two_processes_share_a_day(api: AnthropicApi) -> None:
    call_command("simctl", "day", "--max-usd", "1.40")
    for name in ("east", "west"):
        quick_world(name, agents=TWENTY, concurrent_turns=5, daily_posts=100)
    access = {"SIM_ANTHROPIC_API_KEY": KEY, "SIM_ANTHROPIC_BASE_URL": api.url}
    words = ("runsim", "--llm", "anthropic", "--quiet", "--simulation")
    with managing(*words, "east", **access) as east, managing(*words, "west", **access) as west:
        ends: list[Told] = [
            told(process, seconds=LONG_PATIENCE_SECONDS) for process in (east, west)
        ]

    assert [end.code for end in ends] == [4, 4], ends
    assert set(Run.objects.exclude(simulation__name="main").values_list("detail", flat=True))
    assert 140 * CENT - 2 * dearest() < spent() <= 140 * CENT
    assert spent() == api.ledger.total_nano_usd()


def test_actual_lies_inside_of_the_estimate(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, *, is_soak: bool
) -> None:
    """The estimate is of rehearsals with the offline LLM; the same mind answers over the wire. One
    slot, so that the same agents say the same at every try."""
    agents, n_seeds = (TEN, 20) if is_soak else (TEN[:4], 1)
    quick_world(agents=agents, daily_posts=1, concurrent_turns=1)
    give_texts(agents)
    estimate = play("--estimate").summary
    monkeypatch.setattr("engine.build.AnthropicLlm", ToldLlm)
    seeds = range(100, 100 + n_seeds)
    taken = [play_as_offline(settings, seed) for seed in seeds]

    for name in ("calls", "input_tokens", "output_tokens", "cost"):
        low, high = (estimate[name][bound] for bound in ("low", "high"))
        amounts = [one[name] for one in taken]
        assert high <= 3 * low + 3
        n_inside = sum(low <= amount <= high for amount in amounts)
        assert n_inside >= max(1, n_seeds - 1), (name, low, high, amounts)


def play_as_offline(settings: Settings, seed: int) -> dict[str, int]:
    """Play a run in an empty world, and return what it took."""
    with AnthropicApi(mind=as_offline(seed)) as server:
        use(settings, server)
        told = play("--fresh", "--seed", str(seed))
    assert (told.code, told.summary["end_reason"]) == (0, "idle"), told.err
    calls = LlmCall.objects.filter(run=told.summary["run"])
    kinds = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
    sums = calls.aggregate(**{kind: Sum(kind) for kind in kinds}, cost=Sum("cost_nano_usd"))
    assert sums["cost"] == server.ledger.total_nano_usd()
    return {
        "calls": calls.count(),
        "input_tokens": sum(sums[kind] for kind in kinds[:3]),
        "output_tokens": sums["output_tokens"],
        "cost": sums["cost"],
    }
