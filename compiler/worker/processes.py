"""The processes of targets: found wherever they moved to, measured and ended. For the worker and for the runner."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from pathlib import Path

PASSES = 200  # of killing, until nothing is left
PAUSE = 0.01  # seconds between two of them
PR_SET_CHILD_SUBREAPER = 36


def adopt() -> None:
    """From now on, descendants of this process whose parents end become its children (Linux), not those of init."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, *map(ctypes.c_ulong, (1, 0, 0, 0)))


def family(*leaders: int) -> set[int]:
    """The processes that lead, those of their groups, and whatever descends from these.

    A process can leave its group and its session; its ancestors it cannot leave, once they `adopt`.
    """
    rows = list(table())
    leading = set(leaders) - {0}  # a target that has not started; group 0 is other people's
    found = {process for process, _, group in rows if process in leading or group in leading}
    while more := {process for process, parent, _ in rows if parent in found} - found:
        found |= more
    return found


def table() -> Iterator[tuple[int, int, int]]:
    """Id, parent and group of each process that has not ended."""
    if sys.platform != "linux":
        columns = "pid=,ppid=,pgid=,stat="
        listing = subprocess.run(["ps", "-A", "-o", columns], capture_output=True, text=True, check=True).stdout
        for process, parent, group, state in map(str.split, listing.splitlines()):
            if not state.startswith("Z"):
                yield int(process), int(parent), int(group)
        return
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # it is gone meanwhile
                stat = Path(entry.path, "stat").read_bytes()
                state, parent, group = stat.rpartition(b")")[2].split()[:3]
                if state not in b"ZX":
                    yield int(entry.name), int(parent), int(group)


def memory(processes: Collection[int]) -> int:
    """Bytes held by processes. Pages that forks share count once where the system can tell (Linux)."""
    if sys.platform != "linux":
        command = ["ps", "-o", "rss=", "-p", ",".join(map(str, processes))]
        return sum(int(size) << 10 for size in subprocess.run(command, capture_output=True, text=True).stdout.split())
    total = 0
    for process in processes:
        with contextlib.suppress(OSError):
            rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
            total += int(rollup.partition("\nPss:")[2].split()[0]) << 10
    return total


def end(*leaders: int, spare: int = 0) -> None:
    """Kill a family, and what it starts meanwhile, but for the one to `spare`."""
    for _ in range(PASSES):
        left = family(*leaders) - {spare}
        if not left:
            return
        for process in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # it is gone, or runs as another user
                os.kill(process, signal.SIGKILL)
        time.sleep(PAUSE)
