"""The server: who may ask, what is checked in which order, and what is answered.

Order: size, path, key, version, JSON, fields, model, permission, content, length; only what passes
all of it meets the script, so a fault never hides a bad request.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from tests.anthropic_api import shapes
from tests.anthropic_api.answers import answer_to, message
from tests.anthropic_api.billing import Usage
from tests.anthropic_api.cache import PromptCache
from tests.anthropic_api.check_request import (
    OLD_VERSION,
    VERSION,
    check_body,
    check_fields,
    check_length,
)
from tests.anthropic_api.ledger import Exchange, Ledger
from tests.anthropic_api.minds import Asked, Mind, default_mind
from tests.anthropic_api.models import MODELS, Model
from tests.anthropic_api.prompt import compact, parts_of
from tests.anthropic_api.refusal import KINDS, Json, Refusal, error_body
from tests.anthropic_api.script import COUNT, MESSAGES, Script, Weather
from tests.anthropic_api.steps import Answers, Cut, Fails, Waits
from tests.anthropic_api.wire import Incoming, Outgoing, Wire

KEY = "rehearsal-key"
#: Asked with GET and no key: the ledger as JSON, for other processes. No path of the real API.
REPORT = "/rehearsal/report"
#: https://platform.claude.com/docs/en/api/overview (request size limits)
MAX_BODY_BYTES = 32 * 1024 * 1024


class Clock:
    """The server's own clock, in seconds: it runs, or moves only when a test says so."""

    def __init__(self, *, runs: bool = True) -> None:
        self._runs = runs
        self._moved = 0.0

    def __call__(self) -> float:
        return self._moved + (time.monotonic() if self._runs else 0.0)

    def move(self, seconds: float) -> None:
        """Let time pass at once."""
        self._moved += seconds


@dataclass(slots=True, kw_only=True)
class Visit:
    """A request on its way through the server, and what is known of it for the ledger."""

    exchange: Exchange
    n_writes_seen: int


@dataclass(kw_only=True)
class AnthropicApi:
    """The server, from `with` to its end; `url` is the base URL for a client.

    `keys`: who may ask, and for which models (None: all). `models` may be changed or added to with
    `replace(HAIKU, …)`. `least_cached_tokens`: shorter prefixes are not cached.
    """

    mind: Mind = default_mind
    weather: Weather = field(default_factory=lambda: Weather(seed=0, rates={}))
    models: Iterable[Model] = MODELS
    keys: Mapping[str, frozenset[str] | None] = field(default_factory=lambda: {KEY: None})
    clock: Clock = field(default_factory=Clock)
    max_body_bytes: int = MAX_BODY_BYTES
    least_cached_tokens: int = 1024
    script: Script = field(default_factory=Script, init=False)
    ledger: Ledger = field(default_factory=Ledger, init=False)
    #: What went wrong inside a mind or a `when`; raised at the end of `with`.
    faults: list[Exception] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._by_id = {model.id: model for model in self.models}
        self._cache = PromptCache(least_tokens=self.least_cached_tokens)
        self._cache_lock = threading.Lock()
        self._stopping = threading.Event()
        self._wire = Wire(self.handle, self.ledger.lost, self.max_body_bytes)

    @property
    def url(self) -> str:
        return self._wire.url

    def __enter__(self) -> Self:
        self._wire.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        if error is None and self.faults:
            raise self.faults[0]

    def stop(self) -> None:
        """Wake what waits, cut all connections, and end the threads."""
        self._stopping.set()
        self._wire.stop()

    def handle(self, incoming: Incoming) -> Outgoing:
        """Return what to send, entered into the ledger already."""
        if incoming.method == "GET" and incoming.path == REPORT:
            return Outgoing(body=json.dumps(self.ledger.report()).encode())
        visit = self._visit(incoming)
        request_id = visit.exchange.request_id
        try:
            outgoing = self._answered(incoming, visit)
        except Refusal as refusal:
            body = error_body(refusal.status, refusal.message, request_id)
            outgoing = Outgoing(status=refusal.status, body=body)
        except Exception as fault:  # noqa: BLE001 a mind's own mistake: reported at the end
            self.faults.append(fault)
            outgoing = Outgoing(status=500, body=error_body(500, repr(fault), request_id))
        return self._entered(visit, outgoing, is_late=incoming.is_gone())

    def _visit(self, incoming: Incoming) -> Visit:
        with self._cache_lock:
            n_written = self._cache.n_written
        number = self.ledger.begin()
        exchange = Exchange(
            number=number,
            at=self.clock(),
            path=incoming.path,
            headers=incoming.headers,
            raw=incoming.raw,
            request_id=f"req_{number:06}",
        )
        return Visit(exchange=exchange, n_writes_seen=n_written)

    def _entered(self, visit: Visit, outgoing: Outgoing, *, is_late: bool) -> Outgoing:
        """Enter the exchange; an answer that is cut, or that nobody waits for, is not delivered."""
        no_bytes = outgoing.cut in {Cut.DROPPED, Cut.UNSENT}
        exchange = replace(
            visit.exchange,
            status=0 if no_bytes else outgoing.status,
            sent=outgoing.body,
            answer=_parsed_or_none(outgoing.body),
            error=KINDS.get(outgoing.status),
            delivered=outgoing.cut is Cut.NOT and not is_late,
        )
        self.ledger.end(exchange)
        headers = {"request-id": exchange.request_id, **outgoing.headers}
        return replace(outgoing, headers=headers, number=exchange.number)

    def _answered(self, incoming: Incoming, visit: Visit) -> Outgoing:
        asked = self._admitted(incoming, visit)
        step = self.script.take(asked)
        if step is None:
            step = self.weather.now(asked) if asked.path == MESSAGES else Answers()
        while isinstance(step, Waits):
            self._wait(step)
            step = step.then
        if isinstance(step, Fails):
            return self._failed(step, visit)
        if asked.path == COUNT:
            tokens = sum(part.tokens for part in parts_of(asked.body))
            return Outgoing(body=compact({"input_tokens": tokens}))
        if step.cut is Cut.DROPPED:
            return Outgoing(cut=Cut.DROPPED)
        return self._generated(asked, step, visit)

    def _admitted(self, incoming: Incoming, visit: Visit) -> Asked:
        """Check the request, and note on the way what the ledger wants to know."""
        if incoming.is_too_large:
            raise Refusal(413, f"more than {self.max_body_bytes} bytes")
        if incoming.path not in {MESSAGES, COUNT}:
            raise Refusal(404, f"there is no {incoming.path}")
        if incoming.method != "POST":
            raise Refusal(405, f"{incoming.method} is not for {incoming.path}")
        key = self._key(incoming.headers)
        visit.exchange = replace(visit.exchange, key=key)
        version = incoming.headers.get("anthropic-version")
        if version not in {OLD_VERSION, VERSION}:
            raise Refusal(400, f"anthropic-version: {version} is none")
        body = shapes.parsed(incoming.raw)
        visit.exchange = replace(visit.exchange, body=body)
        check_fields(body, version, generates=incoming.path == MESSAGES)
        model = self._model(body["model"], key)
        visit.exchange = replace(visit.exchange, model=model.id)
        check_body(body, model)
        check_length(sum(part.tokens for part in parts_of(body)), model)
        return Asked(
            number=visit.exchange.number,
            path=incoming.path,
            key=key,
            model=model,
            body=body,
            raw=incoming.raw,
        )

    def _key(self, headers: Mapping[str, str]) -> str:
        """Where both headers are there, `x-api-key` counts: https://platform.claude.com/docs/en/api
        and https://qiita.com/Synthorai/items/01a0067e88747257a4e6"""
        key = headers.get("x-api-key")
        if key is None:
            scheme, _, key = headers.get("authorization", "").partition(" ")
            key = key.strip() if scheme.lower() == "bearer" else ""
        if key not in self.keys:
            raise Refusal(401, "the key is missing or unknown")
        return key

    def _model(self, name: object, key: str) -> Model:
        model = self._by_id.get(shapes.text(name, "model"))
        if model is None:
            raise Refusal(404, f"model: {name}")
        allowed = self.keys[key]
        if allowed is not None and model.id not in allowed:
            raise Refusal(403, f"this key may not use {name}")
        return model

    def _wait(self, step: Waits) -> None:
        """Wait for what comes first: the time, the test's event, or the end of the server."""
        until = time.monotonic() + step.seconds
        while (left := until - time.monotonic()) > 0 and not self._stopping.is_set():
            if step.until is None:
                self._stopping.wait(left)
            elif step.until.wait(min(left, 0.05)):
                return

    def _failed(self, step: Fails, visit: Visit) -> Outgoing:
        body = step.body
        if body is None:
            words = f"a fault of the rehearsal: {step.status}"
            body = error_body(step.status, words, visit.exchange.request_id)
        return Outgoing(
            status=step.status, headers=step.headers, body=body, content_type=step.content_type
        )

    def _generated(self, asked: Asked, step: Answers, visit: Visit) -> Outgoing:
        decision = (step.mind or self.mind)(asked)
        answer = answer_to(asked, decision)
        with self._cache_lock:
            split = self._cache.charge(
                f"{asked.key} {asked.model.id}",
                parts_of(asked.body),
                began_at=visit.exchange.at,
                n_seen=visit.n_writes_seen,
            )
        usage = Usage(
            prompt=split,
            output_tokens=answer.output_tokens,
            thinking_tokens=answer.thinking_tokens,
        )
        visit.exchange = replace(visit.exchange, usage=usage, nano_usd=usage.nano_usd(asked.model))
        said: object = message(asked, decision, answer, usage.as_json())
        if step.spoil is not None:
            said = step.spoil(message(asked, decision, answer, usage.as_json()))
        body = compact(said)
        if step.cut is Cut.IN_JSON:
            body = body[: len(body) // 2]
        return Outgoing(body=body, cut=step.cut)


def _parsed_or_none(body: bytes) -> Json | None:
    try:
        return shapes.parsed(body)
    except Refusal:
        return None
