"""A law on exported data, and what is found where it is not kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from engine.laws.export import Export


class Breach(NamedTuple):
    """One place where a law is not kept: which row, and one sentence on what is wrong."""

    where: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """One law: its name, the file that it judges, what it says, and the function that checks it."""

    name: str
    file: str
    says: str
    check: Callable[[Export], Iterator[Breach]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A breach with the law and the file that it concerns."""

    law: str
    file: str
    where: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.law}: {self.file}, {self.where}: {self.sentence}"


def violations(laws: Iterable[Law], export: Export) -> Iterator[Violation]:
    """Yield what breaks any of `laws`, law by law."""
    for law in laws:
        for breach in law.check(export):
            yield Violation(
                law=law.name, file=law.file, where=breach.where, sentence=breach.sentence
            )
