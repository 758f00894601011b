"""The server as a process: says its port, and ends when its standard input does.

`python -m tests.anthropic_api [--port-file FILE] [--mind MODULE:NAME] [--weather JSON] [--seed N]`
The first line of stdout is the base URL. Who dies closes its end of the pipe, so the server never
outlives its parent. `GET /rehearsal/report` is the ledger.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib import import_module
from pathlib import Path

from tests.anthropic_api.minds import Mind
from tests.anthropic_api.script import Weather
from tests.anthropic_api.server import AnthropicApi


def _mind(name: str) -> Mind:
    module, _, attribute = name.partition(":")
    mind: Mind = getattr(import_module(module), attribute)
    return mind


def _write_whole(path: Path, text: str) -> None:
    """Whoever sees the file finds all of it."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.anthropic_api")
    parser.add_argument("--port-file", type=Path)
    parser.add_argument("--mind", default="tests.anthropic_api.minds:default_mind")
    parser.add_argument("--weather", type=json.loads, default={})
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    weather = Weather(seed=asked.seed, rates=asked.weather)
    with AnthropicApi(mind=_mind(asked.mind), weather=weather) as api:
        if asked.port_file is not None:
            _write_whole(asked.port_file, api.url.rpartition(":")[2])
        sys.stdout.write(f"{api.url}\n")
        sys.stdout.flush()
        sys.stdin.buffer.read()


if __name__ == "__main__":
    main(sys.argv[1:])
