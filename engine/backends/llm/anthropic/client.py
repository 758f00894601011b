"""The official client: the one module that imports it, which takes seconds.

It looks for keys, addresses and headers in variables that belong to other programs, and one of them
it reads whatever it is given. They are out of its sight while it is imported and made.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_FOREIGN = "ANTHROPIC_"


@contextmanager
def _foreign_variables_unseen() -> Iterator[None]:
    hidden = {name: value for name, value in os.environ.items() if name.startswith(_FOREIGN)}
    for name in hidden:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(hidden)


with _foreign_variables_unseen():
    from anthropic import AnthropicError, APIStatusError, AsyncAnthropic

__all__ = ["APIStatusError", "AnthropicError", "AsyncAnthropic", "make_client"]


def make_client(*, key: str, base_url: str, timeout_seconds: float) -> AsyncAnthropic:
    """Return a client that retries nothing by itself: every attempt is ours to reserve and record."""
    with _foreign_variables_unseen():
        return AsyncAnthropic(
            api_key=key,
            base_url=base_url,
            timeout=timeout_seconds,
            max_retries=0,
            open_telemetry=False,
        )
