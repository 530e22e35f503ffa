"""Every exception ptclust raises on purpose.

::

    PtclustError
    ├── UsageError                a parameter is outside what the function accepts     (exit code 2)
    ├── InputError                the data cannot be used as they are                  (exit code 3)
    │   ├── FileError             a file cannot be found, opened or understood
    │   ├── GraphError            the edges do not form a simple undirected graph
    │   └── WeightError           a weight is missing, not a number, or out of range
    ├── BudgetError               the budget left in a ledger does not cover a charge  (exit code 4)
    └── MissingDependencyError    an optional package is needed for the request        (exit code 2)

    PrivacyWarning                a release shows or guarantees less than it may seem

The text of an error says what is wrong, where, and what to do about it. It never contains a weight:
a message ends up in logs, and a log is not a mechanism. Nor does it contain a password that is in
the address of a database.
"""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path
from typing import ClassVar

__all__ = [
    "BudgetError",
    "FileError",
    "GraphError",
    "InputError",
    "MissingDependencyError",
    "PrivacyWarning",
    "PtclustError",
    "UsageError",
    "WeightError",
    "warn_of_privacy",
]


_SECRETS = re.compile(r"(?<=\w\w:/)(/?)\S*:\S*@|(?<=[?&]password=)[^\s&]+")


class PtclustError(Exception):
    """Base of all errors raised on purpose.

    An address in place of a path may be quoted; who logs in there, and how, is left out.

    >>> print(UsageError("no file postgresql://ada:secret@host/name?password=secret"))
    no file postgresql://host/name?password=...
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: object = "") -> None:
        super().__init__(
            _SECRETS.sub(lambda found: found[1] if found[1] is not None else "...", str(message))
        )


class UsageError(PtclustError, ValueError):
    """A parameter is outside what the function accepts."""

    exit_code = 2


class InputError(PtclustError, ValueError):
    """The data cannot be used as they are."""

    exit_code = 3


class FileError(InputError):
    """A file cannot be found, opened or understood."""


class GraphError(InputError):
    """The edges do not form a simple undirected graph."""


class WeightError(InputError):
    """A weight is missing, not a number, or out of range for what was requested."""


class BudgetError(PtclustError):
    """A ledger refuses a charge: what is left of the budget does not cover it."""

    exit_code = 4


class MissingDependencyError(PtclustError, ImportError):
    """An optional package is needed for what was requested."""

    exit_code = 2

    def __init__(self, package: str, purpose: str, extra: str | None = None) -> None:
        brings = f"pip install 'ptclust[{extra or package}]' brings it"
        super().__init__(f"{purpose} needs the package {package!r}: {brings}")


class PrivacyWarning(UserWarning):
    """A release shows or guarantees less than it may seem."""


def warn_of_privacy(text: str) -> None:
    """Give a PrivacyWarning that names the line by which the package was called."""
    package, frame, level = str(Path(__file__).parent), sys._getframe().f_back, 2
    while frame is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, PrivacyWarning, stacklevel=level)
