"""What the person at the terminal sees while a command works."""

from __future__ import annotations

import sys
import threading
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PATIENCE_SECONDS = 2.0


@contextmanager
def progress_display() -> Iterator[Callable[[str], None]]:
    """Yield a progress callback; a terminal shows what is being done after two seconds of work.

    Meanwhile, warnings about privacy are messages to the person.
    """
    from ptclust.errors import PrivacyWarning

    with warnings.catch_warnings(), _shown() as progress:
        warnings.simplefilter("always", PrivacyWarning)
        show = warnings.showwarning
        warnings.showwarning = lambda text, kind, *where: (
            say(f"Warning: {text}.")
            if issubclass(kind, PrivacyWarning)
            else show(text, kind, *where)
        )
        yield progress


@contextmanager
def _shown() -> Iterator[Callable[[str], None]]:
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from ptclust._kernel import announcement

    announcement.say = say
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    task = progress.add_task("")
    timer = threading.Timer(_PATIENCE_SECONDS, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda description: progress.update(task, description=description)
    finally:
        timer.cancel()
        timer.join()
        progress.stop()


def say(text: str) -> None:
    """Write a message for the person, not for a pipe."""
    sys.stderr.write(text + "\n")
