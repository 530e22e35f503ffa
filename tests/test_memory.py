from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from ptclust._memory import keep_freed_memory

N_ARRAYS, SIZE, PAGE = 8, 2**26, 2**12
PAGES = f"""
import resource, sys
from ptclust._memory import keep_freed_memory

if sys.argv[1] == "kept":
    keep_freed_memory()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range({N_ARRAYS}):
    bytearray(b"1") * {SIZE}
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def pages(how: str) -> int:
    """Return how many pages a process asks the system for that makes arrays, one at a time."""
    done = subprocess.run(
        [sys.executable, "-c", PAGES, how], check=True, capture_output=True, text=True
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries do as they like")
def test_memory_of_an_array_serves_the_next():
    assert pages("kept") < 2 * SIZE / PAGE < pages("given back")


def test_other_libraries_are_left_alone(monkeypatch):
    monkeypatch.setattr("ctypes.CDLL", lambda _: object())
    keep_freed_memory()
