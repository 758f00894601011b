"""Runs a command of manage.py that must not outlive whoever started it.

`python -m simsite.tether FD COMMAND …`: FD is the reading end of a pipe whose writing end only the
starter has. The kernel closes that end however the starter dies, `kill -9` included; this process,
and each that it forks, then ends its whole process group. So it must lead a group of its own.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

import manage


def hold_on(pipe: int) -> None:
    """End this process's group as soon as nobody holds the other end of the pipe."""
    # A fork has none of our threads. Its parent may be killed too, so each looks for itself.
    os.register_at_fork(after_in_child=lambda: _watch(pipe))
    _watch(pipe)


def _watch(pipe: int) -> None:
    threading.Thread(target=_end_with, args=(pipe,), name="tether", daemon=True).start()


def _end_with(pipe: int) -> None:
    os.read(pipe, 1)  # nothing is ever written: this returns at the end of the pipe
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    hold_on(int(sys.argv[1]))
    sys.argv = ["manage.py", *sys.argv[2:]]
    manage.main()
