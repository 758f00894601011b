"""Ways of answering a request that is in order: well, badly, late, or not at all.

Which faults there are: https://platform.claude.com/docs/en/api/errors; what a client makes of some
of them: https://github.com/anthropics/anthropic-sdk-python
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

from tests.anthropic_api import minds
from tests.anthropic_api.minds import Mind, default_mind
from tests.anthropic_api.refusal import Json

HTML = b"<html><body><h1>Bad gateway</h1></body></html>"


class Cut(Enum):
    """Where an answer breaks off. Only `DROPPED` comes before it was generated, and billed."""

    NOT = auto()
    DROPPED = auto()
    UNSENT = auto()
    IN_BODY = auto()
    IN_JSON = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """An answer with 200, billed. `mind` None: the server's own. `spoil` changes the finished
    message, not the bill."""

    mind: Mind | None = None
    cut: Cut = Cut.NOT
    spoil: Callable[[Json], object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fails:
    """An answer that is not a message, and not billed. `body` None: the JSON of an error."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Lets `seconds` pass, or less when `until` is set or the server stops; then goes on."""

    seconds: float
    then: Step
    until: threading.Event | None = None


Step = Answers | Fails | Waits


def answers(mind: Mind | None = None) -> Step:
    """Answer, as this mind decides."""
    return Answers(mind=mind)


def rate_limited(retry_after: str | None = None) -> Step:
    """429: https://platform.claude.com/docs/en/api/rate-limits; `retry_after` as it is sent."""
    return Fails(status=429, headers={} if retry_after is None else {"retry-after": retry_after})


def overloaded() -> Step:
    """529, which may hit anybody at any time."""
    return Fails(status=529)


def fails(status: int) -> Step:
    """Any other error with its usual body: 500, 503, 504, 402 …"""
    return Fails(status=status)


def bad_gateway() -> Step:
    """502 with the page of a proxy."""
    return Fails(status=502, body=HTML, content_type="text/html")


def html_with_200() -> Step:
    """A page where a message is expected."""
    return Fails(status=200, body=HTML, content_type="text/html")


def other_json(body: bytes = b'{"foo": 1}') -> Step:
    """200 with JSON that is no message."""
    return Fails(status=200, body=body)


def without(field_name: str) -> Step:
    """A billed message that lacks a field, such as `usage` or `content`."""
    return Answers(
        spoil=lambda message: {name: value for name, value in message.items() if name != field_name}
    )


def sparse_usage() -> Step:
    """A billed message whose usage has nothing but input and output."""

    def spoil(message: Json) -> Json:
        kept = {"input_tokens", "output_tokens"}
        usage = {name: value if name in kept else None for name, value in message["usage"].items()}
        return message | {"usage": usage}

    return Answers(spoil=spoil)


def dropped() -> Step:
    """The connection ends before anything was generated."""
    return Answers(cut=Cut.DROPPED)


def unsent() -> Step:
    """The answer is generated and billed, then the connection ends without a byte of it."""
    return Answers(cut=Cut.UNSENT)


def cut_body() -> Step:
    """The connection ends in the middle of the body."""
    return Answers(cut=Cut.IN_BODY)


def cut_json() -> Step:
    """Half of the JSON, as a whole body."""
    return Answers(cut=Cut.IN_JSON)


def truncated(mind: Mind = default_mind) -> Step:
    """Half of the answer, with the stop reason `max_tokens`."""
    return Answers(mind=minds.cut_short(mind))


#: What a weather may send, by name.
FAULTS: dict[str, Step] = {
    "slow": Waits(seconds=0.2, then=Answers()),
    "rate_limited": rate_limited(),
    "rate_limited_second": rate_limited("1"),
    "rate_limited_hour": rate_limited("3600"),
    "overloaded": overloaded(),
    "server_error": fails(500),
    "bad_gateway": bad_gateway(),
    "unavailable": fails(503),
    "gateway_timeout": fails(504),
    "html": html_with_200(),
    "other_json": other_json(),
    "no_usage": without("usage"),
    "no_content": without("content"),
    "sparse_usage": sparse_usage(),
    "dropped": dropped(),
    "unsent": unsent(),
    "cut_body": cut_body(),
    "cut_json": cut_json(),
    "truncated": truncated(),
    "refusal": answers(minds.refuse()),
    "empty": answers(minds.say()),
    "blank": answers(minds.say(" \n")),
    "prose": answers(minds.say("Let me think about this in my own words.")),
    "two_blocks": answers(minds.say('{"move": "continue"}', '{"move": "accept"}')),
    "unknown_tool": answers(minds.use(minds.Call(name="no_such_tool", input={"id": "nobody"}))),
}
