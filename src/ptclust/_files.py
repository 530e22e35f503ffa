"""Writing files so that a reader never finds half of one."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ptclust.errors import FileError


def check_writable(path: Path) -> None:
    """Raise FileError now, before long work, if ``path`` cannot be written later."""
    if path.is_dir():
        raise FileError(f"{path} is a directory; give the name of a file to write")
    if not path.parent.is_dir():
        raise FileError(f"the directory {path.parent} does not exist; create it first")
    if not os.access(path.parent, os.W_OK):
        raise FileError(f"no permission to write in the directory {path.parent}")


def make_directory(path: Path) -> None:
    """Make a directory, and those above it, if it is not there; FileError if that cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"the directory {path} cannot be made: {error.strerror}") from None


@contextmanager
def written_at_once(path: Path) -> Iterator[Path]:
    """Yield a temporary file beside ``path`` that takes its place, or vanishes on any error.

    It keeps the suffix, by which some writers choose a format.
    """
    check_writable(path)
    # Named before it is made: whenever an interruption comes, it is known what to remove.
    temporary = path.with_name(f".{path.stem}.{secrets.token_hex(8)}{path.suffix}")
    try:
        temporary.touch(exist_ok=False)
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    except OSError as error:
        raise FileError(f"{path} could not be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)
