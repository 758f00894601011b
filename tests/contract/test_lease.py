"""The lease: one driver at a time, told apart by tokens, ended by a clock that nobody sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connection

from engine.models import RunLease
from engine.store.database import beat, give_back_lease, lease, read_lease, take_lease

if TYPE_CHECKING:
    from tests.contract.site import DjangoSite

pytestmark = pytest.mark.django_db(transaction=True)


def row() -> RunLease:
    return RunLease.objects.get()


def take(site: DjangoSite, *, known_token: int, seconds: float = 30.0) -> int | None:
    return take_lease(
        site.simulation.pk, site.run.pk, known_token=known_token, owner="host:1", seconds=seconds
    )


def test_lease_of_a_new_simulation_is_free(django_site: DjangoSite) -> None:
    state = read_lease(django_site.simulation.pk)
    assert (state.token, state.run_id, state.owner, state.is_expired) == (0, None, "", True)


def test_lease_is_held_until_it_is_given_back(django_site: DjangoSite) -> None:
    assert take(django_site, known_token=read_lease(1).token) == 1
    held = read_lease(1)
    assert (held.run_id, held.owner, held.is_expired) == (django_site.run.pk, "host:1", False)
    give_back_lease(1, token=7)
    assert not read_lease(1).is_expired
    give_back_lease(1, token=1)
    assert read_lease(1).is_expired


def test_lease_is_taken_by_one_of_two_who_saw_the_same(django_site: DjangoSite) -> None:
    token = read_lease(1).token
    assert take(django_site, known_token=token) == 1
    assert take(django_site, known_token=token) is None
    assert row().token == 1


def test_lease_ends_by_itself(django_site: DjangoSite) -> None:
    read_lease(1)
    take(django_site, known_token=0, seconds=0.0)
    assert read_lease(1).is_expired


def test_lease_of_another_boot_has_ended(django_site: DjangoSite) -> None:
    read_lease(1)
    take(django_site, known_token=0)
    RunLease.objects.update(clock="another boot")
    assert read_lease(1).is_expired


def test_lease_taken_for_no_run_only_fences(django_site: DjangoSite) -> None:
    early = django_site.open_store()
    assert take_lease(1, None, known_token=1, owner="", seconds=30.0) == 2
    assert not early.beat().ours
    assert (read_lease(1).run_id, read_lease(1).is_expired) == (None, True)


def test_lease_keeps_its_number_over_drivers(django_site: DjangoSite) -> None:
    django_site.open_store()
    RunLease.objects.update(commit_no=5)
    django_site.open_store()
    assert (row().token, row().commit_no) == (2, 5)


def test_beat_renews_only_when_it_is_due(
    django_site: DjangoSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = django_site.open_store()
    RunLease.objects.update(expires=1.0)
    assert store.beat().ours
    assert row().expires == 1.0
    monkeypatch.setattr(store._pulse, "_renew_seconds", 0.0)
    assert store.beat().ours
    assert row().expires > 1.0
    assert store.is_trusted


def test_beat_that_is_due_tells_that_another_driver_came(
    django_site: DjangoSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    early = django_site.open_store()
    monkeypatch.setattr(early._pulse, "_renew_seconds", 0.0)
    django_site.open_store()
    expires = row().expires
    assert not early.beat().ours
    assert row().expires == expires


def test_driver_trusts_its_lease_for_five_sixths_of_it(
    django_site: DjangoSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted from before its renewal began, on a clock that goes on in a stopped process."""
    now = [1000.0]
    monkeypatch.setattr(beat, "boot_seconds", lambda: now[0])
    store = django_site.open_store(taken_at=1000.0)
    seen = []
    for now[0] in (1024.9, 1025.0, 2000.0):
        seen.append(store.is_trusted)
    assert seen == [True, False, False]
    assert store.beat().ours  # and renewed, with the token read to be its own
    assert store.is_trusted
    now[0] = 2024.9
    assert store.is_trusted
    django_site.open_store(taken_at=2000.0)
    now[0] = 2025.0
    assert not store.beat().ours
    assert not store.is_trusted


@pytest.mark.parametrize("renew_seconds", [0.0, 3600.0])
def test_driver_trusts_nothing_any_more_once_it_saw_another_token(
    django_site: DjangoSite, monkeypatch: pytest.MonkeyPatch, renew_seconds: float
) -> None:
    early = django_site.open_store()
    monkeypatch.setattr(early._pulse, "_renew_seconds", renew_seconds)
    django_site.open_store()
    before = early.is_trusted
    assert not early.beat().ours
    assert (before, early.is_trusted) == (True, False)


def test_boot_id_falls_back_to_the_name_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lease._boot_id.cache_clear()
    assert lease._boot_id()
    monkeypatch.setattr(lease, "BOOT_ID_FILE", tmp_path_factory.mktemp("proc") / "boot_id")
    monkeypatch.setattr("platform.node", lambda: "a-laptop")
    lease._boot_id.cache_clear()
    assert lease._boot_id() == "a-laptop"
    lease._boot_id.cache_clear()


def test_driver_sessions_bound_their_waits(django_site: DjangoSite) -> None:
    """A driver stopped inside a transaction must not hold others up for ever."""
    store = django_site.open_store()
    store.beat()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SHOW idle_in_transaction_session_timeout")
            assert cursor.fetchone() == ("10s",)
            cursor.execute("SHOW lock_timeout")
            assert cursor.fetchone() == ("5s",)
    else:
        assert connection.settings_dict["OPTIONS"]["timeout"] == 20
