"""Runs the benchmarks one after the other: `python -m benchmarks [--small] [NAME …]`.

Each has a process of its own, so that none inherits another's memory, caches or settings. What
they print is Markdown, ready for docs/performance.md.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
NAMES = sorted(file.stem for file in FOLDER.glob("[a-z]*.py"))


def main() -> int:
    """Run those that are named, or all; 1 if one of them failed."""
    parser = argparse.ArgumentParser(description="Runs the benchmarks one after the other.")
    parser.add_argument("--small", action="store_true", help="quick forms, to see that they work")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    asked = parser.parse_args()
    unknown = sorted(set(asked.names) - set(NAMES))
    if unknown:
        parser.error(f"no benchmark is called {', '.join(unknown)}: choose of {', '.join(NAMES)}")
    words = ["--small"] if asked.small else []
    n_failed = 0
    for name in asked.names or NAMES:
        print(f"## {name}\n", flush=True)
        command = [sys.executable, "-m", f"benchmarks.{name}", *words]
        n_failed += subprocess.run(command, cwd=FOLDER.parent, check=False).returncode != 0
    return int(n_failed > 0)


if __name__ == "__main__":
    sys.exit(main())
