"""Laws on the message log: order, authorship, places in threads, and that nothing comes twice."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING

from engine.laws.law import Breach, Law

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from engine.export.schema import MessageRow, TurnRow
    from engine.laws.export import Export

N_REMEMBERED_TEXTS = 20


def seq_increasing(export: Export) -> Iterator[Breach]:
    last = 0
    n_waiting = 0
    for line, message in enumerate(export.messages, start=1):
        if message.seq is None:
            n_waiting += 1
            continue
        if n_waiting:
            yield Breach(f"line {line}", "it follows a message that is not taken in yet.")
        if message.seq <= last:
            yield Breach(f"seq {message.seq}", f"it does not lie above seq {last} before it.")
        last = max(last, message.seq)


def authorship(export: Export) -> Iterator[Breach]:
    for line, message in enumerate(export.messages, start=1):
        where = f"line {line}"
        if (message.seq is None) != (message.ordinal is None):
            yield Breach(where, "it has only one of seq and ordinal.")
        if message.author is None:
            if message.turn is not None:
                yield Breach(where, "it comes from a turn but names no agent as author.")
        elif None in (message.seq, message.run, message.turn):
            yield Breach(where, "an agent's message needs a seq, a run and a turn.")
        elif not message.is_bot or message.person is not None:
            yield Breach(where, "it says that an agent and a person wrote it.")


def commit_times(export: Export) -> Iterator[Breach]:
    last: dict[int | None, datetime] = {}
    for message in export.log:
        if message.author is None:
            continue
        before = last.get(message.run)
        if before is not None and message.committed_at < before:
            yield Breach(f"seq {message.seq}", "it was committed before a message of smaller seq.")
        last[message.run] = message.committed_at


def ordinals(export: Export) -> Iterator[Breach]:
    roots = {row.id: row.root_seq for row in export.threads}
    last: dict[int, int] = defaultdict(int)
    for message in export.log:
        where = f"seq {message.seq}"
        if message.thread is None:
            if message.ordinal != 1:
                yield Breach(where, f"a root has ordinal {message.ordinal} instead of 1.")
            continue
        expected = last[message.thread] + 1
        last[message.thread] = expected
        if message.ordinal != expected:
            yield Breach(
                where,
                f"it is number {expected} of thread {message.thread} and says {message.ordinal}.",
            )
        elif expected == 1 and message.seq != roots[message.thread]:
            yield Breach(where, f"thread {message.thread} names another message as its root.")


def one_channel(export: Export) -> Iterator[Breach]:
    for cycle in export.cycles:
        place = (cycle.row.channel, cycle.root.visibility)
        for message in cycle.messages:
            if (message.channel, message.visibility) != place:
                yield Breach(f"seq {message.seq}", f"{cycle.where} is held in another channel.")


def within_turn(export: Export) -> Iterator[Breach]:
    for message in export.log:
        turn = None if message.turn is None else export.turn_by_number.get(message.turn)
        if turn is None:
            continue
        where = f"seq {message.seq}"
        if (message.run, message.author) != (turn.run, turn.agent):
            yield Breach(where, f"turn {turn.number} is another agent's or another run's.")
        elif not _covers(turn, message):
            yield Breach(where, f"it was committed outside of the time of turn {turn.number}.")


def _covers(turn: TurnRow, message: MessageRow) -> bool:
    ended = turn.finished_at is not None and turn.finished_at < message.committed_at
    return turn.selected_at <= message.committed_at and not ended


def no_repeats(export: Export) -> Iterator[Breach]:
    recent: dict[str, deque[str]] = defaultdict(lambda: deque(maxlen=N_REMEMBERED_TEXTS))
    in_thread: set[tuple[int, str, str]] = set()
    for message in export.log:
        if message.author is None:
            continue
        text = " ".join(message.text.split()).casefold()
        key = None if message.thread is None else (message.thread, message.author, text)
        if text in recent[message.author] or key in in_thread:
            yield Breach(f"seq {message.seq}", f"{message.author} has said the same before.")
        recent[message.author].append(text)
        if key is not None:
            in_thread.add(key)


FILE = "messages.jsonl"
MESSAGE_LAWS = (
    Law(
        name="seq-increasing",
        file=FILE,
        says="seq is unique and strictly increasing; what is not taken in yet comes last",
        check=seq_increasing,
    ),
    Law(
        name="authorship",
        file=FILE,
        says="a message is an agent's, with seq, run and turn, or another's, with no turn; "
        "seq and ordinal are given together",
        check=authorship,
    ),
    Law(
        name="commit-times",
        file=FILE,
        says="in a run the agents' messages are committed in the order of seq",
        check=commit_times,
    ),
    Law(
        name="ordinals",
        file=FILE,
        says="the messages of a thread are numbered 1, 2, 3, ... in the order of seq; "
        "the root is 1",
        check=ordinals,
    ),
    Law(
        name="one-channel",
        file=FILE,
        says="a thread is held in the channel of its root",
        check=one_channel,
    ),
    Law(
        name="within-turn",
        file=FILE,
        says="an agent's message was committed by a turn of its own, within the turn's time",
        check=within_turn,
    ),
    Law(
        name="no-repeats",
        file=FILE,
        says="no agent says the same twice in a thread or within its last 20 messages",
        check=no_repeats,
    ),
)
