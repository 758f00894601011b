"""What a line of the log is about: the run, turn and agent that it was written for."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_about: ContextVar[Mapping[str, int | str]] = ContextVar("about", default=MappingProxyType({}))


@contextmanager
def logged_about(**facts: int | str) -> Iterator[None]:
    """Add facts to every line that is logged meanwhile, by this task and by those that it makes."""
    before = _about.set({**_about.get(), **facts})
    try:
        yield
    finally:
        _about.reset(before)


def what_is_logged_about() -> Mapping[str, int | str]:
    """Return the facts that hold here and now."""
    return _about.get()
