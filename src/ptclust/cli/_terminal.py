"""Progress, messages and warnings on the terminal."""

from __future__ import annotations

import re
import shlex
import sys
import threading
import warnings
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any

from ptclust.errors import PrivacyWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import typer

_PATIENCE_SECONDS = 2.0
_WORD = r"'(?:[^'\\]|\\.)*'"
_VALUE = (
    rf"{_WORD}(?:(?:, | or ){_WORD})*|\([^()]*\)|True|False|-?\d[\d.]*(?:e[-+]?\d+)?|[a-z](?!\.?\w)"
)
_ONE_WORD = re.compile(r"'([^'\s]+)'")  # several words stay in quotes, one value
_QUOTED_OR_ARGUMENT = re.compile(
    rf"(?<!\w){_WORD}|(?<![\w./-])(?P<name>\w+)(?:=(?:(?P<value>{_VALUE})|(?!\w))|(?![\w=]|[./-]\w))"
)


@contextmanager
def progress_display() -> Iterator[Callable[[str], None]]:
    """Yield a progress callback; a terminal shows what is being done after two seconds of work.

    That kernels are compiled is said without a terminal, too: it takes long, and comes once.
    """
    from ptclust._kernel import announcement

    announcement.say = say
    try:
        with _spinner() if sys.stderr.isatty() else nullcontext(lambda _: None) as progress:
            yield progress
    finally:
        announcement.say = None


@contextmanager
def _spinner() -> Iterator[Callable[[str], None]]:
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

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


Options = dict[str, tuple[str, str]]  # what sets each parameter, and what sets it to False


@cache
def options_of(commands: typer.Typer) -> Options:
    """Return the options of all commands, by the names of the parameters."""
    from typer.main import get_command

    found: Options = {}
    left: list[Any] = [get_command(commands)]
    while left:
        command = left.pop()
        left += getattr(command, "commands", {}).values()
        for each in command.params:
            if each.param_type_name == "option":
                on = max(each.opts, key=len)
                found[each.name] = on, max(each.secondary_opts, key=len, default=on)
    return found


def in_options(text: str, options: Options | None = None) -> str:
    """Return a message about Python's arguments as one about options, by default ptclust's.

    >>> known = {name: (f"--{name}", f"--no-{name}") for name in ("clip", "merge", "sort")}
    >>> in_options("give clip=(0, 1), merge='min' or 'max', or sort=False (not other=1)", known)
    'give --clip 0 1, --merge min or max, or --no-sort (not other=1)'

    Words in quotes are the person's own, and so are other words after a name.

    >>> in_options("merge=x.csv has no 'clip=1'; name the paper's: clip=", known)
    "merge=x.csv has no 'clip=1'; name the paper's: --clip"

    Without a value, a name is one for certain only if it is of several words.

    >>> in_options("clip or n_clips", known | {"n_clips": ("--n-clips", "")})
    'clip or --n-clips'
    """
    if options is None:
        from ptclust.cli import app

        return in_options(text, options_of(app))

    def option(found: re.Match[str]) -> str:
        name, value = found["name"], found["value"]
        if name not in options or not ("=" in found[0] or "_" in name):
            return found[0]
        on, off = options[name]
        if value in (None, "True", "False"):
            return off if value == "False" else on
        in_order = value[0] == "("
        for_shell = _ONE_WORD.sub(lambda word: shlex.quote(word[1]), value)
        plain = value[1:-1].replace(",", "") if in_order else for_shell
        return f"{on} {plain}"

    return _QUOTED_OR_ARGUMENT.sub(option, text)


@contextmanager
def shown_warnings(show: Callable[[str], None]) -> Iterator[None]:
    """Show warnings about privacy, which are messages to the person, in one line each."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", PrivacyWarning)
        usual = warnings.showwarning
        warnings.showwarning = lambda text, kind, *where: (
            show(" ".join(str(text).split()))
            if issubclass(kind, PrivacyWarning)
            else usual(text, kind, *where)
        )
        yield


def say(text: str) -> None:
    """Write a message for the person, not for a pipe."""
    sys.stderr.write(text + "\n")
