"""The gate over a real database: few queries, always the newest good topology."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
from django.db import OperationalError, connection

from cohorts.gate import CachedGate, load_topology, read_version
from cohorts.models import Agent, Cohort, Membership, TopologyVersion
from cohorts.rules import Policy, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from django.test.utils import CaptureQueriesContext

    CountQueries = Callable[[int], AbstractContextManager[CaptureQueriesContext]]

pytestmark = pytest.mark.django_db(transaction=True)


def make_world() -> tuple[Agent, Agent, Agent]:
    """Alder and birch in the cohort `field`, cedar in none."""
    alder, birch, cedar = (
        Agent.objects.create(slug=slug, bot_name=slug) for slug in ("alder", "birch", "cedar")
    )
    field = Cohort.objects.create(name="field", created_by="tester")
    for agent in (alder, birch):
        Membership.objects.create(agent=agent, cohort=field, added_by="tester")
    return alder, birch, cedar


def test_load_topology_takes_three_queries(django_assert_num_queries: CountQueries) -> None:
    alder, birch, cedar = make_world()
    with django_assert_num_queries(3):
        topology = load_topology(policy=Policy.ISOLATED)
    assert topology.version == read_version()
    assert topology.permits(alder.pk, birch.pk)
    assert not topology.permits(alder.pk, cedar.pk)
    assert topology.shared(alder.pk, birch.pk) == ("field",)
    assert topology.running == {alder.pk, birch.pk, cedar.pk}


def test_load_topology_counts_only_active_agents_as_running() -> None:
    alder, birch, cedar = make_world()
    Agent.objects.filter(pk=birch.pk).update(status="paused")
    assert load_topology(policy=Policy.OPEN).running == {alder.pk, cedar.pk}
    chosen = load_topology(policy=Policy.OPEN, running=[alder.pk, birch.pk])
    assert chosen.running == {alder.pk}
    assert chosen.agents == {alder.pk, birch.pk, cedar.pk}


def test_gate_is_asked_without_a_query_when_warm(
    django_assert_num_queries: CountQueries,
) -> None:
    alder, birch, cedar = make_world()
    gate = CachedGate(policy=Policy.ISOLATED)
    with django_assert_num_queries(0):
        assert gate.topology.permits(alder.pk, birch.pk)
        assert not gate.topology.decide(cedar.pk, author=alder.pk, is_bot=True).permitted
    with django_assert_num_queries(1):
        assert gate.refresh() is False
    Membership.objects.filter(agent=birch).delete()
    with django_assert_num_queries(3):
        assert gate.refresh() is True
    assert not gate.topology.permits(alder.pk, birch.pk)


def test_gate_reads_roster_and_private_channels_anew_at_each_load() -> None:
    alder, birch, _ = make_world()
    running, members_of = [alder.pk], {7: [alder.pk]}
    gate = CachedGate(policy=Policy.OPEN, running=lambda: running, members_of=lambda: members_of)
    assert gate.topology.running == {alder.pk}
    running.append(birch.pk)
    members_of[8] = [birch.pk]
    Agent.objects.create(slug="dogwood", bot_name="dogwood")
    assert gate.refresh()
    assert gate.topology.running == {alder.pk, birch.pk}
    assert gate.topology.members_of == {7: {alder.pk}, 8: {birch.pk}}


def test_gate_keeps_the_last_good_topology_when_the_database_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    alder, birch, cedar = make_world()
    gate = CachedGate(policy=Policy.ISOLATED)
    good = gate.topology
    Membership.objects.filter(agent=birch).delete()

    def fail(*_: object) -> None:
        raise OperationalError("the server is gone")

    with connection.execute_wrapper(fail):
        assert gate.refresh() is False
    assert gate.topology is good
    assert gate.topology.permits(alder.pk, birch.pk)
    assert not gate.topology.permits(alder.pk, cedar.pk)
    assert f"version {good.version} stays in force" in caplog.text
    assert gate.refresh() is True
    assert not gate.topology.permits(alder.pk, birch.pk)


def test_refused_isolation_is_an_error_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    make_world()
    Membership.objects.all().delete()
    topology = load_topology(policy=Policy.ISOLATED)
    assert topology.verdict is Verdict.REFUSED
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "treated as off" in caplog.text


def test_agents_that_isolation_silences_are_named_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    make_world()
    load_topology(policy=Policy.OPEN)
    assert caplog.records == []
    load_topology(policy=Policy.ISOLATED)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert caplog.text.rstrip().endswith("in no cohort: cedar.")


def test_gate_works_before_the_first_change_and_after_a_flush() -> None:
    TopologyVersion.objects.all().delete()
    gate = CachedGate(policy=Policy.OPEN)
    assert (gate.topology.version, gate.refresh()) == (0, False)
    make_world()
    assert gate.refresh()
