"""What the database tells of runs, in the text format of Prometheus.

Nothing is counted over history: a scrape costs the same after a year. So calls, tokens and money by
model are those of the last ten minutes of the runs that are live, and money of a day is its purse.
"""

from __future__ import annotations

from engine.metrics.families import Family, render
from engine.metrics.reading import read

__all__ = ["Family", "read", "render"]
