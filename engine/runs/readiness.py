"""Whether a run of a simulation can work, and how fast it would be, in words, before it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from math import ceil
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import transaction
from django.db.models import Avg, F
from django.utils import timezone

from cohorts.foresight import silent
from cohorts.models import Agent
from cohorts.rules import Verdict
from engine.build import check_ready
from engine.core.days import local_day
from engine.core.prices import in_usd
from engine.core.settings import RefusedSetting
from engine.models import Run, Simulation, Turn, WorkerBeat
from engine.models.runs import LIVE
from engine.runs.queue import QUEUE, request
from engine.runs.refusals import RunRefused, check_priced
from engine.runs.room import no_room
from engine.runs.start import check_triggers
from engine.store.database import day_money
from engine.store.database.topology import load_gate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cohorts.rules import Topology
    from engine.core.config import RunConfig

#: A worker that was not heard of for so long is not there.
WORKER_SILENT: Final = timedelta(seconds=60)
TURNS_LOOKED_AT: Final = 200
#: A turn of a real model takes about so long, where none was seen yet; of a rehearsal next to nothing.
USUAL_TURN_SECONDS: Final = 20.0
REHEARSED_TURN_SECONDS: Final = 0.1
NAMED: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """Why a run could not work, what to know before it begins, and how fast it would be."""

    refusals: tuple[str, ...]
    notes: tuple[str, ...]
    pace: str


def readiness(simulation: Simulation, config: RunConfig) -> Readiness:
    """Look at all that a run would need; nothing is written."""
    topology = load_gate(simulation.pk, config.policy)
    return Readiness(
        refusals=tuple(_refusals(simulation, config, topology)),
        notes=tuple(_notes(simulation, topology)),
        pace=_pace(simulation, config, len(topology.running)),
    )


def waiting_sentence(simulation: Simulation) -> str:
    """Return the sentence about the run of a simulation that waits or goes on; "" if none does."""
    run = Run.objects.filter(simulation=simulation, status__in=("queued", *LIVE)).first()
    if run is None:
        return ""
    is_queued = run.status == Run.Status.QUEUED
    state = "waits for a worker" if is_queued else f"is {run.get_status_display().lower()}"
    return f"Run {run.pk} of {simulation.name} {state}: stop it first, or wait for its end."


def request_alone(simulation: Simulation, config: RunConfig, *, who: str) -> Run:
    """Ask for a run, as `request` does, unless another of the simulation waits or goes on.

    Of two who ask at the same moment, or one who clicks twice, one gets a run.
    """
    with transaction.atomic():
        Simulation.objects.select_for_update().get(pk=simulation.pk)
        if waiting := waiting_sentence(simulation):
            raise RunRefused(waiting)
        return request(simulation, config, who=who)


def is_worker_there() -> bool:
    """Tell whether a worker for runs was heard of lately, on any host."""
    since = timezone.now() - WORKER_SILENT
    return WorkerBeat.objects.filter(worker__endswith=f" {QUEUE}", at__gte=since).exists()


def _refusals(simulation: Simulation, config: RunConfig, topology: Topology) -> Iterator[str]:
    if waiting := waiting_sentence(simulation):
        yield waiting
    if not simulation.channels.filter(visibility="public").exists():
        yield "It has no public channel: add one on its page, so that there is a place to post."
    if not topology.running:
        yield (
            "No agent takes part: activate agents, or choose some for its roster."
            if Agent.objects.exists()
            else "There is no agent yet: make some, or load a roster."
        )
    checks: tuple[Callable[[], None], ...] = (
        check_triggers,
        lambda: check_ready(config),
        lambda: check_priced(simulation, config),
    )
    for check in checks:
        try:
            check()
        except (RunRefused, RefusedSetting) as refusal:
            yield str(refusal)
    if config.llm == "anthropic":
        day = day_money(local_day(timezone.now(), settings.TIME_ZONE))
        if day.cap is not None and day.spent + day.reserved >= day.cap:
            yield (
                f"The money of today is spent ({in_usd(day.cap)}): it would pause at once. Raise "
                "it under Money a day, or wait for midnight."
            )


def _notes(simulation: Simulation, topology: Topology) -> Iterator[str]:
    if topology.verdict is Verdict.REFUSED and topology.running:
        yield (
            "The cohorts would be ignored: the policy is isolated and nobody who takes part is in "
            "one."
        )
    quiet = silent(topology)
    if len(topology.running) == 1:
        yield "Only one agent takes part: it has nobody to talk with."
    elif quiet:
        slugs = Agent.objects.filter(pk__in=quiet[:NAMED]).values_list("slug", flat=True)
        more = f" and {len(quiet) - NAMED} more" if len(quiet) > NAMED else ""
        yield f"These hear nobody, whatever is said: {', '.join(slugs)}{more}."
    if not is_worker_there():
        yield (
            "No worker is there: the run waits until one is. The command make serve brings one; in "
            "production it is the service sim-worker."
        )
    if sentence := no_room(simulation):
        yield sentence


def _pace(simulation: Simulation, config: RunConfig, n_agents: int) -> str:
    """Return the capacity in words, by turns that were seen or by what is usual."""
    seconds, source = _turn_seconds(simulation, config)
    rounds = ceil(n_agents / config.concurrent_turns)
    agents = "1 agent" if n_agents == 1 else f"{n_agents:,} agents"
    slots = "1 slot" if config.concurrent_turns == 1 else f"{config.concurrent_turns} slots"
    return (
        f"{agents}, {slots}, turns of about {_words(seconds)} ({source}): everybody once per "
        f"{_words(rounds * seconds)}."
    )


def _turn_seconds(simulation: Simulation, config: RunConfig) -> tuple[float, str]:
    """Return how long a turn takes, in seconds, and where that is from."""
    last = Run.objects.filter(
        simulation=simulation, configuration__llm=config.llm, started_at__isnull=False
    ).last()
    if last is not None and config.clock == "real":
        turns = Turn.objects.filter(run=last, finished_at__isnull=False).order_by("-number")
        newest = turns.values("pk")[:TURNS_LOOKED_AT]
        taken = Turn.objects.filter(pk__in=newest).aggregate(
            mean=Avg(F("finished_at") - F("selected_at"))
        )["mean"]
        if taken is not None:
            return max(taken.total_seconds(), 0.01), f"as in run {last.pk}"
    if config.llm == "anthropic":
        return USUAL_TURN_SECONDS, "what is usual"
    return max(config.latency_seconds, REHEARSED_TURN_SECONDS), "rehearsed"


def _words(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.2g} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
