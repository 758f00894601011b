"""The texts of all the turns of a moment, in a few queries whatever their number.

Each turn names what it wants (`Wanted`). The queries are written out: they run for every turn, and
to build them anew would cost several times what they do.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from django.db import connection

from engine.models import Memory, Message
from engine.ports.store import StoredMessage, Texts
from engine.store.database.session import quick_cursor
from engine.store.database.times import aware

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from engine.ports.store import Wanted

Segment = tuple[int, int | None]

MESSAGES = Message._meta.db_table
MEMORIES = Memory._meta.db_table
#: How many rows one statement names: SQLite bounds the values of a statement.
MOST_ROWS = 200

# Each `%s` is the simulation. A subquery names it too, and not `m`'s: PostgreSQL then asks it once
# for each that is wanted, and not for every row of `m`.

# As `StoredMessage` has them: `r` is the root of `m`. A time that is computed is quicker (`aware`).
_COLUMNS = """m.seq, m.channel_id, r.seq, m.ordinal, m.author_id, m.person, m.is_bot, m.text,
    coalesce(m.committed_at, NULL)"""
_BY_SEQ = f"""
    WITH wanted (seq) AS (VALUES {{places}})
    SELECT {_COLUMNS} FROM wanted
    JOIN {MESSAGES} m ON m.simulation_id = %s AND m.seq = wanted.seq
    LEFT JOIN {MESSAGES} r ON r.id = m.root_id
"""
_ANSWERS = f"""
    WITH wanted (root, after, upto) AS (VALUES {{places}})
    SELECT {_COLUMNS} FROM wanted
    JOIN {MESSAGES} r ON r.simulation_id = %s AND r.seq = wanted.root
    JOIN {MESSAGES} m ON m.root_id = r.id
        AND m.ordinal > wanted.after AND m.ordinal <= wanted.upto
"""
# PostgreSQL keeps the plan that it made when the table was small: this one goes by the index then.
LATEST = {
    "postgresql": f"""
    WITH wanted (agent) AS (VALUES {{places}})
    SELECT wanted.agent, m.text FROM wanted CROSS JOIN LATERAL (
        SELECT n.seq, n.text FROM {MESSAGES} n WHERE n.simulation_id = %s
        AND n.author_id = wanted.agent AND n.seq IS NOT NULL
        ORDER BY n.seq DESC LIMIT {{number}}
    ) m
    ORDER BY wanted.agent, m.seq
    """,
    "sqlite": f"""
    WITH wanted (agent) AS (VALUES {{places}})
    SELECT wanted.agent, m.text FROM wanted
    JOIN {MESSAGES} m ON m.simulation_id = %s AND m.author_id = wanted.agent
        AND m.seq > coalesce((
            SELECT n.seq FROM {MESSAGES} n WHERE n.simulation_id = %s
            AND n.author_id = wanted.agent AND n.seq IS NOT NULL
            ORDER BY n.seq DESC LIMIT 1 OFFSET {{number}}
        ), 0)
    ORDER BY wanted.agent, m.seq
    """,
}
_PUBLIC_MEMORIES = f"""
    WITH wanted (agent) AS (VALUES {{places}})
    SELECT m.agent_id, m.channel_id, m.text FROM wanted
    JOIN {MEMORIES} m ON m.simulation_id = %s AND m.agent_id = wanted.agent
        AND m.channel_id IS NULL AND m.version = (
            SELECT max(n.version) FROM {MEMORIES} n WHERE n.simulation_id = %s
            AND n.agent_id = wanted.agent AND n.channel_id IS NULL
        )
"""
_PRIVATE_MEMORIES = f"""
    WITH wanted (agent, channel) AS (VALUES {{places}})
    SELECT m.agent_id, m.channel_id, m.text FROM wanted
    JOIN {MEMORIES} m ON m.simulation_id = %s AND m.agent_id = wanted.agent
        AND m.channel_id = wanted.channel AND m.version = (
            SELECT max(n.version) FROM {MEMORIES} n WHERE n.simulation_id = %s
            AND n.agent_id = wanted.agent AND n.channel_id = wanted.channel
        )
"""


def read_texts(simulation: int, asked: Sequence[Wanted]) -> dict[Wanted, Texts]:
    """Return what each wants; what is gone is left out, and takes nobody else's texts along."""
    roots = {root for one in asked for root, _ in one.histories}
    messages = _messages(simulation, roots.union(*(one.messages for one in asked)))
    answers = _answers(simulation, asked)
    memories = _memories(simulation, asked)
    latest = _latest(simulation, asked)
    return {
        one: Texts(
            histories={
                root: (messages[root], *answers.get((root, upto - one.newest, upto), ()))
                if root in messages
                else ()
                for root, upto in one.histories
            },
            messages=tuple(messages[seq] for seq in sorted(set(one.messages)) if seq in messages),
            memories={segment: memories.get((one.agent, segment), "") for segment in one.memories},
            recent=tuple(latest.get((one.agent, one.n_recent), ())),
        )
        for one in asked
    }


def _messages(simulation: int, seqs: set[int]) -> dict[int, StoredMessage]:
    """Return messages by `seq`."""
    rows = _rows(_BY_SEQ, simulation, {(seq,) for seq in seqs})
    return {message.seq: message for message in map(_message, rows)}


def _answers(
    simulation: int, asked: Sequence[Wanted]
) -> dict[tuple[int, int, int], list[StoredMessage]]:
    """Return the answers to roots, by ordinal, after one ordinal and up to another."""
    wanted = {
        (root, upto - one.newest, upto) for one in asked for root, upto in one.histories if upto > 1
    }
    by_root: dict[int, list[StoredMessage]] = defaultdict(list)
    for message in map(_message, _rows(_ANSWERS, simulation, wanted)):
        assert message.root is not None
        by_root[message.root].append(message)
    return {
        (root, after, upto): [
            message
            for _, message in sorted({m.ordinal: m for m in by_root[root]}.items())
            if after < message.ordinal <= upto
        ]
        for root, after, upto in wanted
    }


def _memories(simulation: int, asked: Sequence[Wanted]) -> dict[Segment, str]:
    """Return the newest text of each memory segment that has one."""
    segments = {(one.agent, channel) for one in asked for channel in one.memories}
    public = {(agent,) for agent, channel in segments if channel is None}
    private = {(agent, channel) for agent, channel in segments if channel is not None}
    rows = [
        *_rows(_PUBLIC_MEMORIES, simulation, public),
        *_rows(_PRIVATE_MEMORIES, simulation, private),
    ]
    return {(agent, channel): text for agent, channel, text in rows}


def _latest(simulation: int, asked: Sequence[Wanted]) -> dict[tuple[int, int], list[str]]:
    """Return agents' latest texts, the newest last, by agent and how many were asked for."""
    found: dict[tuple[int, int], list[str]] = defaultdict(list)
    for number in {one.n_recent for one in asked if one.n_recent}:
        wanted = {(one.agent,) for one in asked if one.n_recent == number}
        for agent, text in _rows(LATEST[connection.vendor], simulation, wanted, number=number):
            found[agent, number].append(text)
    return found


def _rows(
    query: str, simulation: int, wanted: AbstractSet[tuple[int, ...]], **numbers: int
) -> Iterator[tuple[Any, ...]]:
    """Run a query for what is wanted, in as few statements as its values fit in."""
    ordered = sorted(wanted)
    for start in range(0, len(ordered), MOST_ROWS):
        chunk = ordered[start : start + MOST_ROWS]
        one = f"({', '.join(['%s'] * len(chunk[0]))})"
        values = [value for row in chunk for value in row]
        with quick_cursor() as cursor:
            cursor.execute(
                query.format(places=", ".join([one] * len(chunk)), **numbers),
                [*values, *[simulation] * query.count("%s")],
            )
            yield from cursor.fetchall()


def _message(row: tuple[Any, ...]) -> StoredMessage:
    return StoredMessage._make((*row[:-1], aware(row[-1])))
