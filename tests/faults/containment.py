"""Whether all that was stored once is there later, unchanged but for what may change.

Both sides are the files of an export as plain JSON values, with the rows that an export leaves
out (`unexported`). Between them drivers have died and others have gone on. Then only this may
have changed; anything else is a loss, and so is a row that is gone:

- runs: a live one has become interrupted, and counts other threads as open
- agents: they have more versions
- turns: one that was running has become interrupted
- messages: a root has got the thread that hangs on it; a person's that waited has got its place
- threads: an open one has got its mark, its end, or the side that it lacked
- proposals: one that was pending has been reviewed
- llm_calls: one about a root that nobody had answered names the thread
- invitations: one that was pending has been dealt with
- states: agents have got further, never back
- topology, changes, memories: nothing
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from engine.export.schema import LIVE_STATUSES
from engine.models import AgentState, Invitation, Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from django.db.models import QuerySet

    from engine.models import Simulation
    from tests.exports import Files, Line

#: What names a row; of rows with the same name, the first is the first later, too.
KEYS = {
    "runs.jsonl": ("run",),
    "agents.jsonl": ("agent",),
    "topology.jsonl": ("run", "version"),
    "changes.jsonl": ("version", "at", "who", "action", "cohort", "agent"),
    "turns.jsonl": ("number",),
    "threads.jsonl": ("id", "cycle"),
    "proposals.jsonl": ("id",),
    "llm_calls.jsonl": ("run", "turn"),
    "memories": ("id",),
    "invitations": ("id",),
    "states": ("agent_id",),
}
PLACE = ("seq", "ordinal", "run", "thread", "committed_at")
ENDING = ("state", "outcome", "closed_seq", "closed_at", "grandfathered_at")
OPENING = ("opener", "partner", "opened_seq", "opened_at", "topology_version", "shared_cohorts")


def unexported(simulation: Simulation) -> Files:
    """Return the rows of a simulation that no export shows."""
    return {
        "memories": _rows(Memory.objects.filter(simulation=simulation)),
        "invitations": _rows(Invitation.objects.filter(simulation=simulation)),
        "states": _rows(AgentState.objects.filter(simulation=simulation)),
    }


def _rows(found: QuerySet[Any]) -> list[Line]:
    return [dict(row) for row in found.values()]


def losses(before: Files, after: Files) -> list[str]:
    """Return a sentence for each row of `before` that is not in `after`, or not as it may be."""
    return [loss for name in before for loss in _losses_of(name, before[name], after[name])]


def repeated(files: Files) -> list[str]:
    """Return a sentence for each text that somebody has said twice in a thread."""
    placed = (line for line in files["messages.jsonl"] if line["seq"] is not None)
    said = Counter(
        (line["thread"] or line["seq"], line["author"] or line["person"], line["text"])
        for line in placed
    )
    return [
        f"thread {thread}: {n} times {text!r}" for (thread, _, text), n in said.items() if n > 1
    ]


def _losses_of(name: str, before: list[Line], after: list[Line]) -> Iterator[str]:
    found = _by_key(name, after)
    for key, old in _by_key(name, before).items():
        new = found.get(key)
        if new is None:
            yield f"{name}: gone: {old}"
            continue
        free = FREE.get(name, _nothing)(old)
        moved = [field for field in old if old[field] != new[field]]
        if not set(moved) <= set(free) or not SOUND.get(name, _always)(old, new):
            yield f"{name}: {moved} changed: {old} became {new}"


def _by_key(name: str, lines: list[Line]) -> dict[tuple[object, ...], Line]:
    """Return the rows by what names them; a person's message is named by its text."""
    index: dict[tuple[object, ...], Line] = {}
    numbers: Counter[tuple[object, ...]] = Counter()
    for line in lines:
        if name == "messages.jsonl":
            key = (line["seq"],) if line["author"] else (line["person"], line["text"])
        else:
            key = tuple(line[field] for field in KEYS[name])
        numbers[key] += 1
        index[*key, numbers[key]] = line
    return index


def _nothing(_old: Line) -> tuple[str, ...]:
    return ()


def _of_run(old: Line) -> tuple[str, ...]:
    live = old["status"] in LIVE_STATUSES
    return ("status", "end_reason", "finished_at", "threads") if live else ()


def _of_turn(old: Line) -> tuple[str, ...]:
    return ("outcome",) if old["outcome"] == "running" else ()


def _of_message(old: Line) -> tuple[str, ...]:
    if old["seq"] is None:
        return PLACE
    return ("thread",) if old["thread"] is None else ()


def _of_thread(old: Line) -> tuple[str, ...]:
    if old["state"] == "closed":
        return ()
    return ENDING if old["partner"] else (*ENDING, *OPENING)


def _of_proposal(old: Line) -> tuple[str, ...]:
    return ("state", "reviewed_by", "reviewed_at", "note") if old["state"] == "pending" else ()


def _of_call(old: Line) -> tuple[str, ...]:
    return ("thread",) if old["thread"] is None else ()


def _of_invitation(old: Line) -> tuple[str, ...]:
    return ("state", "reason") if old["state"] == "pending" else ()


#: By file, the fields of a row that may have other values later.
FREE: Mapping[str, Callable[[Line], tuple[str, ...]]] = {
    "runs.jsonl": _of_run,
    "agents.jsonl": lambda _: ("versions",),
    "turns.jsonl": _of_turn,
    "messages.jsonl": _of_message,
    "threads.jsonl": _of_thread,
    "proposals.jsonl": _of_proposal,
    "llm_calls.jsonl": _of_call,
    "invitations": _of_invitation,
    "states": tuple,
}


def _always(_old: Line, _new: Line) -> bool:
    return True


def _run_is_sound(old: Line, new: Line) -> bool:
    others = [dict(line["threads"]) | {"open": 0} for line in (old, new)]
    return new["status"] in {old["status"], "interrupted"} and others[0] == others[1]


#: By file, what the new values must be.
SOUND: Mapping[str, Callable[[Line, Line], bool]] = {
    "runs.jsonl": _run_is_sound,
    "agents.jsonl": lambda old, new: new["versions"][: len(old["versions"])] == old["versions"],
    "turns.jsonl": lambda old, new: new["outcome"] in {old["outcome"], "interrupted"},
    "threads.jsonl": lambda old, new: old["opener"] in {None, new["opener"]},
    "states": lambda old, new: (
        old["last_selected"] <= new["last_selected"] and old["cursor"] <= new["cursor"]
    ),
}
