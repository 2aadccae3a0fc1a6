"""The worker: started once by path under the user's interpreter, it imports torch and forks a process per target.

    python main.py DESCRIPTOR      requests as JSON lines on standard input, events as JSON lines on DESCRIPTOR

Events: `ready` (versions) or `fatal`, then for each request `started` (the process group), `phase`, `part` (what was
found so far), `trial`, one of `done`, `failed` and `crashed`, and at last `ended`. Where standard input closes, the
worker ends with all that it has started. Standard library and torch only.
"""

from __future__ import annotations

import faulthandler
import importlib
import importlib.util
import json
import os
import pathlib
import platform
import re
import select
import sys
import types
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
VERSIONS = HERE.parent / "versions"
PACKAGE = "tlint_worker"  # not `inputs`, `load`, …: the user's modules may be called so
POLL = 0.02  # seconds between two looks whether a target has ended


def serve(descriptor: int) -> None:
    os.set_inheritable(descriptor, False)
    channel = package("channel")
    say = channel.Channel(descriptor)
    try:
        import torch
        import torch._dynamo
    except Exception as error:
        why = channel.describe(error, (str(HERE),))
        say.send("fatal", detail=f"cannot import torch under {sys.executable}: {why}")
        return
    try:
        stages, adapter = package("stages"), adapter_for(torch.__version__)
        with adapter.hooks(None), adapter.inductor_replaced(None), adapter.disabled(()):
            pass  # every private name is there
    except (ImportError, AttributeError) as error:
        say.send("fatal", detail=f"torch {torch.__version__} lacks what is needed to watch its compiler: {error}")
        return
    processes = package("processes")
    processes.adopt()
    stages.warm()
    torch.set_num_threads(1)  # OpenMP does not survive a fork once it has started threads
    say.send("ready", torch=torch.__version__, triton=triton_version(), python=platform.python_version())
    for line in sys.stdin:
        request = json.loads(line)
        child = channel.fork(lambda: work(request, stages, adapter, channel, descriptor))
        group(child)
        say.send("started", pid=child)
        status = wait(child)
        processes.end(os.getpid(), child, spare=os.getpid())  # what the target left behind
        if status is None:
            return
        say.send("ended", ending=None if status == 0 else channel.ending(os.waitstatus_to_exitcode(status)))


def wait(child: int) -> int | None:
    """The status of a child that has ended; None where the runner ended first, which closes our standard input."""
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG)  # or of an orphan that came to us
        if ended == child:
            return status
        if not ended and select.select([0], [], [], POLL)[0]:  # requests come one by one: this is the end
            return None


def work(
    request: dict[str, Any],
    stages: types.ModuleType,
    adapter: types.ModuleType,
    channel: types.ModuleType,
    descriptor: int,
) -> None:
    group(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    faulthandler.enable()
    sys.argv = [request["path"] or request["module"]]
    say = channel.Channel(descriptor)
    try:
        stages.observe(request, adapter, say)
    except channel.Failed as failure:
        say.send("failed", status=failure.status, detail=failure.detail, phase=failure.phase)
    except channel.Crashed as crash:
        say.send("crashed", ending=str(crash))
    else:
        say.send("done")


def group(process: int) -> None:
    """Give a child its own process group, to be killed as one. Parent and child both do it, whoever is first."""
    try:
        os.setpgid(process, process)
    except (PermissionError, ProcessLookupError):  # it has done so itself, or is gone
        return


def package(name: str) -> types.ModuleType:
    """A module of this folder, imported under a name that no module of the user's has."""
    if PACKAGE not in sys.modules:
        parent = types.ModuleType(PACKAGE)
        parent.__path__ = [str(HERE)]
        sys.modules[PACKAGE] = parent
    return importlib.import_module(f"{PACKAGE}.{name}")


def adapter_for(version: str) -> types.ModuleType:
    """The adapter of the newest known version that is not newer than the torch at hand, else the oldest."""
    sys.path.append(str(VERSIONS))
    folders = (file.parent.name for file in VERSIONS.glob("v*_*/adapter.py"))
    known = sorted((tuple(int(part) for part in folder[1:].split("_")), folder) for folder in folders)
    running = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    fitting = [name for key, name in known if key <= running] or [known[0][1]]
    return importlib.import_module(f"{fitting[-1]}.adapter")


def triton_version() -> str:
    from importlib import metadata

    for name in ("triton", "pytorch-triton", "pytorch-triton-rocm", "triton-windows"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return ""


if __name__ == "__main__":
    # Our own folder, which comes first unless PYTHONSAFEPATH says otherwise.
    sys.path[:] = [entry for entry in sys.path if pathlib.Path(entry).resolve() != HERE]
    serve(int(sys.argv[1]))
