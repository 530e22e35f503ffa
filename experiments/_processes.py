"""Measurements in processes of their own, so that the peak memory of each is its own."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["peak_bytes", "run_module"]

_ROOT = Path(__file__).parents[1]  # where `python -m` finds the experiments


def run_module(module: str, *arguments: object) -> Any:
    """Run ``python -m module arguments`` and return the JSON that it printed."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(  # noqa: S603
        command, cwd=_ROOT, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def peak_bytes() -> int:
    """Return the peak memory of this process; on Linux ru_maxrss may still count the parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
