"""A file to read: on disk, or standard input and pipes, which are held in memory."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import sys
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO

from ptclust.errors import FileError, UsageError
from ptclust.graph._bounds import FEW_OF_TEXT, check_expansion

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

STANDARD_INPUT = "-"

_LONGEST = 4 << 30  # of what is held in memory
_CHUNK = 1 << 20

NOT_UTF8 = (
    "say how it is written, encoding='latin-1' or 'cp1252' in Western Europe, or save it as UTF-8"
)


@dataclass(frozen=True, repr=False)
class File:
    """A file that can be opened any number of times; as a string it is what messages call it.

    ``content`` is its path, or its bytes where there is nothing on disk: private values do not go
    to a temporary file.
    """

    name: str
    content: Path | bytes
    place: str  # as it was given: a path, or "-"

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> File:
        """Return the file at a path, or standard input for "-"; check that it can be read."""
        if isinstance(path, File):  # standard input can be read only once
            return path
        path = Path(path)
        place = str(path)
        name = "standard input" if place == STANDARD_INPUT else place
        file, problem = None, ""
        try:
            if place == STANDARD_INPUT:
                file = cls(name, _all_of(_standard_input(), name), place)
            elif path.is_fifo():
                with path.open("rb") as pipe:
                    file = cls(name, _all_of(pipe, name), place)
            else:
                file = cls(name, path, place)
            with file.open() as stream:
                problem = "" if stream.read(1) else "is empty: it has no edges or records"
        except FileNotFoundError:
            problem = "does not exist; check the path"
        except IsADirectoryError:
            problem = "is a directory; name a file in it"
        except PermissionError:
            problem = "may not be read by this user; change its permissions"
        except OSError as error:
            problem = f"cannot be opened: {error.strerror or 'it is closed'}"
        # Raised out here so that it has no context, which may quote what could not be read.
        if file is None or problem:
            raise FileError(f"{name} {problem}")
        return file

    @property
    def size(self) -> int:
        """Number of bytes."""
        content = self.content
        return len(content) if isinstance(content, bytes) else content.stat().st_size

    def open(self) -> BinaryIO:
        """Open the file as it is."""
        content = self.content
        return io.BytesIO(content) if isinstance(content, bytes) else content.open("rb")

    def open_plain(self) -> BinaryIO:
        """Open a text file, decompressed if need be as far as `check_expansion` allows."""
        file = self.open()
        is_gzip = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        return io.BufferedReader(_Expanding(self, file), _CHUNK) if is_gzip else file

    def in_utf8(self, encoding: str | None = None) -> File:
        """Return the file as UTF-8: itself if it is, or what it is in another encoding, in memory.

        FileError if it is not written so, with what to say.
        """
        known = "utf-8" if encoding is None else encoding
        try:
            "".encode(known)
        except (LookupError, ValueError):
            raise UsageError(
                f"encoding must be one that Python knows, as latin-1 or cp1252, not {encoding!r}"
            ) from None
        with self.open_plain() as stream, suppress(UnicodeError):  # which would quote the file
            if encoding is None:
                deque(codecs.iterdecode(iter(partial(stream.read, _CHUNK), b""), known), maxlen=0)
                return self
            text = stream.read().removeprefix(codecs.BOM_UTF8).decode(known)
            return replace(self, content=text.encode().removeprefix(codecs.BOM_UTF8))
        if encoding is None:
            raise FileError(f"{self} is not UTF-8 text; {NOT_UTF8}")
        raise FileError(f"{self} is not {encoding} text; give another encoding=")

    def __str__(self) -> str:
        return self.name

    def __fspath__(self) -> str:
        return self.place


class _Expanding(io.RawIOBase):
    """The content of a gzip file, counted."""

    def __init__(self, of: File, file: BinaryIO) -> None:
        self._of, self._file = of, file
        self._text = gzip.GzipFile(fileobj=file)
        self._expanded = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        count = self._text.readinto(buffer)
        self._expanded += count
        check_expansion(self._expanded, self._of.size, self._of, FEW_OF_TEXT)
        return count

    def close(self) -> None:
        self._text.close()
        self._file.close()
        super().close()


def _standard_input() -> IO[bytes]:
    if sys.stdin is None:
        raise OSError
    return sys.stdin.buffer


def _all_of(stream: IO[bytes], name: str) -> bytes:
    content = bytearray()
    while chunk := stream.read(_CHUNK):
        content += chunk
        if len(content) > _LONGEST:
            raise FileError(f"{name} is over {_LONGEST >> 30} GiB long; write it to a file")
    return bytes(content)
