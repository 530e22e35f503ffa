"""Atomic writing of files, none of which is replaced by accident."""

from __future__ import annotations

import os
import secrets
import unicodedata
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

from ptclust.errors import FileError

_LONGEST_SUFFIX = 16  # no format has one as long


def check_writable(path: Path) -> None:
    """Raise FileError now, before long work, if ``path`` cannot be written later."""
    if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises for a name that is too long
        raise FileError(f"{path} is a directory; give the name of a file to write")
    for name in (path, temporary_name(path)):
        try:
            os.lstat(name)
        except (FileNotFoundError, NotADirectoryError):
            pass  # the usual case, and what is said of directories below
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise FileError(f"{path} cannot be written: {reason}; give another name") from None
    if path.exists() and not path.is_file():
        raise FileError(f"{path} is not a regular file; give the name of a file to write")
    if not path.parent.is_dir():
        raise FileError(f"the directory {path.parent} does not exist; create it first")
    if not os.access(path.parent, os.W_OK):
        raise FileError(f"no permission to write in the directory {path.parent}")


def temporary_name(path: Path) -> Path:
    """Return a new name beside ``path``, with its suffix, that is no longer for a long name."""
    return path.with_name(f".{secrets.token_hex(8)}{path.suffix[:_LONGEST_SUFFIX]}")


def make_directory(path: Path) -> None:
    """Make a directory, and those above it, if it is not there; FileError if that cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"the directory {path} cannot be made: {error.strerror}") from None


def same_file(one: Path, other: Path) -> bool:
    """Return whether two names mean one file, or would where case and Unicode form do not count.

    >>> same_file(Path("a/../b.csv"), Path("B.csv")), same_file(Path("a.csv"), Path("b.csv"))
    (True, False)
    """
    places = (os.path.realpath(path) for path in (one, other))
    if len({unicodedata.normalize("NFC", place).casefold() for place in places}) == 1:
        return True
    try:
        return one.samefile(other)  # a hard link, or a directory that is mounted twice
    except OSError:
        return False


@contextmanager
def reserved(path: Path, remedy: str) -> Iterator[None]:
    """Hold a name that no file has, for one that is to be written; FileError if there is a file.

    An empty file holds it: of several processes only one can make that. It goes again unless what
    was to be written, which is never empty, took its place.
    """
    check_writable(path)
    mine = not os.path.lexists(path)
    try:
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            mine = False
            empty = path.is_file() and path.stat().st_size == 0
            held = ", empty: another run holds the name, or was killed" * empty
            raise FileError(f"{path} exists already{held}; {remedy}") from None
        except OSError as error:
            raise FileError(f"{path} could not be written: {error.strerror or error}") from error
        yield
    finally:
        with suppress(OSError):  # what was written, or the error that is raised, matters more
            if mine and path.is_file() and path.stat().st_size == 0:
                path.unlink()


def held(path: Path, overwrite: bool, why: str = "") -> AbstractContextManager[None]:
    """Hold the name of a file that is to be written, unless it may replace another."""
    remedy = "choose another name, or say overwrite=True if that file is not wanted any more"
    return nullcontext() if overwrite else reserved(path, why + remedy)


_set_aside: dict[Path, Path] = {}  # files that hold space, by the files that are to be there


@contextmanager
def space_for(path: Path, size: int) -> Iterator[None]:
    """Hold bytes of the disk for what `written_at_once` is to write; FileError if it is full.

    They go to the first file that is written there, if its writer does not cut it off first.
    """
    check_writable(path)
    temporary = temporary_name(path)
    try:
        try:
            temporary.touch(exist_ok=False)
            with temporary.open("r+b") as file:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, size)
                else:
                    file.write(bytes(size))
        except OSError as error:
            needs = f"{path} could not be written: it needs {size:,} bytes"
            raise FileError(f"{needs}, and {error.strerror or error}") from error
        _set_aside[path] = temporary
        yield
    finally:
        _set_aside.pop(path, None)
        with suppress(OSError):  # it has become the file, or was never made
            temporary.unlink()


@contextmanager
def written_at_once(path: Path, mode: int = 0o666) -> Iterator[Path]:
    """Yield a temporary file beside ``path`` that takes its place, or vanishes on any error.

    It keeps the suffix, by which some writers choose a format. ``mode`` is what others may do with
    it, as far as the user allows that (umask): 0o600 for private values.
    """
    check_writable(path)
    # Named before it is made: whenever an interruption comes, it is known what to remove.
    aside = _set_aside.pop(path, None)
    temporary = aside or temporary_name(path)
    try:
        temporary.touch(mode, exist_ok=aside is not None)
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    except OSError as error:
        raise FileError(f"{path} could not be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):  # it was moved, or never made
            temporary.unlink()
