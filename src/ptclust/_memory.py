"""Reuse of freed memory."""

from __future__ import annotations

import ctypes
from contextlib import suppress

# Numbers of glibc's mallopt.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_MOST, _STEP = 2**31 - 1, 2**26


def keep_freed_memory() -> None:
    """Keep the memory of large arrays that are not needed any more for those that follow.

    By default every large array is asked of the system, which clears it page by page, and given
    back. A process that makes one result and ends saves that; others may want the memory. Where the
    C library is not glibc, nothing changes.
    """
    with suppress(AttributeError, OSError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _MOST), (_TOP_PAD, _STEP)):
            mallopt(parameter, value)
