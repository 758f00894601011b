"""Recorded runs once more: what the rehearsed API said is said again, and nobody is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from cohorts.models import Agent
from engine.models import CallText, LlmCall, Message, Run, Simulation
from engine.store.database import recorded_calls
from tests.anthropic_api import steps
from tests.anthropic_api.server import KEY, AnthropicApi
from tests.backends.talkative import talkative
from tests.backends.worlds import TEN, give_texts, play, quick_world, reasons, use
from tests.doors import command, runsim

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

    from tests.doors import Told

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def api(settings: Settings) -> Iterator[AnthropicApi]:
    with AnthropicApi(mind=talkative) as server:
        use(settings, server)
        yield server


def replay(run: Run, *words: str) -> Told:
    return runsim("--fresh", "--llm", f"replay:{run.pk}", "--json", *words)


def said(run: Run) -> list[tuple[object, ...]]:
    """Return the messages of a run, by what does not change with the numbers of rows."""
    rows = Message.objects.filter(run=run).order_by("seq")
    columns = ("seq", "channel__name", "root__seq", "ordinal", "author__slug", "text")
    return list(rows.values_list(*columns))


def test_replay_says_the_same_and_asks_nobody(api: AnthropicApi) -> None:
    quick_world(agents=TEN, daily_posts=2)
    give_texts(TEN)
    play("--concurrent-turns", "1")
    run = Run.objects.get()
    n_asked = len(api.ledger.exchanges)

    told = replay(run)

    assert told.code == 0, told.err
    again = Run.objects.latest("pk")
    assert len(said(run)) > 20
    assert said(again) == said(run)
    assert len(api.ledger.exchanges) == n_asked
    assert told.summary["cost_usd"] == 0
    columns = ("turn", "number", "phase", "model", "input_tokens", "cache_read_tokens")
    calls = LlmCall.objects.order_by("turn", "number")
    assert list(calls.filter(run=again).values_list(*columns)) == list(
        calls.filter(run=run).values_list(*columns)
    )
    assert not CallText.objects.filter(call__run=again).exists()


def test_last_answer_of_a_hand_in_comes_when_its_group_was_taken(api: AnthropicApi) -> None:
    """Others saw what came of it only then."""
    quick_world(agents=("ash", "elm"), daily_posts=1)
    play("--concurrent-turns", "1")
    run = Run.objects.get()
    texts = list(CallText.objects.order_by("call__turn", "call__number"))

    recorded = recorded_calls(run.pk)

    assert run.started_at is not None
    for call, text in zip(recorded, texts, strict=True):
        assert text.handed_in_at is not None
        taken_after = (text.handed_in_at - run.started_at).total_seconds()
        assert call.after_seconds == pytest.approx(taken_after, abs=1e-5)
        assert taken_after > (text.call.started_at - run.started_at).total_seconds()


@pytest.mark.usefixtures("hurried")
def test_what_failed_fails_again(api: AnthropicApi) -> None:
    """Prose, a refusal, a page, cut JSON, limits: counted alike, and no message is other."""
    quick_world(agents=TEN, daily_posts=1)
    names = ("prose", "refusal", "html", "cut_json", "no_usage", "truncated")
    api.script.add(*[steps.FAULTS[name] for name in names], steps.rate_limited("0.05"))
    play("--concurrent-turns", "1")
    run = Run.objects.get()

    told = replay(run)

    assert told.code == 0, told.err
    again = Run.objects.latest("pk")
    assert sum(n for reason, n in reasons(run).items() if reason.startswith("unusable_")) >= 6
    assert reasons(again) == reasons(run)
    assert said(again) == said(run)
    errors = LlmCall.objects.filter(run=again).values_list("error", flat=True)
    assert any(error.startswith("transient: ") for error in errors)


def test_what_was_asked_and_answered_is_kept_word_for_word(api: AnthropicApi) -> None:
    quick_world(agents=("ash",), daily_posts=1)
    Agent.objects.update(private_instructions="Never name the price of a barrel.")

    play()

    text = CallText.objects.order_by("pk").first()
    assert text is not None
    shown = json.loads(text.asked)
    assert any("Never name the price of a barrel." in part for part in shown)
    assert [block["type"] for block in json.loads(text.said)] == ["thinking", "text"]
    assert KEY not in text.asked + text.said
    assert CallText.objects.count() == LlmCall.objects.count()


def test_nothing_is_kept_where_it_is_not_to_be(api: AnthropicApi, settings: Settings) -> None:
    settings.SIM_RECORD_CALLS = False
    quick_world(agents=("ash",), daily_posts=1)
    play()
    run = Run.objects.get()
    n_calls = LlmCall.objects.count()

    told = replay(run)

    assert n_calls > 0
    assert told.code == 2
    assert told.err.startswith(f"CommandError: Of {n_calls} calls of run {run.pk} 0 are recorded")


def test_changed_agent_is_told_by_its_words(api: AnthropicApi) -> None:
    quick_world(agents=("ash", "elm"), daily_posts=1)
    play("--concurrent-turns", "1")
    run = Run.objects.get()
    elm = Agent.objects.get(slug="elm")
    Agent.objects.filter(pk=elm.pk).update(public_profile="House Elm has moved to the coast.")

    told = replay(run)

    assert told.code == 1
    again = Run.objects.latest("pk")
    assert again.status == "failed"
    assert again.detail.startswith("In turn 1 ash is asked to post otherwise than in run ")
    assert f" in run {run.pk}: where turn 1 there was shown “| House Elm offers " in again.detail
    assert "it is now shown “| House Elm has moved to the coast.”" in again.detail


def test_more_turns_than_were_recorded_say_so(api: AnthropicApi) -> None:
    quick_world(agents=("ash", "elm"), daily_posts=2)
    play("--concurrent-turns", "1", "--max-turns", "3")
    run = Run.objects.get()

    told = replay(run, "--max-turns", "9", "--until-idle")

    assert told.code == 1
    assert f"run {run.pk}" in Run.objects.latest("pk").detail
    assert said(Run.objects.latest("pk"))[: len(said(run))] == said(run)


def test_offline_run_needs_no_replay() -> None:
    quick_world(agents=("ash",), daily_posts=1)
    runsim("--until-idle", "--clock", "virtual")
    run = Run.objects.get()

    told = replay(run)

    assert told.code == 2
    assert "the offline LLM answers alike for the same --seed." in told.err
    assert Run.objects.count() == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--llm", "replay:999"), "There is no run 999 to replay."),
        (("--llm", "replay:x"), "replay:x names no run: give its number, like replay:7."),
        (("--llm", "replay:"), "replay: names no run: give its number, like replay:7."),
        (
            ("--llm", "replay:1", "--max-usd", "1"),
            "A replay asks no model and costs nothing: leave out --max-usd.",
        ),
    ],
)
def test_replay_that_cannot_be_is_refused(words: tuple[str, ...], sentence: str) -> None:
    quick_world(agents=("ash",))

    told = runsim(*words)

    assert told.code == 2
    assert sentence in told.err
    assert not Run.objects.exists()


def test_texts_go_by_age_and_the_calls_stay(api: AnthropicApi) -> None:
    quick_world(agents=("ash",), daily_posts=1)
    play()
    old = Run.objects.get()
    LlmCall.objects.update(started_at=timezone.now() - timedelta(days=31))
    n_old = LlmCall.objects.count()
    runsim("--fresh", "--llm", "anthropic", "--until-idle")
    n_new = LlmCall.objects.count() - n_old

    trial = command("prunesim", "--dry-run")
    assert trial.out.startswith(f"The texts of {n_old} calls before ")
    assert CallText.objects.count() == n_old + n_new

    told = command("prunesim")

    assert told.out.strip().endswith(" are deleted.")
    assert CallText.objects.count() == n_new > 0
    assert LlmCall.objects.count() == n_old + n_new
    assert replay(old).code == 2


def test_texts_of_one_simulation_are_pruned(api: AnthropicApi) -> None:
    quick_world(agents=("ash",), daily_posts=1)
    play()
    quick_world("other", agents=("ash",), daily_posts=1)
    play("--simulation", "other")

    command("prunesim", "--simulation", "other", "--older-than", "0")

    left = CallText.objects.values_list("call__run__simulation__name", flat=True)
    assert set(left) == {"main"}
    assert Simulation.objects.count() == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--simulation", "nobody"), 'There is no simulation "nobody".'),
        (("--older-than", "-1"), "--older-than is -1: give a number of days from 0 to 36525."),
    ],
)
def test_pruning_that_names_nothing_is_refused(words: tuple[str, ...], sentence: str) -> None:
    told = command("prunesim", *words)

    assert (told.code, told.err) == (2, f"CommandError: {sentence}\n")
