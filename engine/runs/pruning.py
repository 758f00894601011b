"""What a simulation need not keep for ever: the words of calls. All that was said stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.models import CallText

if TYPE_CHECKING:
    from datetime import datetime

    from engine.models import Simulation

#: Rows that are deleted at once: nobody waits long for the database meanwhile.
AT_ONCE = 500


def prune_texts(
    simulation: Simulation | None,
    *,
    before: datetime,
    is_trial: bool,
    at_most: int | None = None,
) -> int:
    """Delete what was asked and answered in calls before a moment, of one simulation or of all.

    Returns how many texts went, the oldest first and no more than `at_most`, or would go if it
    `is_trial`. The calls stay, with their costs.
    """
    old = CallText.objects.filter(call__started_at__lt=before)
    if simulation is not None:
        old = old.filter(call__run__simulation=simulation)
    if is_trial:
        return old.count()
    keys = list(old.order_by("pk").values_list("pk", flat=True)[:at_most])
    for start in range(0, len(keys), AT_ONCE):
        CallText.objects.filter(pk__in=keys[start : start + AT_ONCE]).delete()
    return len(keys)
