"""What all the conclusions of a simulation come to, counted by the database itself.

They only grow: what is read here is a row for each pair that has talked, and one for each talk that
a memory does not know yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection

from engine.core.records import PairHistory, Talk
from engine.models import Channel, Decision, Memory, Thread
from engine.store.database.times import aware

if TYPE_CHECKING:
    from collections.abc import Iterator

DECISIONS = Decision._meta.db_table
MEMORIES = Memory._meta.db_table
THREADS = Thread._meta.db_table
CHANNELS = Channel._meta.db_table

# A pair's conclusions follow each other by id; two may share a `seq` when nobody spoke between.
_PAIRS = f"""
    WITH closed AS (
        SELECT id, seq, at, outcome,
            CASE WHEN opener_id < partner_id THEN opener_id ELSE partner_id END AS low,
            CASE WHEN opener_id < partner_id THEN partner_id ELSE opener_id END AS high
        FROM {DECISIONS} WHERE simulation_id = %s AND partner_id IS NOT NULL
    ), agreed AS (
        SELECT low, high, max(id) AS id FROM closed WHERE outcome = 'proposal' GROUP BY low, high
    )
    SELECT closed.low, closed.high, max(closed.seq), max(closed.at),
        sum(CASE WHEN closed.id > coalesce(agreed.id, 0) THEN 1 ELSE 0 END)
    FROM closed
    LEFT JOIN agreed ON agreed.low = closed.low AND agreed.high = closed.high
    GROUP BY closed.low, closed.high ORDER BY closed.low, closed.high
"""
_UNTOLD = f"""
    WITH told AS (
        SELECT agent_id, coalesce(channel_id, 0) AS segment, max(upto_seq) AS upto
        FROM {MEMORIES} WHERE simulation_id = %s GROUP BY agent_id, channel_id
    ), sides AS (
        SELECT opener_id AS agent_id, seq, root_seq, thread_id
        FROM {DECISIONS} WHERE simulation_id = %s
        UNION ALL
        SELECT partner_id, seq, root_seq, thread_id
        FROM {DECISIONS} WHERE simulation_id = %s AND partner_id IS NOT NULL
    )
    SELECT sides.agent_id, sides.seq, sides.root_seq, private.id
    FROM sides
    JOIN {THREADS} thread ON thread.root_id = sides.thread_id
    LEFT JOIN {CHANNELS} private
        ON private.id = thread.channel_id AND private.visibility = 'private'
    LEFT JOIN told
        ON told.agent_id = sides.agent_id AND told.segment = coalesce(private.id, 0)
    WHERE sides.seq > coalesce(told.upto, 0)
    ORDER BY sides.agent_id, sides.seq, sides.root_seq
"""


def pair_histories(simulation: int) -> Iterator[tuple[tuple[int, int], PairHistory]]:
    """Yield what is left of the talks of each pair, by pair."""
    with connection.cursor() as cursor:
        cursor.execute(_PAIRS, [simulation])
        for low, high, seq, at, n_barren in cursor.fetchall():
            yield (low, high), PairHistory(closed_seq=seq, closed_at=aware(at), n_barren=n_barren)


def untold_talks(simulation: int) -> Iterator[tuple[int, Talk]]:
    """Yield what each agent's memories do not know yet, by agent and in the order of closing."""
    with connection.cursor() as cursor:
        cursor.execute(_UNTOLD, [simulation] * 3)
        for agent, seq, root, channel in cursor.fetchall():
            yield agent, Talk(closed_seq=seq, root=root, channel=channel)
