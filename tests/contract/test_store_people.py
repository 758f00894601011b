"""What people do beside a store: revisions that cannot begin, channels that go, cohorts that move."""

from __future__ import annotations

from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from cohorts.models import Cohort, Membership, TopologyChange
from cohorts.rules import Topology
from engine.core.effects import ChannelChanged, Verdict
from engine.core.group import NewProposal, RefusedRevision
from engine.models import Channel, TopologySnapshot
from tests.contract.groups import at, closed, decision, group, message, post, thread
from tests.contract.site import commit, run

if TYPE_CHECKING:
    from tests.contract.site import DjangoSite, Site

database: Any = import_module("engine.store.database.store")
topology: Any = import_module("engine.store.database.topology")


def test_revision_that_cannot_begin_is_stored_with_its_proposal(site: Site) -> None:
    store = site.open_store()
    first = closed(thread(1, 2, 1), 2)
    other = closed(thread(3, 4, 3), 4)
    commit(
        store,
        group(
            1,
            messages=[
                post(1),
                message(2, author=2, root=1, ordinal=2),
                post(3, author=3),
                message(4, author=4, root=3, ordinal=2),
            ],
            threads=[first, other],
            decisions=[decision(first), decision(other)],
            proposals=[
                NewProposal(root=1, cycle=1, agents=(2, 1), summary_seq=2, at=at(2)),
                NewProposal(root=3, cycle=1, agents=(4, 3), summary_seq=4, at=at(4)),
            ],
        ),
    )
    for root in (1, 3):
        site.review(root=root, cycle=1, verdict=Verdict.REVISED)
    refused = RefusedRevision(root=1, cycle=1, reason="pair_taken")
    commit(store, group(2, refused_revisions=[refused]))
    assert (site.refused(1, 1), site.refused(3, 1)) == ("pair_taken", "")


@pytest.mark.django_db(transaction=True)
def test_note_about_a_channel_that_is_gone_is_told_and_goes(django_site: DjangoSite) -> None:
    store = django_site.open_store()
    kept = Channel.objects.create(pk=3, simulation=django_site.simulation, name="yard")
    Channel.objects.create(pk=4, simulation=django_site.simulation, name="gone").delete()
    first, second = run(store.read_mail())
    assert isinstance(first, ChannelChanged)
    assert isinstance(second, ChannelChanged)
    assert first.channel is not None
    assert (first.channel.id, second.channel) == (kept.pk, None)
    commit(store, group(1, notes=[second.note]))
    assert run(store.read_mail()) == (first,)


@pytest.mark.parametrize(("n_changes", "n_reads"), [(1, 2), (2, 3), (99, 5)])
@pytest.mark.django_db(transaction=True)
def test_gate_is_of_a_version_that_the_audit_knows(
    django_site: DjangoSite, monkeypatch: pytest.MonkeyPatch, n_changes: int, n_reads: int
) -> None:
    """Somebody changes a cohort between the look at the record and the reading of the gate."""
    cohorts = [Cohort.objects.create(name=f"c{number}") for number in range(5)]
    store = django_site.open_store()
    read: list[int] = []

    def changed_and_read(simulation: int, policy: str) -> Topology:
        if len(read) < n_changes:
            Membership.objects.create(cohort=cohorts[len(read)], agent_id=1)
        gate: Topology = load_gate(simulation, policy)
        read.append(gate.version)
        return gate

    load_gate = database.load_gate
    monkeypatch.setattr(database, "load_gate", changed_and_read)
    gate = run(store.load_gate())
    assert isinstance(gate, Topology)
    assert len(read) == n_reads
    assert gate.version == read[-1]
    assert len(gate.cohorts(1)) == min(n_changes, 5)
    # Under a storm the newest is taken as it is; the next look records it.
    known = TopologyChange.objects.filter(version=gate.version).exists()
    assert known == (n_changes < 5)


@pytest.mark.django_db(transaction=True)
def test_gate_is_of_one_moment(django_site: DjangoSite, monkeypatch: pytest.MonkeyPatch) -> None:
    cohort = Cohort.objects.create(name="alpha", created_by="Ada")
    read_version = topology.read_version

    def join() -> None:
        Membership.objects.create(cohort=cohort, agent_id=1)
        connection.close()

    def meanwhile() -> int:
        version: int = read_version()
        thread = Thread(target=join)
        thread.start()
        thread.join()
        return version

    monkeypatch.setattr(topology, "read_version", meanwhile)
    gate = topology.load_gate(django_site.simulation.pk, "open")
    assert len(gate.cohorts(1)) == 0
    assert gate.version < read_version()
    monkeypatch.undo()
    gate = topology.load_gate(django_site.simulation.pk, "open")
    assert (len(gate.cohorts(1)), gate.version) == (1, read_version())


@pytest.mark.django_db(transaction=True)
def test_roster_that_leaves_no_member_refuses_the_gate_of_the_same_version(
    django_site: DjangoSite,
) -> None:
    cohort = Cohort.objects.create(name="alpha", created_by="Ada")
    Membership.objects.create(cohort=cohort, agent_id=1)
    simulation = django_site.simulation
    simulation.roster_chosen = True
    simulation.save()
    member, _ = (simulation.roster_entries.create(agent_id=agent) for agent in (1, 2))
    store = django_site.open_store()
    gate = database.load_gate(simulation.pk, "isolated")
    commit(store, group(1, adopted=gate))
    assert TopologySnapshot.objects.get().verdict == "in_force"
    member.delete()
    refused = database.load_gate(simulation.pk, "isolated")
    assert (refused.version, refused.verdict) == (gate.version, "refused")
    commit(store, group(2, adopted=refused))
    row = TopologySnapshot.objects.get()
    assert (row.version, row.verdict, row.at) == (gate.version, "refused", at(1))
    commit(store, group(3, adopted=gate))
    assert TopologySnapshot.objects.get().verdict == "refused"
