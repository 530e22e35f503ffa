"""Results that survive an interruption: one JSON object a line; a run goes on where it stopped."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ptclust._files import check_writable, make_directory
from ptclust._version import __version__
from ptclust.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

__all__ = ["Records"]


class Records:
    """The records of an experiment, in memory and in a file.

    The first line of the file holds the ``settings`` under which all others were made; going on
    under other settings is refused. A last line that was cut off by an interruption is dropped.

    Parameters
    ----------
    path : Path
    settings : dict
        What makes records comparable: seed, version.
    key : sequence of str
        The fields that identify a record.
    resume : bool
        Keep what the file has; otherwise start anew.
    """

    def __init__(
        self, path: Path, settings: dict[str, Any], key: Sequence[str], *, resume: bool
    ) -> None:
        check_writable(path)
        self._key = tuple(key)
        self._records: dict[tuple[Any, ...], dict[str, Any]] = {}
        kept = self._read(path, settings) if resume and path.exists() else 0
        self._file = path.open("r+b" if kept else "wb")
        self._file.seek(kept)
        self._file.truncate()
        if not kept:
            self._write(settings)

    @classmethod
    def of(
        cls, directory: Path, experiment: str, key: Sequence[str], *, resume: bool, **settings: Any
    ) -> Records:
        """Return the records in ``results.jsonl`` of a directory, which is made if need be."""
        make_directory(directory)
        settings = {"experiment": experiment, "version": __version__, **settings}
        return cls(directory / "results.jsonl", settings, key, resume=resume)

    def _read(self, path: Path, settings: dict[str, Any]) -> int:
        """Load all whole lines; return how many bytes they are."""
        whole, newline, _ = path.read_bytes().rpartition(b"\n")
        if not newline:
            return 0
        try:
            found, *records = map(json.loads, whole.splitlines())
            self._records = {self._key_of(record): record for record in records}
        except (ValueError, KeyError, TypeError):
            raise FileError(
                f"{path} is not a file of results of this experiment; give another directory, or "
                "--restart to replace it"
            ) from None
        if found != settings:
            raise FileError(
                f"{path} was made under {found}, and this run is under {settings}; "
                "give another directory, or --restart to replace it"
            )
        return len(whole) + 1

    def _key_of(self, record: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(record[name] for name in self._key)

    def _write(self, line: dict[str, Any]) -> None:
        try:
            self._file.write(json.dumps(line).encode() + b"\n")
        except OSError as error:
            raise FileError(f"results cannot be written: {error.strerror or error}") from None

    def get(self, *key: Any) -> dict[str, Any] | None:
        """Return the record of this key, or None if it has yet to be made."""
        return self._records.get(key)

    def add(self, record: dict[str, Any]) -> None:
        """Keep a record, and append it to the file."""
        self._records[self._key_of(record)] = record
        self._write(record)

    def made(self, key: tuple[Any, ...], make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the record of this key; where there is none yet, that of what ``make`` returns."""
        record = self.get(*key)
        if record is None:
            record = {**dict(zip(self._key, key, strict=True)), **make()}
            self.add(record)
        return record

    def flush(self) -> None:
        """Hand what was added to the operating system."""
        try:
            self._file.flush()
        except OSError as error:
            raise FileError(f"results cannot be written: {error.strerror or error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
