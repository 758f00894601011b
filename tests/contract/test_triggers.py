"""The topology version moves with every change of what the gate answers from, on each database."""

from __future__ import annotations

import threading
from io import StringIO
from typing import TYPE_CHECKING

import pytest
from django.core.management import CommandError, call_command
from django.core.management.sql import emit_post_migrate_signal
from django.db import connection, models, transaction

from cohorts.checks import check_triggers
from cohorts.gate import read_version
from cohorts.models import Agent, Cohort, Membership, TopologyVersion
from cohorts.triggers import install_triggers, missing_triggers, move_now
from engine.models import Channel, ChannelMember, Simulation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.django_db(transaction=True)
ON_POSTGRESQL = "postgresql"


@pytest.fixture(autouse=True)
def triggers_in_place() -> Iterator[None]:
    """Leave the triggers as they were: these tests drop them, and a flush does not bring them."""
    yield
    install_triggers()


def make_agents(n_agents: int) -> list[Agent]:
    return Agent.objects.bulk_create(
        Agent(slug=f"agent-{i}", bot_name=f"Agent{i}") for i in range(n_agents)
    )


def make_member() -> Membership:
    (agent,) = make_agents(1)
    return make_member_of(agent)


def make_member_of(agent: Agent) -> Membership:
    cohort = Cohort.objects.create(name="field", created_by="tester")
    return Membership.objects.create(agent=agent, cohort=cohort, added_by="tester")


def execute(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


def moved_by(change: Callable[[], object]) -> int:
    before = read_version()
    change()
    return read_version() - before


def test_version_is_zero_until_the_first_change() -> None:
    TopologyVersion.objects.all().delete()
    Cohort.objects.create(name="field", created_by="tester")
    assert read_version() == 0
    make_agents(1)
    assert read_version() == 1


def test_version_moves_with_each_kind_of_change() -> None:
    member = make_member()
    simulation = Simulation.objects.create(name="main")
    channel = Channel.objects.create(simulation=simulation, name="den", visibility="private")
    changes: list[Callable[[], object]] = [
        lambda: Agent.objects.update(status="paused"),
        lambda: execute("UPDATE cohorts_agent SET status = 'active'"),
        lambda: execute("UPDATE cohorts_membership SET added_by = 'someone'"),
        lambda: ChannelMember.objects.create(channel=channel, agent=member.agent),
        simulation.delete,
        lambda: execute("DELETE FROM cohorts_membership"),
        lambda: Agent.objects.all().delete(),
    ]
    assert [moved_by(change) for change in changes] == [1] * len(changes)


def test_version_stays_with_changes_that_the_gate_does_not_see() -> None:
    member = make_member()
    assert moved_by(lambda: Agent.objects.update(represents="Alder lab")) == 0
    assert moved_by(lambda: Agent.objects.get().save()) == 0
    assert moved_by(lambda: Cohort.objects.update(description="Trees")) == 0
    assert moved_by(member.delete) == 1


def test_version_moves_at_most_once_a_transaction_on_postgresql() -> None:
    agents = make_agents(1000)
    cohort = Cohort.objects.create(name="field", created_by="tester")

    def add_all() -> None:
        with transaction.atomic():
            Membership.objects.bulk_create(
                Membership(agent=agent, cohort=cohort, added_by="tester") for agent in agents
            )
            Agent.objects.filter(slug="agent-1").update(status="paused")

    assert moved_by(add_all) == (1 if connection.vendor == ON_POSTGRESQL else 1001)


def test_version_named_before_the_commit_is_the_one_after_it() -> None:
    make_member()
    with transaction.atomic():
        Membership.objects.all().delete()
        move_now()
        named = read_version()
        Agent.objects.all().delete()
        move_now()
        assert read_version() == (named if connection.vendor == ON_POSTGRESQL else named + 1)
    assert read_version() == (named if connection.vendor == ON_POSTGRESQL else named + 1)


def test_version_does_not_move_with_a_transaction_that_is_rolled_back() -> None:
    make_member()

    def change_and_roll_back() -> None:
        with transaction.atomic():
            Membership.objects.all().delete()
            move_now()
            transaction.set_rollback(True)

    assert moved_by(change_and_roll_back) == 0
    assert Membership.objects.count() == 1


def test_version_moves_after_a_savepoint_with_a_move_is_rolled_back() -> None:
    make_member()

    def change_twice() -> None:
        with transaction.atomic():
            with transaction.atomic():
                Membership.objects.all().delete()
                move_now()
                transaction.set_rollback(True)
            Agent.objects.update(status="paused")

    assert moved_by(change_twice) == 1


def test_an_insert_with_its_own_conflict_clause_does_not_set_the_version_back() -> None:
    member = make_member()
    TopologyVersion.objects.update(version=40)
    same = Membership(agent=member.agent, cohort=member.cohort, added_by="tester")
    Membership.objects.bulk_create([same], ignore_conflicts=True)
    assert read_version() == 40
    Membership.objects.all().delete()
    Membership.objects.bulk_create([same], ignore_conflicts=True)
    assert read_version() == 42
    if connection.vendor != ON_POSTGRESQL:
        execute("INSERT OR REPLACE INTO cohorts_membership SELECT * FROM cohorts_membership")
        assert read_version() == 43


def test_emptying_a_table_at_once_counts() -> None:
    make_member()
    on_postgresql = connection.vendor == ON_POSTGRESQL
    emptied = "TRUNCATE" if on_postgresql else "DELETE FROM"
    assert moved_by(lambda: execute(f"{emptied} cohorts_membership")) == 1


def test_first_change_after_a_flush_makes_the_row_again() -> None:
    make_member()
    call_command("flush", interactive=False, verbosity=0)
    # Emptying the watched tables may have counted itself, after the row was gone.
    TopologyVersion.objects.all().delete()
    make_agents(1)
    assert read_version() == 1
    assert moved_by(lambda: make_member_of(Agent.objects.get())) == 1


def test_open_transaction_of_another_session_does_not_hold_a_reader() -> None:
    make_member()
    changed, release = threading.Event(), threading.Event()

    def change_slowly() -> None:
        try:
            with transaction.atomic():
                Membership.objects.all().delete()
                changed.set()
                release.wait(30)
        finally:
            connection.close()

    thread = threading.Thread(target=change_slowly)
    before = read_version()
    thread.start()
    assert changed.wait(30)
    try:
        if connection.vendor == ON_POSTGRESQL:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '2s'")
                cursor.execute("SELECT version FROM cohorts_topologyversion FOR SHARE")
                assert cursor.fetchone() == (before,)
        assert read_version() == before
    finally:
        release.set()
        thread.join(30)
    assert read_version() == before + 1


def test_a_change_by_raw_sql_is_seen_after_a_migration_alters_the_table() -> None:
    member = make_member()
    narrow = Membership._meta.get_field("added_by")
    wide = models.CharField(max_length=200)
    wide.set_attributes_from_name("added_by")
    with connection.schema_editor() as editor:
        editor.alter_field(Membership, narrow, wide)
    if connection.vendor != ON_POSTGRESQL:
        assert missing_triggers() == (
            "cohorts_membership_moves_on_delete",
            "cohorts_membership_moves_on_insert",
            "cohorts_membership_moves_on_update",
        )
    send_post_migrate()
    assert missing_triggers() == ()
    assert moved_by(lambda: execute("DELETE FROM cohorts_membership")) == 1
    with connection.schema_editor() as editor:
        editor.alter_field(Membership, wide, narrow)
    assert member.pk


def send_post_migrate() -> None:
    emit_post_migrate_signal(verbosity=0, interactive=False, db="default")


def drop_one_trigger() -> str:
    if connection.vendor == ON_POSTGRESQL:
        execute("DROP TRIGGER cohorts_membership_moves_on_row ON cohorts_membership")
        return "cohorts_membership_moves_on_row"
    execute("DROP TRIGGER cohorts_membership_moves_on_delete")
    return "cohorts_membership_moves_on_delete"


def test_missing_trigger_is_named_by_the_check_and_put_back_by_migrate() -> None:
    make_member()
    dropped = drop_one_trigger()
    assert missing_triggers() == (dropped,)
    (error,) = check_triggers(app_configs=None, databases=["default"])
    assert (error.id, dropped in error.msg) == ("cohorts.E001", True)
    with pytest.raises(CommandError, match=dropped):
        call_command("check", databases=["default"], stderr=StringIO())
    assert moved_by(lambda: call_command("migrate", verbosity=0, stdout=StringIO())) == 1
    assert missing_triggers() == ()
    assert check_triggers(app_configs=None, databases=["default"]) == []
    assert check_triggers(app_configs=None) == []


def test_altered_or_disabled_trigger_counts_as_missing() -> None:
    name = drop_one_trigger()
    install_triggers()
    if connection.vendor == ON_POSTGRESQL:
        execute(f"ALTER TABLE cohorts_membership DISABLE TRIGGER {name}")
    else:
        execute(f"DROP TRIGGER {name}")
        execute(f"CREATE TRIGGER {name} AFTER DELETE ON cohorts_membership BEGIN SELECT 1; END")
    assert missing_triggers() == (name,)
    install_triggers()
    assert missing_triggers() == ()


def test_install_moves_nothing_where_nothing_is_missing() -> None:
    make_member()
    assert moved_by(install_triggers) == 0
    assert moved_by(send_post_migrate) == 0


def test_unmigrated_database_lacks_no_trigger() -> None:
    with connection.schema_editor() as editor:
        editor.delete_model(ChannelMember)
    assert missing_triggers() == ()
    with connection.schema_editor() as editor:
        editor.create_model(ChannelMember)
    assert len(missing_triggers()) == 3
    install_triggers()
    assert missing_triggers() == ()
