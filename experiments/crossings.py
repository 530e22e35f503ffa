"""How often one run of ``ptclust cluster`` crosses the borders of packages.

A package is the first component below ``ptclust``: ``ptclust.privacy`` is one, and so is every
module at the top, such as ``pipeline`` or ``errors``. The call events of a whole run on the graph
of the demo are followed in order. The caller of a function is the nearest frame of ptclust beneath
it, so that calls through other libraries count, and those through the guard of ``leaves_no_trace``.

A *crossing* is a function of one package that another package calls, counted once for every calling
package. A *file* is visited if one of its functions is called. Left out are the bodies of modules
and all that they call while they are imported, lambdas and comprehensions, calls of methods such as
``__init__`` (making an object is no call into a package), and getters of properties (reading an
attribute is none either); how many there are with getters is shown as well.

Other definitions give other numbers. The number compares states of the code counted alike, and
nothing else.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import redirect_stderr
from dataclasses import dataclass
from functools import cache, cached_property
from inspect import unwrap
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import ptclust
from ptclust import _traces, cli, graph_from_flows
from ptclust.datasets import bike_rides

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import CodeType, FrameType

__all__ = ["CLUSTER_OPTIONS", "Function", "Trace", "trace_cluster"]

CLUSTER_OPTIONS = ("--epsilon", "1")
_PACKAGE = Path(ptclust.__file__).parent


class Function(NamedTuple):
    """A function of ptclust."""

    file: str
    """Below the package, as in ``privacy/plan.py``."""
    name: str

    @property
    def package(self) -> str:
        """The first component below ptclust."""
        return self.file.split("/")[0].removesuffix(".py")

    @property
    def is_special(self) -> bool:
        """Whether Python calls it, as it does ``__init__``."""
        return self.name.rpartition(".")[2].startswith("__")

    def __str__(self) -> str:
        return f"{self.file.removesuffix('.py').replace('/', '.')}.{self.name}"


@dataclass(frozen=True)
class Trace:
    """The calls of a run, from function to function, in the order in which each was first seen."""

    calls: tuple[tuple[Function | None, Function], ...]
    getters: frozenset[Function] = frozenset()
    """Which of the functions called are getters of properties."""

    @property
    def files(self) -> list[str]:
        """The files visited."""
        return sorted({called.file for _, called in self.calls})

    @property
    def pairs(self) -> list[tuple[Function, Function]]:
        """Caller and called, where their packages differ."""
        return [
            (caller, called)
            for caller, called in self.calls
            if caller is not None and caller.package != called.package
        ]

    @property
    def crossings(self) -> list[tuple[str, Function]]:
        """Calling package and called function, each once, getters left out."""
        return [each for each in self.accesses if each[1] not in self.getters]

    @property
    def accesses(self) -> list[tuple[str, Function]]:
        """Calling package and called function, each once, getters included."""
        return list(dict.fromkeys((caller.package, called) for caller, called in self.pairs))

    def to_text(self) -> str:
        """Return the list of crossings, and how many they are."""
        lines = [f"{package} -> {called}" for package, called in self.crossings]
        packages = {called.package for _, called in self.calls}
        summary = (
            f"{len(lines)} crossings ({len(self.accesses)} with getters of properties) between "
            f"{len(packages)} packages; {len(self.files)} files visited"
        )
        return "\n".join([*lines, summary])


def trace_cluster(options: Iterable[str] = CLUSTER_OPTIONS) -> Trace:
    """Run ``ptclust cluster`` on the graph of the demo in this process, and return its calls."""
    with tempfile.TemporaryDirectory() as folder:
        graph, bikes = Path(folder) / "graph.parquet", bike_rides()
        graph_from_flows(bikes.rides, nodes=bikes.nodes).save(graph)
        arguments = ["cluster", str(graph), *options]
        # Modules are imported, and kernels loaded, by a run that is not followed.
        _run([*arguments, "--output", f"{folder}/first.json"])
        calls: dict[tuple[Function | None, Function], None] = {}

        def follow(frame: FrameType, event: str, _: Any) -> None:
            called = _function(frame.f_code)
            if event == "call" and called and not called.is_special and not _imports(frame):
                calls[_caller(frame), called] = None

        sys.setprofile(follow)
        try:
            _run([*arguments, "--output", f"{folder}/second.json"])
        finally:
            sys.setprofile(None)
    return Trace(tuple(calls), frozenset(_getters()))


def _getters() -> Iterator[Function]:
    """Yield the getters of all properties of the modules of ptclust that are imported."""
    modules = [vars(module) for name, module in sys.modules.items() if name.startswith("ptclust")]
    classes = {each for names in modules for each in names.values() if isinstance(each, type)}
    for member in [member for each in classes for member in vars(each).values()]:
        getter: Any = None
        if isinstance(member, property):
            getter = member.fget
        elif isinstance(member, cached_property):
            getter = member.func
        if getter is not None and (found := _function(unwrap(getter).__code__)):
            yield found


@cache
def _function(code: CodeType) -> Function | None:
    """Return the function of ptclust that code belongs to, but for lambdas and decorators."""
    path = Path(code.co_filename)
    of_package = path.is_relative_to(_PACKAGE) and path != Path(_traces.__file__)
    if code.co_name.startswith("<") or not of_package:
        return None
    return Function(path.relative_to(_PACKAGE).as_posix(), code.co_qualname)


def _caller(frame: FrameType) -> Function | None:
    """Return the nearest function of ptclust beneath a frame."""
    below = frame.f_back
    while below is not None:
        if found := _function(below.f_code):
            return found
        below = below.f_back
    return None


def _imports(frame: FrameType | None) -> bool:
    """Whether a module of ptclust is being imported."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if frame.f_code.co_name == "<module>" and name.startswith("ptclust."):
            return True
        frame = frame.f_back
    return False


def _run(arguments: Sequence[str]) -> None:
    before, messages = sys.argv, StringIO()
    sys.argv = ["ptclust", *arguments]
    try:
        with redirect_stderr(messages):
            cli.main()
    except SystemExit as end:
        if end.code:
            raise RuntimeError(messages.getvalue()) from None
    finally:
        sys.argv = before
