"""A stub of a model's service for benchmarks: takes any request, and answers late.

`python -m benchmarks.parts.model_server MEDIAN` prints its URL, and ends when its standard input
does. The tests have a strict one (`tests.anthropic_api`), which would need a core for itself here.
"""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[2]
SIGMA = 0.8
WORDS = "kiln timber stave resin leather spice drying rack barrel pitch flour bow".split()


def _decision(body: bytes, luck: Random) -> dict[str, object]:
    """Return a decision of the kind that is asked for, with words of its own."""
    form = json.dumps(json.loads(body)["output_config"]["format"]).encode()
    text = " ".join(f"{word}{luck.randint(100, 999)}" for word in luck.choices(WORDS, k=40))
    if b'"posts"' in form:
        return {"posts": [1]}
    if b'"choice"' in form:
        root = {"kind": "root", "channel": 1, "partner": None, "text": text}
        return {"thought": "Let us ask.", "choice": root}
    if b'"memory"' in form:
        return {"memory": text}
    moves = body.rpartition(b"Moves on offer: ")[2].partition(b".")[0].decode().split(", ")
    return {"thought": "So be it.", "move": moves[0], "text": text}


def _answer(body: bytes, luck: Random) -> bytes:
    message = json.dumps(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-5-5",
            "content": [{"type": "text", "text": json.dumps(_decision(body, luck))}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 900, "output_tokens": 90},
        }
    ).encode()
    head = (
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
        f"content-length: {len(message)}\r\n\r\n"
    )
    return head.encode() + message


async def _serve(median_seconds: float) -> None:
    luck = Random(1)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]
                body = await reader.readexactly(int(length))
                await asyncio.sleep(median_seconds * math.exp(luck.gauss(0.0, SIGMA)))
                writer.write(_answer(body, luck))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, backlog=2_000)
    async with server:
        print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
        await asyncio.to_thread(sys.stdin.read)


@contextmanager
def model_server(median_seconds: float) -> Iterator[str]:
    """Start the stub; gives its URL. An answer takes a log-normal time of that median."""
    words = [sys.executable, "-m", "benchmarks.parts.model_server", f"{median_seconds}"]
    with subprocess.Popen(
        words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        assert process.stdin is not None
        process.stdin.close()


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1])))
