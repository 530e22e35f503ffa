"""Compile numba kernels, and keep their machine code on disk where it cannot become outdated.

A kernel takes and returns plain numpy arrays and scalars, and releases the GIL, so that a progress
display keeps moving. Only its first call on a machine pays for compilation.

numba's own cache looks at one source file: after an edit of a kernel that another file calls, it
would serve outdated machine code. Here the cache directory is named by a digest of all sources that
end in kernels. Every compiled signature is one file, written under another name and then renamed:
processes that compile at the same time cannot disturb each other.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

_F = TypeVar("_F", bound="Callable[..., Any]")

_PACKAGE = Path(__file__).parent
#: Directories of other digests that are kept, the last used: other Pythons, other versions.
_KEPT = 4


def kernel(function: _F, **options: Any) -> _F:
    """Compile ``function`` with numba in nopython mode, cached on disk and without the GIL."""
    dispatcher = numba.njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
    if hasattr(dispatcher, "enable_caching"):  # not under NUMBA_DISABLE_JIT
        sources()  # as they are imported, not as they are at the first call
        dispatcher._cache = _Cache(function)
    return cast("_F", dispatcher)


def inlined(function: _F) -> _F:
    """Compile a small helper that a kernel calls in its innermost loop."""
    return kernel(function, inline="always")


def merged(function: _F) -> _F:
    """Compile ``function`` into its one caller: a call might raise, and counts references then."""
    return kernel(function, forceinline=True)


class Announcement:
    """Says once that kernels are being compiled, if whoever talks to a person has set ``say``."""

    say: Callable[[str], None] | None = None

    def compiling(self) -> None:
        """Announce that a kernel was not in the cache."""
        if self.say is not None:
            self.say("Compiling for this machine, once: this takes up to a minute.")
            self.say = None


announcement = Announcement()


class _Cache:
    """What numba asks for the machine code of one kernel (``numba.core.caching._Cache``)."""

    def __init__(self, function: Callable[..., Any]) -> None:
        name = f"{function.__module__}.{function.__qualname__}-{function.__code__.co_firstlineno}"
        self._name = re.sub(r"[<>]", "", name)

    @property
    def cache_path(self) -> str | None:
        """The directory of the cache, or None if there is none."""
        directory = cache_directory()
        return None if directory is None else str(directory)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return the compiled kernel, or None if it has to be compiled."""
        context.refresh()
        path = self._file(signature, context.codegen())
        # Whatever is wrong with a file of the cache, the kernel can be compiled instead.
        with contextlib.suppress(Exception):
            if path is not None:
                stored, compiled = pickle.loads(path.read_bytes())  # noqa: S301
                if stored == signature:
                    return CompileResult._rebuild(context, *compiled)
        announcement.compiling()
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Store a kernel that has been compiled."""
        path, code = self._file(signature, result.codegen), sources()
        if path is None or code is None or not code.are_unchanged():
            return  # of sources that were edited since, nobody knows which version was compiled
        if result.library.has_dynamic_globals:
            return  # such code holds addresses in this process
        content = dumps((signature, result._reduce()))
        with contextlib.suppress(OSError):
            descriptor, name = tempfile.mkstemp(suffix=".tmp", dir=path.parent)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(content)
                Path(name).replace(path)
            except OSError:
                Path(name).unlink()

    def _file(self, signature: Any, codegen: Any) -> Path | None:
        directory = cache_directory()
        key = repr((str(signature), codegen.magic_tuple())).encode()
        name = f"{self._name}-{hashlib.sha256(key).hexdigest()[:16]}.nbc"
        return None if directory is None else directory / name

    def enable(self) -> None:
        """Do nothing: the cache is always on."""

    disable = flush = enable


class Sources:
    """The files whose content may end in machine code, as they are at the first kernel.

    That is every module of the package that defines a kernel, and every module of the package that
    such a one imports, as constants and types are compiled in.
    """

    def __init__(self, package: Path) -> None:
        modules = {}
        for path in package.rglob("*.py"):
            parts = (package.name, *path.relative_to(package).with_suffix("").parts)
            modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
        texts = {name: path.read_bytes() for name, path in modules.items()}
        wanted, home = set[str](), f"from {package.name}._kernel import".encode()
        pending = [name for name in texts if home in texts[name]]
        while pending:
            name = pending.pop()
            if name in texts and name not in wanted:
                wanted.add(name)
                pending += _imports(package.name, texts[name].decode())
        self.files = [modules[name] for name in sorted(wanted)]
        self._stamp = self._stamp_now()
        versions = sys.version, np.__version__, numba.__version__
        options = numba.config.OPT, numba.config.BOUNDSCHECK  # numba itself knows the processor
        content = versions, options, [(name, texts[name]) for name in sorted(wanted)]
        self.digest = hashlib.sha256(repr(content).encode()).hexdigest()[:16]

    def _stamp_now(self) -> list[tuple[int, int]]:
        return [(stat.st_mtime_ns, stat.st_size) for stat in map(Path.stat, self.files)]

    def are_unchanged(self) -> bool:
        """Return whether the files are still those that were imported."""
        try:
            return self._stamp_now() == self._stamp
        except OSError:
            return False


def _imports(package: str, text: str) -> Iterator[str]:
    """Yield the modules of the package that are imported when a module with this text is."""
    pattern = rf"^(?:from|import) ({package}(?:\.\w+)*)(?: import (\([^)]*\)|[^\n]*))?"
    for module, names in re.findall(pattern, text, re.MULTILINE):
        yield module
        yield from (f"{module}.{name}" for name in re.findall(r"\w+", names))


@functools.cache
def sources() -> Sources | None:
    """Return the sources of this package, or None if they cannot be read, as in an archive."""
    try:
        found = Sources(_PACKAGE)
    except OSError:
        return None
    return found if found.files else None


@functools.cache
def cache_directory() -> Path | None:
    """Return the directory of the machine code of these sources, or None if none can be written.

    It lies in NUMBA_CACHE_DIR if that is set, else beside the package's byte code, else in the
    user's cache directory.
    """
    code = sources()
    user = AppDirs(appname=_PACKAGE.name, appauthor=False).user_cache_dir
    for parent in (numba.config.CACHE_DIR, _PACKAGE / "__pycache__", user):
        if code is not None and parent:
            directory = Path(parent) / f"{_PACKAGE.name}-kernels-{code.digest}"
            with contextlib.suppress(OSError):
                directory.mkdir(parents=True, exist_ok=True)
                tempfile.TemporaryFile(dir=directory).close()
                os.utime(directory)  # was used now
                remove_old(directory)
                return directory
    return None


def remove_old(directory: Path) -> None:
    """Remove the cache directories beside this one, but for the last used ones.

    Only files that a cache writes are removed, so a directory with anything else in it stays. A
    process that still uses one of them compiles again.
    """
    with contextlib.suppress(OSError):
        found = directory.parent.glob(f"{_PACKAGE.name}-kernels-" + 16 * "[0-9a-f]")
        others = [path for path in found if path != directory and not path.is_symlink()]
        for path in sorted(others, key=lambda path: path.stat().st_mtime)[:-_KEPT]:
            with contextlib.suppress(OSError):
                for file in (*path.glob("*.nbc"), *path.glob("*.tmp")):
                    file.unlink()
                path.rmdir()
