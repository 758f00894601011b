"""`manage.py explaingate ACTOR AUTHOR`: may one agent act on another, and by which rule."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from django.core.management import BaseCommand, CommandError

from cohorts.gate import load_topology
from cohorts.models import Agent
from cohorts.rules import Policy, Rule
from engine.models import Simulation

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Iterable

    from cohorts.rules import Decision

WRONG_USE: Final = 2


class Command(BaseCommand):
    """Answers from the memberships as they are now; needs no run."""

    help = "Say whether ACTOR may act on AUTHOR's public posts, by which rule and cohorts."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("actor", metavar="ACTOR", help="an agent id")
        parser.add_argument("author", metavar="AUTHOR", help="an agent id")
        parser.add_argument(
            "--simulation", metavar="NAME", help="with its policy and its roster running"
        )
        parser.add_argument("--policy", choices=[policy.value for policy in Policy])
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(
        self,
        *,
        actor: str,
        author: str,
        simulation: str | None,
        policy: str | None,
        json: bool,
        **_: object,
    ) -> None:
        stored = _simulation(simulation)
        in_force = Policy(policy or (Policy.OPEN if stored is None else stored.policy))
        topology = load_topology(policy=in_force, running=_running(stored))
        decision = topology.decide(_agent(actor), author=_agent(author), is_bot=True)
        render = _as_json if json else _as_text
        self.stdout.write(render(actor, author, in_force, decision))


def _simulation(name: str | None) -> Simulation | None:
    if name is None:
        return None
    try:
        return Simulation.objects.get(name=name)
    except Simulation.DoesNotExist as exc:
        raise CommandError(f'There is no simulation "{name}".', returncode=WRONG_USE) from exc


def _running(simulation: Simulation | None) -> Iterable[int] | None:
    """Return the agents of a chosen roster; None for all active ones."""
    if simulation is None or not simulation.roster_chosen:
        return None
    return list(simulation.roster_entries.values_list("agent_id", flat=True))


def _agent(slug: str) -> int:
    pk = Agent.objects.filter(slug=slug).values_list("pk", flat=True).first()
    if pk is None:
        text = f'There is no agent "{slug}": give the id of an agent as the admin lists it.'
        raise CommandError(text, returncode=WRONG_USE)
    return pk


def _as_json(actor: str, author: str, policy: Policy, decision: Decision) -> str:
    is_step = decision.rule is not Rule.PREFLIGHT
    return json.dumps(
        {
            "actor": actor,
            "author": author,
            "permitted": decision.permitted,
            "rule": int(decision.rule) if is_step else decision.rule.value,
            "reason": decision.reason,
            "shared_cohorts": list(decision.shared),
            "policy": policy.value,
        }
    )


def _as_text(actor: str, author: str, policy: Policy, decision: Decision) -> str:
    verb = "may" if decision.permitted else "may not"
    rule = decision.rule if decision.rule is Rule.PREFLIGHT else f"rule {decision.rule}"
    shared = ", ".join(decision.shared) or "none"
    return (
        f"{actor} {verb} act on {author} ({rule}). {decision.reason}\n"
        f"Shared cohorts: {shared}. Policy: {policy}."
    )
