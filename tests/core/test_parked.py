"""The parked: found by the feeds they read and by the seats they wait for."""

from __future__ import annotations

from engine.core.parked import Parked

GENERAL, LABS = (1, -1), (2, -1)


def test_readers_are_found_by_feed_in_the_order_they_came() -> None:
    parked = Parked()
    parked.add(3, [GENERAL], ())
    parked.add(1, [GENERAL, LABS], ())
    assert list(parked.readers([GENERAL])) == [3, 1]
    assert list(parked.readers([LABS])) == [1]
    assert list(parked.readers([(9, -1)])) == []


def test_waiting_are_found_by_the_agent_they_wait_for() -> None:
    parked = Parked()
    parked.add(1, [], (7,))
    parked.add(2, [], (7, 8))
    assert parked.waiting_for(7) == (1, 2)
    assert parked.waiting_for(9) == ()


def test_invited_are_found_by_the_root_until_they_are_parked_otherwise() -> None:
    parked = Parked()
    parked.add(1, [], (), (5,))
    parked.add(2, [], (), (5, 6))
    assert parked.invited_to(5) == (1, 2)
    assert parked.invited_to(6) == (2,)
    parked.add(1, [], ())
    parked.discard(2)
    assert (parked.invited_to(5), parked.invited_to(6)) == ((), ())


def test_parking_again_forgets_what_was_before() -> None:
    parked = Parked()
    parked.add(1, [GENERAL], (7,))
    parked.add(1, [LABS], (8,))
    assert (list(parked.readers([GENERAL])), parked.waiting_for(7)) == ([], ())
    assert (list(parked.readers([LABS])), parked.waiting_for(8)) == ([1], (1,))


def test_agent_that_is_not_parked_is_left_alone() -> None:
    parked = Parked()
    parked.add(1, [GENERAL], (7,))
    parked.discard(2)
    parked.discard(1)
    assert (list(parked.readers([GENERAL])), parked.waiting_for(7)) == ([], ())
