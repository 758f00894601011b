"""The text format of Prometheus, version 0.0.4."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Number = int | float

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One metric: its samples by their labels."""

    name: str
    says: str
    kind: str = "gauge"
    samples: list[tuple[Mapping[str, str], Number]] = field(default_factory=list)

    def add(self, value: Number, **labels: object) -> None:
        """Add a sample."""
        self.samples.append(({name: str(label) for name, label in labels.items()}, value))


def render(families: Iterable[Family]) -> str:
    """Return the page; a metric without samples shows that it is known."""
    lines: list[str] = []
    for family in families:
        lines += [f"# HELP {family.name} {family.says}", f"# TYPE {family.name} {family.kind}"]
        lines += [f"{family.name}{_labels(of)} {value}" for of, value in family.samples]
    return "".join(f"{line}\n" for line in lines)


def _labels(labels: Mapping[str, str]) -> str:
    pairs = ",".join(f'{name}="{_escaped(label)}"' for name, label in labels.items())
    return f"{{{pairs}}}" if pairs else ""


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
