"""Claims: tried, never waited for, and given back."""

from __future__ import annotations

from engine.core.claims import Claims


def test_seats_are_counted_by_agent_and_key() -> None:
    claims = Claims()
    claims.take_seat(1, 10)
    claims.take_seat(1, 10)
    claims.take_seat(1, 11)
    assert (claims.n_seats(1), claims.n_seats(2)) == (2, 0)
    assert not claims.is_empty


def test_debt_is_claimed_once() -> None:
    claims = Claims()
    assert claims.take_debt(1, 10)
    assert not claims.take_debt(1, 10)
    assert claims.take_debt(2, 10)


def test_release_gives_back_seat_and_debt_of_a_key() -> None:
    claims = Claims()
    claims.take_seat(1, 10)
    claims.take_debt(1, 10)
    claims.take_debt(1, 11)
    assert claims.release(1, 10)
    assert not claims.release(1, 10)
    assert claims.take_debt(1, 10)
    assert not claims.take_debt(1, 11)


def test_release_all_tells_whether_a_seat_came_free() -> None:
    claims = Claims()
    claims.take_debt(1, 10)
    claims.take_debt(2, 10)
    assert not claims.release_all(1)
    claims.take_seat(2, 10)
    assert claims.release_all(2)
    assert claims.is_empty
