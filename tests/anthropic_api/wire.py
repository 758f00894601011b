"""The bytes: HTTP/1.1 on 127.0.0.1, one thread a connection, connections kept open.

An answer leaves in one piece: in two, the second would wait for the client's acknowledgement of
the first, 40 ms later.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from tests.anthropic_api.steps import Cut

if TYPE_CHECKING:
    from socketserver import BaseServer

#: How much of a body that is too large is read away, so that the client hears the answer.
MAX_READ_AWAY = 64 * 1024 * 1024
CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A request as it came. `raw` is empty where `is_too_large`; header names in lower case.
    `is_gone` tells whether the client has hung up by now."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes
    is_too_large: bool
    is_gone: Callable[[], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """An answer, and where it is to break off. `number` is that of the ledger."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    content_type: str = "application/json"
    cut: Cut = Cut.NOT
    number: int = 0


Handle = Callable[[Incoming], Outgoing]


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True
    request_queue_size = 256

    def __init__(self, handle: Handle, lost: Callable[[int], None], max_body_bytes: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.handle = handle
        self.lost = lost
        self.max_body_bytes = max_body_bytes
        self.open_sockets: set[socket.socket] = set()
        self.lock = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Note the connection before its thread starts, so that `stop` can cut every one."""
        with self.lock:
            self.open_sockets.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self.lock:
            self.open_sockets.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up in the middle is no mistake of the server's."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    connection: socket.socket
    server: BaseServer

    @property
    def _server(self) -> _Server:
        assert isinstance(self.server, _Server)
        return self.server

    def finish(self) -> None:
        with suppress(OSError):
            super().finish()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the parent's name
        """Say nothing: the ledger knows."""

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        is_too_large = length > self._server.max_body_bytes
        raw = b"" if is_too_large else self.rfile.read(length)
        if is_too_large:
            self._read_away(length)
        self._send(self._server.handle(self._incoming("POST", raw, is_too_large=is_too_large)))

    def do_GET(self) -> None:
        self._send(self._server.handle(self._incoming("GET", b"", is_too_large=False)))

    def _incoming(self, method: str, raw: bytes, *, is_too_large: bool) -> Incoming:
        return Incoming(
            method=method,
            path=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            raw=raw,
            is_too_large=is_too_large,
            is_gone=self._is_gone,
        )

    def _read_away(self, length: int) -> None:
        left = min(length, MAX_READ_AWAY)
        while left and (chunk := self.rfile.read(min(left, CHUNK))):
            left -= len(chunk)

    def _is_gone(self) -> bool:
        try:
            return not self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def _send(self, outgoing: Outgoing) -> None:
        if outgoing.cut in {Cut.DROPPED, Cut.UNSENT}:
            self.close_connection = True
            return
        self.send_response(outgoing.status)
        self.send_header("content-type", outgoing.content_type)
        self.send_header("content-length", str(len(outgoing.body)))
        for name, value in outgoing.headers.items():
            self.send_header(name, value)
        self.end_headers()
        body = outgoing.body
        if outgoing.cut is Cut.IN_BODY:
            self.close_connection = True
            body = body[: len(body) // 2]
        try:
            self.wfile.write(body)
            self.wfile.flush()
        except OSError:
            self.close_connection = True
            self._server.lost(outgoing.number)


class Wire:
    """A port that listens from `start` to `stop`."""

    def __init__(self, handle: Handle, lost: Callable[[int], None], max_body_bytes: int) -> None:
        self._server = _Server(handle, lost, max_body_bytes)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.005}
        )

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen, in a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Listen no more, cut what is open, and wait until all threads have ended."""
        self._server.shutdown()
        self._thread.join()
        with self._server.lock:
            for connection in self._server.open_sockets:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self._server.server_close()
