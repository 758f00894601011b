"""A plain client for the server's own tests: HTTP by the standard library, no SDK."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPMessage
from typing import Any

from tests.anthropic_api.check_request import VERSION
from tests.anthropic_api.minds import Asked
from tests.anthropic_api.models import HAIKU
from tests.anthropic_api.refusal import Json
from tests.anthropic_api.script import MESSAGES, When
from tests.anthropic_api.server import KEY, AnthropicApi

HEADERS = {"authorization": f"Bearer {KEY}", "anthropic-version": VERSION}
#: The compact JSON of a block without its text has so many bytes.
N_BYTES_OF_A_BLOCK = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back."""

    status: int
    headers: HTTPMessage
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def kind(self) -> str:
        """The kind of an error."""
        kind: str = self.json["error"]["type"]
        return kind

    @property
    def usage(self) -> tuple[int, int, int]:
        """Tokens of the prompt: plain, written, read."""
        usage = self.json["usage"]
        return (
            usage["input_tokens"],
            usage["cache_creation_input_tokens"],
            usage["cache_read_input_tokens"],
        )


def hello(**changes: object) -> Json:
    """Return a request that is in order, with these fields changed; None takes one away."""
    body: Json = {
        "model": HAIKU.id,
        "max_tokens": 100,
        "messages": [user("Hello")],
    } | changes
    return {name: value for name, value in body.items() if value is not None}


def user(content: object) -> Json:
    """A message of the user."""
    return {"role": "user", "content": content}


def assistant(content: object) -> Json:
    """A message of the assistant."""
    return {"role": "assistant", "content": content}


def block(text: str, **more: object) -> Json:
    """A block of text."""
    return {"type": "text", "text": text, **more}


def block_of(tokens: int, letter: str = "a", *, ttl: str | None = None) -> Json:
    """A block of exactly so many tokens, marked if `ttl` is given."""
    text = letter * (3 * tokens - N_BYTES_OF_A_BLOCK)
    mark = {"cache_control": {"type": "ephemeral", "ttl": ttl}}
    return block(text, **(mark if ttl else {}))


def noting(begun: threading.Event) -> When:
    """A `when` that lets every request pass, and sets `begun` when one does."""

    def note(asked: Asked) -> bool:
        begun.set()
        return True

    return note


def ask(
    api: AnthropicApi,
    body: object,
    *,
    path: str = MESSAGES,
    headers: dict[str, str] | None = None,
    method: str = "POST",
    timeout: float = 30,
) -> Reply:
    """Send a body, JSON or bytes, on a connection of its own."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection = HTTPConnection(api.url.removeprefix("http://"), timeout=timeout)
    try:
        connection.request(method, path, raw, HEADERS if headers is None else headers)
        response = connection.getresponse()
        return Reply(status=response.status, headers=response.headers, raw=response.read())
    finally:
        connection.close()
