"""Changes of cohorts and agents: one transaction each, with audit lines that name the version."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.dispatch import receiver

from cohorts import operations
from cohorts.audit import change, record_outside_changes
from cohorts.gate import read_version
from cohorts.models import Agent, AgentVersion, Cohort, Membership, TopologyChange
from cohorts.operations import MembershipDiff, RefusedChangeError, Saved
from cohorts.signals import agents_saved

if TYPE_CHECKING:
    from collections.abc import Collection

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def version_is_known() -> None:
    """Begin with an empty record: a flush may itself have moved the version."""
    record_outside_changes()
    TopologyChange.objects.exclude(version=read_version()).delete()


def make_agents(*slugs: str) -> list[Agent]:
    agents = [Agent(slug=slug, bot_name=slug.replace("-", "_")) for slug in slugs]
    operations.save_agents(agents, who="setup")
    return agents


def lines(who: str) -> list[tuple[str, str, str, str]]:
    rows = TopologyChange.objects.filter(who=who).order_by("id")
    return list(rows.values_list("action", "cohort", "agent", "detail"))


def versions(who: str) -> list[int]:
    rows = TopologyChange.objects.filter(who=who).order_by("id")
    return list(rows.values_list("version", flat=True))


def test_adding_and_removing_leave_lines_under_the_new_version() -> None:
    alder, birch = make_agents("alder", "birch")
    field = operations.create_cohort("field", who="ann", description="Trees")
    added = operations.add_members(field, [birch, alder], who="ann")
    after_adding = read_version()
    removed = operations.remove_members(field, [birch], who="ann")
    assert added == MembershipDiff(added=(("field", "alder"), ("field", "birch")))
    assert removed == MembershipDiff(removed=(("field", "birch"),))
    assert lines("ann") == [
        ("cohort_created", "field", "", ""),
        ("member_added", "field", "alder", ""),
        ("member_added", "field", "birch", ""),
        ("member_removed", "field", "birch", ""),
    ]
    assert versions("ann")[1:] == [after_adding, after_adding, read_version()]
    assert read_version() == after_adding + 1
    assert Membership.objects.get().added_by == "ann"


def test_change_that_changes_nothing_writes_nothing() -> None:
    alder, birch = make_agents("alder", "birch")
    field = operations.create_cohort("field", who="ann")
    operations.add_members(field, [alder], who="ann")
    version, n_lines = read_version(), TopologyChange.objects.count()
    assert operations.add_members(field, [alder], who="ann") == MembershipDiff()
    assert operations.remove_members(field, [birch], who="ann") == MembershipDiff()
    assert operations.set_members(field, [alder], who="ann") == MembershipDiff()
    assert operations.save_agent(alder, who="ann") is Saved.SAME
    assert (read_version(), TopologyChange.objects.count()) == (version, n_lines)


def test_setting_members_changes_the_difference_only() -> None:
    alder, birch, cedar = make_agents("alder", "birch", "cedar")
    field = operations.create_cohort("field", who="setup")
    operations.add_members(field, [alder, birch], who="setup")
    kept = Membership.objects.get(agent=birch).pk
    diff = operations.set_members(field, [birch, cedar], who="ann")
    assert diff == MembershipDiff(added=(("field", "cedar"),), removed=(("field", "alder"),))
    assert Membership.objects.get(agent=birch).pk == kept
    assert set(versions("ann")) == {read_version()}


def test_many_memberships_change_in_one_transaction() -> None:
    agents = make_agents(*(f"agent-{i}" for i in range(900)))
    field = operations.create_cohort("field", who="ann")
    assert len(operations.add_members(field, agents, who="ann").added) == 900
    assert len(operations.remove_members(field, agents[:850], who="ann").removed) == 850
    assert Membership.objects.count() == 50


def test_failed_change_leaves_neither_rows_nor_lines() -> None:
    (alder,) = make_agents("alder")
    field = operations.create_cohort("field", who="setup")
    gone = Agent(pk=999_999, slug="gone", bot_name="Gone")
    with pytest.raises(IntegrityError):
        operations.add_members(field, [alder, gone], who="ann")
    assert Membership.objects.count() == 0
    assert lines("ann") == []


def test_membership_of_an_unsaved_cohort_is_refused_by_the_database() -> None:
    with pytest.raises(IntegrityError):
        operations.add_members(Cohort(name="field"), make_agents("alder"), who="ann")
    assert lines("ann") == []


def test_membership_that_another_session_adds_meanwhile_is_already_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alder, birch = make_agents("alder", "birch")
    field = operations.create_cohort("field", who="setup")
    first_look = operations._present

    def look_and_be_overtaken(keys: Collection[tuple[int, int]]) -> dict[tuple[int, int], int]:
        found = first_look(keys)
        monkeypatch.setattr(operations, "_present", first_look)
        Membership.objects.create(cohort=field, agent=alder, added_by="other")
        return found

    monkeypatch.setattr(operations, "_remove", lambda _: ())
    monkeypatch.setattr(operations, "_present", look_and_be_overtaken)
    diff = operations.add_members(field, [alder, birch], who="ann")
    assert diff.added == (("field", "birch"),)
    assert Membership.objects.get(agent=alder).added_by == "other"


def test_two_writers_at_once_add_each_membership_once() -> None:
    agents = make_agents(*(f"agent-{i}" for i in range(20)))
    field = operations.create_cohort("field", who="setup")
    start = threading.Barrier(3)
    added: list[int] = []

    def add_all() -> None:
        try:
            start.wait(30)
            added.append(len(operations.add_members(field, agents, who="ann").added))
        finally:
            connection.close()

    threads = [threading.Thread(target=add_all) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(added) == [0, 0, 20]
    assert len(lines("ann")) == 20


def test_cohort_with_members_is_not_deleted() -> None:
    alder, birch = make_agents("alder", "birch")
    field = operations.create_cohort("field", who="ann")
    operations.add_members(field, [alder, birch], who="ann")
    with pytest.raises(RefusedChangeError, match="has 2 members: remove them"):
        operations.delete_cohort(field, who="ann")
    operations.remove_members(field, [alder], who="ann")
    with pytest.raises(RefusedChangeError, match="has 1 member: remove them"):
        operations.delete_cohort(field, who="ann")
    operations.remove_members(field, [birch], who="ann")
    operations.delete_cohort(field, who="ann")
    operations.delete_cohort(Cohort(pk=field.pk, name="field"), who="ann")
    assert not Cohort.objects.exists()
    assert lines("ann")[-1] == ("cohort_deleted", "field", "", "")


@pytest.mark.parametrize("name", ["Field", "all", "field"])
def test_cohort_with_a_bad_or_taken_name_is_refused(name: str) -> None:
    operations.create_cohort("field", who="setup")
    with pytest.raises(ValidationError):
        operations.create_cohort(name, who="ann")
    assert lines("ann") == []


def test_saving_an_agent_writes_a_version_for_texts_and_limits_only() -> None:
    (alder,) = make_agents("alder")
    told: list[list[int]] = []

    @receiver(agents_saved)
    def listen(agent_ids: list[int], **_: object) -> None:
        told.append(agent_ids)

    changes: list[tuple[str, object]] = [
        ("public_profile", "Trees."),
        ("status", "paused"),
        ("daily_posts", 0),
        ("daily_posts", None),
        ("bot_user_id", "U1"),
    ]
    for name, value in changes:
        setattr(alder, name, value)
        assert operations.save_agent(alder, who="ann") is Saved.CHANGED
    agents_saved.disconnect(listen)
    rows = AgentVersion.objects.order_by("number")
    assert list(rows.values_list("number", "public_profile", "daily_posts", "saved_by")) == [
        (1, "", None, "setup"),
        (2, "Trees.", None, "ann"),
        (3, "Trees.", 0, "ann"),
        (4, "Trees.", None, "ann"),
    ]
    assert lines("ann") == [("status_changed", "", "alder", "paused")]
    assert told == [[alder.pk]] * 5


def test_saving_several_agents_says_what_happened_to_each() -> None:
    alder, birch = make_agents("alder", "birch")
    birch.represents = "Birch lab"
    cedar = Agent(slug="cedar", bot_name="Cedar")
    assert operations.save_agents([alder, birch, cedar], who="ann") == {
        "alder": Saved.SAME,
        "birch": Saved.CHANGED,
        "cedar": Saved.CREATED,
    }
    assert lines("ann") == [("agent_created", "", "cedar", "active")]


def test_invalid_agent_is_not_saved() -> None:
    with pytest.raises(ValidationError):
        operations.save_agent(Agent(slug="Alder", bot_name="Alder"), who="ann")
    assert not Agent.objects.exists()


def test_agent_is_deleted_only_if_nothing_refers_to_it() -> None:
    alder, birch = make_agents("alder", "birch")
    field = operations.create_cohort("field", who="setup")
    operations.add_members(field, [alder], who="setup")
    with pytest.raises(RefusedChangeError, match="alder has memberships or a history"):
        operations.delete_agent(alder, who="ann")
    operations.delete_agent(birch, who="ann")
    operations.delete_agent(Agent(pk=999_999, slug="gone"), who="ann")
    assert lines("ann") == [("agent_deleted", "", "birch", "")]


def test_freed_by_names_agents_that_lose_their_last_cohort() -> None:
    alder, birch, cedar = make_agents("alder", "birch", "cedar")
    field = operations.create_cohort("field", who="setup")
    garden = operations.create_cohort("garden", who="setup")
    operations.add_members(field, [alder, birch], who="setup")
    operations.add_members(garden, [birch], who="setup")
    gone = [(field.pk, alder.pk), (field.pk, birch.pk), (garden.pk, cedar.pk)]
    assert operations.freed_by(gone) == ("alder",)
    assert operations.freed_by([*gone, (garden.pk, birch.pk)]) == ("alder", "birch")
    assert operations.freed_by([]) == ()


def execute(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


def test_changes_from_outside_are_named_when_first_seen() -> None:
    alder, birch, cedar = make_agents("alder", "birch", "cedar")
    field = operations.create_cohort("field", who="setup")
    operations.add_members(field, [alder, birch], who="setup")
    assert record_outside_changes() == 0
    Membership.objects.filter(agent=alder).delete()
    Membership.objects.create(cohort=field, agent=cedar, added_by="raw")
    execute("UPDATE cohorts_agent SET status = 'retired' WHERE slug = 'birch'")
    Agent.objects.create(slug="dogwood", bot_name="Dogwood", status="paused")
    AgentVersion.objects.filter(agent=alder).delete()
    Agent.objects.filter(slug="alder").delete()
    assert record_outside_changes() == 5
    assert lines("outside")[-5:] == [
        ("status_changed", "", "birch", "retired"),
        ("agent_created", "", "dogwood", "paused"),
        ("member_added", "field", "cedar", ""),
        ("member_removed", "field", "alder", ""),
        ("agent_deleted", "", "alder", ""),
    ]
    assert set(versions("outside")[-5:]) == {read_version()}
    assert record_outside_changes() == 0


def test_record_is_replayed_line_by_line() -> None:
    (alder,) = make_agents("alder")
    field = operations.create_cohort("field", who="setup")
    operations.add_members(field, [alder], who="setup")
    operations.remove_members(field, [alder], who="setup")
    operations.delete_agent(alder, who="setup")
    make_agents("birch")
    Agent.objects.filter(slug="birch").update(status="paused")
    assert record_outside_changes() == 1
    assert lines("outside")[-1:] == [("status_changed", "", "birch", "paused")]


def test_version_that_moved_without_a_difference_is_recorded_too() -> None:
    alder, _ = make_agents("alder", "birch")
    Agent.objects.filter(pk=alder.pk).update(status="paused")
    Agent.objects.filter(pk=alder.pk).update(status="active")
    assert record_outside_changes() == 1
    assert lines("outside")[-1:] == [("moved", "", "", "")]


def test_own_change_records_what_came_from_outside_before_it() -> None:
    alder, birch = make_agents("alder", "birch")
    Agent.objects.filter(pk=alder.pk).update(status="paused")
    birch.status = "paused"
    operations.save_agent(birch, who="ann")
    assert lines("outside")[-1:] == [("status_changed", "", "alder", "paused")]
    assert lines("ann") == [("status_changed", "", "birch", "paused")]
    assert versions("outside")[-1] < versions("ann")[0] == read_version()


def test_change_within_a_larger_transaction_is_rolled_back_with_it() -> None:
    (alder,) = make_agents("alder")
    field = operations.create_cohort("field", who="setup")
    version = read_version()
    with transaction.atomic():
        operations.add_members(field, [alder], who="ann")
        transaction.set_rollback(True)
    assert (read_version(), lines("ann")) == (version, [])


def test_changes_within_a_change_are_stored_together_at_its_end() -> None:
    alder, birch = make_agents("alder", "birch")
    with change("ann"):
        field = operations.create_cohort("field", who="inner")
        operations.add_members(field, [alder], who="inner")
        with pytest.raises(IntegrityError):
            operations.add_members(Cohort(name="unsaved"), [birch], who="inner")
        assert lines("ann") == []
    assert lines("ann") == [
        ("cohort_created", "field", "", ""),
        ("member_added", "field", "alder", ""),
    ]
    assert set(versions("ann")) == {read_version()}


def test_agents_may_swap_their_bot_names() -> None:
    alder, birch = make_agents("alder", "birch")
    alder.bot_name, birch.bot_name = birch.bot_name, alder.bot_name
    operations.save_agents([alder, birch], who="ann")
    names = Agent.objects.values_list("slug", "bot_name")
    assert list(names) == [("alder", "birch"), ("birch", "alder")]


def test_other_applications_note_their_changes_in_the_same_record() -> None:
    with change("ann") as audit:
        audit.note("channel_member_added", agent="alder", detail="den in main")
    assert lines("ann") == [("channel_member_added", "", "alder", "den in main")]


def test_two_observers_record_a_change_from_outside_once() -> None:
    make_agents("alder")
    Agent.objects.update(status="paused")
    found: list[int] = []
    start = threading.Barrier(2)

    def observe() -> None:
        try:
            start.wait(30)
            found.append(record_outside_changes())
        finally:
            connection.close()

    threads = [threading.Thread(target=observe) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(found) == [0, 1]
