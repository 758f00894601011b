"""A proxy before PostgreSQL that reads what a client sends, and cuts lines where it is told to."""

from __future__ import annotations

import re
import socket
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What a client may ask before it says who it is: TLS, or encryption by GSS.
ENCRYPTION = {80877103, 80877104}
#: The statement that takes a group's number, and the pulse's look at everything.
FENCE = re.compile(rb'SET "?commit_no"?')
LOOK = (b"engine_runcontrol", b"engine_inbox")
COMMITTED = b"COMMIT\x00"


class Cut(Enum):
    """What becomes of a client's message: passed on, never passed on, or answered to nobody."""

    NO = auto()
    BEFORE = auto()
    AFTER = auto()


@dataclass(slots=True, eq=False)
class Line:
    """A client's connection and the one to the server. `is_of_group`: its transaction passed the
    fence, which is sent once and then called by its name. `is_deaf`: what the server answers is not
    passed on."""

    client: socket.socket
    server: socket.socket
    fence: bytes = b""
    is_of_group: bool = False
    is_deaf: bool = False

    def hear(self, message: bytes) -> None:
        """Take note of a client's message that passes the fence."""
        kind, names = message[:1], message[5:].split(b"\x00", 2)
        if FENCE.search(message):
            self.is_of_group = True
            self.fence = names[0] if kind == b"P" else b""
        elif kind == b"B" and self.fence and names[1] == self.fence:
            self.is_of_group = True

    def close(self) -> None:
        for side in (self.client, self.server):
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
            side.close()


@dataclass(slots=True)
class CutPlan:
    """Cuts groups' commits by their number, before or after, and once a pulse's look."""

    before: frozenset[int] = frozenset()
    after: frozenset[int] = frozenset()
    look: int = 0
    n_commits: int = 0
    n_looks: int = 0
    done: list[str] = field(default_factory=list)

    def __call__(self, line: Line, message: bytes) -> Cut:
        line.hear(message)
        if all(table in message for table in LOOK):
            self.n_looks += 1
            return self._cut("look", Cut.BEFORE, due=self.n_looks == self.look)
        if message[:1] in {b"Q", b"P"} and b"COMMIT" in message and line.is_of_group:
            line.is_of_group = False
            self.n_commits += 1
            if self.n_commits in self.before:
                return self._cut("before", Cut.BEFORE)
            return self._cut("after", Cut.AFTER, due=self.n_commits in self.after)
        return Cut.NO

    def _cut(self, word: str, cut: Cut, *, due: bool = True) -> Cut:
        if not due:
            return Cut.NO
        self.done.append(word)
        return cut


class Proxy:
    """Listens on a port of its own and gives every client a line to the server."""

    def __init__(self, server: tuple[str, int], plan: CutPlan) -> None:
        self._server = server
        self._plan = plan
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lines: list[Line] = []
        self.port: int = self._listener.getsockname()[1]

    def serve(self) -> None:
        """Accept clients until the proxy is closed."""
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            line = Line(client, socket.create_connection(self._server))
            for side in (line.client, line.server):
                side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._lines.append(line)
            for carry in (self._carry_there, self._carry_back):
                threading.Thread(target=carry, args=(line,), daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for line in self._lines:
            line.close()

    def _carry_there(self, line: Line) -> None:
        """Pass a client's messages on, one by one, until the line is cut."""
        with suppress(OSError):
            for message in _messages(line.client):
                cut = self._plan(line, message)
                if cut is Cut.BEFORE:
                    break
                line.is_deaf = line.is_deaf or cut is Cut.AFTER
                line.server.sendall(message)
        line.close()

    def _carry_back(self, line: Line) -> None:
        """Pass the server's answers on; on a deaf line wait for the commit's, and cut then."""
        heard = b""
        with suppress(OSError):
            while chunk := line.server.recv(65536):
                if line.is_deaf:
                    heard += chunk
                    if COMMITTED in heard:
                        break
                else:
                    line.client.sendall(chunk)
        line.close()


def _messages(client: socket.socket) -> Iterator[bytes]:
    """Yield what a client sends, message by message; a wish for encryption is declined."""
    while True:
        head = _exactly(client, 8)
        if int.from_bytes(head[4:], "big") not in ENCRYPTION:
            break
        client.sendall(b"N")
    yield head + _exactly(client, int.from_bytes(head[:4], "big") - 8)
    while True:
        head = _exactly(client, 5)
        yield head + _exactly(client, int.from_bytes(head[1:], "big") - 4)


def _exactly(client: socket.socket, n_bytes: int) -> bytes:
    """Read so many bytes; raises `OSError` when the client has gone."""
    found = bytearray()
    while len(found) < n_bytes:
        chunk = client.recv(n_bytes - len(found))
        if not chunk:
            raise ConnectionError
        found += chunk
    return bytes(found)


@contextmanager
def proxied(server: tuple[str, int], plan: CutPlan) -> Iterator[int]:
    """Give the port of a proxy that cuts by a plan."""
    proxy = Proxy(server, plan)
    accepting = threading.Thread(target=proxy.serve)
    accepting.start()
    try:
        yield proxy.port
    finally:
        proxy.close()
        accepting.join()
