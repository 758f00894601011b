"""`runsim --estimate`: what a run would take, told without a trace."""

from __future__ import annotations

import pytest
from django.apps import apps

from cohorts.models import Agent
from engine.core.prices import NANO
from engine.models import LlmCall, Simulation, Turn
from tests.doors import make_world, runsim

pytestmark = pytest.mark.django_db(transaction=True)

PAID = ("--estimate", "--llm", "anthropic", "--seed", "1")
LARGE = "claude-sonnet-4-5"


def everything() -> dict[str, int]:
    """Return the number of rows of every table of ours."""
    return {
        model._meta.label: model._default_manager.count()
        for app in ("cohorts", "engine")
        for model in apps.get_app_config(app).get_models()
    }


def test_estimate_tells_calls_tokens_and_money_and_writes_nothing() -> None:
    """Nor does it ask for a key."""
    make_world()
    before = everything()
    told = runsim(*PAID)
    assert (told.code, everything()) == (0, before)
    lines = told.out.splitlines()
    assert lines[0] == "The next run of main, by rehearsals in memory; nothing is stored or spent."
    assert [line.split()[0] for line in lines[2:6]] == ["calls", "tokens", "tokens", "cost"]
    low, likely, high = (float(amount.strip("$")) for amount in lines[5].split()[1:])
    assert 0 < low <= likely <= high <= 3 * low + 0.0003
    assert lines[7:] == [
        "This is until it is first idle; without --until-idle or a limit it goes on."
    ]


@pytest.mark.both_databases
def test_estimate_as_json_goes_on_from_where_the_simulation_stands() -> None:
    """Four turns have brought posts into the channel; their texts are read where they are stored."""
    make_world()
    assert runsim("--max-turns", "8", "--seed", "1", "--quiet").code == 0
    run_id = Turn.objects.values_list("run", flat=True)[0]
    LlmCall.objects.bulk_create(
        LlmCall(
            run_id=run_id,
            turn=1,
            number=number,
            agent_id=Turn.objects.values_list("agent", flat=True)[0],
            agent_version=1,
            phase="reply",
            model=LARGE,
            prompt_version="1",
            attempt=1,
            started_at=Turn.objects.values_list("selected_at", flat=True)[0],
            latency_seconds=1.0,
            input_tokens=50_000,
            output_tokens=5_000,
        )
        for number in range(100, 120)
    )
    told = runsim(*PAID, "--large-model", LARGE, "--json").summary
    assert told["from_history"]
    assert told["unpriced"] is None
    assert told["calls"]["low"] > 0
    assert told["cost"]["high"] > 225 * NANO // 1_000  # one reply at the history's size


@pytest.mark.parametrize("of", ["run", "agent"])
def test_estimate_of_an_unpriced_model_says_so(of: str) -> None:
    make_world(agents=("ash", "elm"))
    if of == "agent":
        Agent.objects.filter(slug="elm").update(small_model="claude-next")
    words = ("--small-model", "claude-next") if of == "run" else ()
    told = runsim(*PAID, "--max-turns", "2", *words)
    assert told.out.splitlines()[-1] == (
        "claude-next has no price: nobody knows what it would cost."
    )


def test_estimate_of_a_free_run_costs_nothing() -> None:
    make_world(agents=("ash", "elm"))
    told = runsim("--estimate", "--max-turns", "2")
    assert told.out.splitlines()[-1] == "It costs nothing: no model is asked."


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--simulation", "none"), 'There is no simulation "none" to estimate a run of'),
        (("--resume",), "leave out --fresh and --resume"),
        (("--fresh",), "leave out --fresh and --resume"),
        (("--max-turns", "0"), "--max-turns is 0"),
    ],
)
def test_estimate_that_makes_no_sense_is_refused(words: tuple[str, ...], sentence: str) -> None:
    make_world(agents=("ash",))
    told = runsim("--estimate", *words)
    assert told.code == 2
    assert sentence in told.err
    assert Simulation.objects.count() == 1
