"""Rows of a small world for the tests of the admin's pages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import TYPE_CHECKING

from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from cohorts import operations
from cohorts.models import Agent
from engine.models import (
    Channel,
    Decision,
    LlmCall,
    Memory,
    Message,
    Proposal,
    Run,
    Simulation,
    Thread,
    TopologySnapshot,
    Turn,
)

if TYPE_CHECKING:
    from django.test import Client

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOSTILE = (
    "<script>alert(1)</script><form action='/admin/logout/'><input name=q></form>"
    "<style>body{display:none}</style><b style='x' id='q' onclick='y'>b</b>"
    "![i](http://evil.example/i.png) [j](javascript:alert(1)) [r](/admin/auth/user/1/delete/)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A simulation `main` with one public channel, its two agents, and a run that ended."""

    simulation: Simulation
    channel: Channel
    ada: Agent
    bob: Agent
    run: Run


def make_rows() -> Rows:
    """Return a world in which nobody has said anything yet."""
    ada = Agent(slug="ada-lab", bot_name="AdaBot", represents="Ada's lab")
    bob = Agent(slug="bob-lab", bot_name="BobBot", represents="Bob's lab")
    operations.save_agents([ada, bob], who="setup")
    simulation = Simulation.objects.create(name="main")
    channel = Channel.objects.create(simulation=simulation, name="general", topic="All of it")
    run = Run.objects.create(
        simulation=simulation,
        status=Run.Status.STOPPED,
        end_reason=Run.EndReason.STOPPED,
        started_by="root",
        started_at=NOON,
        finished_at=NOON + timedelta(seconds=95),
        configuration={"llm": "offline", "daily_posts": 3, "max_nano_usd": 2_500_000_000},
    )
    return Rows(simulation=simulation, channel=channel, ada=ada, bob=bob, run=run)


def say(
    rows: Rows, seq: int, text: str, *, root: Message | None = None, ordinal: int = 1
) -> Message:
    """Store an agent's message: roots and odd ordinals are Ada's."""
    return Message.objects.create(
        simulation=rows.simulation,
        channel=rows.channel,
        seq=seq,
        root=root,
        ordinal=ordinal,
        author=rows.ada if ordinal % 2 else rows.bob,
        is_bot=True,
        text=text,
        visibility=rows.channel.visibility,
        written_at=NOON + timedelta(seconds=seq),
        committed_at=NOON + timedelta(seconds=seq),
        run=rows.run,
        turn=seq,
    )


def talk(rows: Rows, seq: int, text: str = "hello") -> Proposal:
    """Store a closed thread of three messages from `seq` on, with its pending proposal."""
    root = say(rows, seq, f"{text} root {seq}")
    say(rows, seq + 1, f"{text} answer {seq}", root=root, ordinal=2)
    summary = say(rows, seq + 2, f"{text} summary {seq}", root=root, ordinal=3)
    cycle = {
        "root_seq": seq,
        "opener": rows.bob,
        "partner": rows.ada,
        "opened_seq": seq + 1,
        "opened_at": NOON,
        "topology_version": 4,
        "shared_cohorts": ["makers"],
    }
    thread = Thread.objects.create(
        **cycle,
        root=root,
        simulation=rows.simulation,
        channel=rows.channel,
        low=rows.ada.pk,
        high=rows.bob.pk,
        state=Thread.State.CLOSED,
        outcome="proposal",
        summary_seq=summary.seq,
        owed_since=NOON,
        closed_seq=seq + 2,
        closed_at=NOON,
    )
    Decision.objects.create(
        **cycle,
        simulation=rows.simulation,
        thread=thread,
        run=rows.run,
        outcome="proposal",
        seq=seq + 2,
        at=NOON,
    )
    return Proposal.objects.create(
        simulation=rows.simulation,
        thread=thread,
        cycle=1,
        proposer=rows.ada,
        confirmer=rows.bob,
        summary=summary,
        proposed_at=NOON,
    )


def take_turn(rows: Rows, number: int, *, agent: Agent | None = None) -> None:
    """Store a turn of Ada's, or of another, with one call."""
    agent = agent or rows.ada
    Turn.objects.create(
        simulation=rows.simulation,
        run=rows.run,
        number=number,
        agent=agent,
        agent_version=1,
        selected_at=NOON,
        waited_seconds=number,
        wait_bound_seconds=60,
        finished_at=NOON,
        outcome="worked",
        llm_calls=1,
        committed=1,
        gate_filtered=2,
        rejected={"pair_taken": 1},
    )
    LlmCall.objects.create(
        run=rows.run,
        turn=number,
        number=1,
        agent=agent,
        agent_version=1,
        phase="scan",
        model="offline",
        prompt_version="1",
        attempt=1,
        started_at=NOON,
        latency_seconds=0.25,
        cost_nano_usd=1_500_000,
    )


def remember(rows: Rows, text: str, *, version: int = 1, agent: Agent | None = None) -> Memory:
    """Store a version of Ada's, or of another agent's, public memory."""
    return Memory.objects.create(
        simulation=rows.simulation,
        agent=agent or rows.ada,
        version=version,
        text=text,
        written_at=NOON,
    )


def see_topology(rows: Rows, version: int) -> None:
    """Store the cohorts that the run went by."""
    TopologySnapshot.objects.create(
        run=rows.run,
        version=version,
        at=NOON,
        policy="open",
        verdict="in_force",
        cohorts={"makers": ["ada-lab", "bob-lab"], "crowd": [f"a{n}" for n in range(60)]},
    )


def count_queries(client: Client, page: str) -> int:
    """Return how many queries a page takes."""
    with CaptureQueriesContext(connection) as queries:
        assert client.get(page).status_code == 200
    return len(queries)


def person_with(client: Client, *codenames: str) -> Client:
    """Log somebody in who has these permissions and no more."""
    user = User.objects.create(username="somebody", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client.force_login(user)
    return client


def list_url(name: str) -> str:
    return reverse(f"admin:engine_{name}_changelist")


def change_url(row: Proposal | Run | Memory | Message) -> str:
    return reverse(f"admin:engine_{row._meta.model_name}_change", args=[row.pk])


def review_url(proposal: Proposal) -> str:
    return reverse("admin:engine_proposal_review", args=[proposal.pk])


def page_of(client: Client, url: str, data: dict[str, object] | None = None) -> str:
    """Return the page that a GET, or a POST of data, leads to."""
    response = client.get(url) if data is None else client.post(url, data, follow=True)
    assert response.status_code == 200
    return response.content.decode()


def hidden_field(page: str, name: str) -> str:
    """Return what a page sends along in a hidden field."""
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found is not None
    return unescape(found[1])


def say_yes(client: Client, question: str) -> str:
    """Tick all that a question about who deals with whom wants, say yes; return what follows."""
    ticks = re.findall(r'name="yes" value="([^"]*)"', question)
    form = {"asked": hidden_field(question, "asked"), "yes": [unescape(tick) for tick in ticks]}
    page = client.post(reverse("admin:engine_topology_apply"), form, follow=True)
    assert page.status_code == 200
    return page.content.decode()
