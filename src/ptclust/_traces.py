"""Tracebacks without values: they show lines, and no variables.

A traceback keeps the variables of every function that an exception went through. Tools for logs and
debugging (sentry, rich, cgitb, pytest, ``traceback.TracebackException(capture_locals=True)``) show
them, raw weights included. So a function that sees private weights and may be called from outside
is decorated with `leaves_no_trace`: whatever is raised in it or below it, Ctrl-C included, arrives
at the caller with the variables of all these functions forgotten.

To see them while debugging this package, set ``ptclust._traces._clear = lambda *_: None``.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from contextlib import suppress
from traceback import walk_tb
from types import FunctionType
from typing import Any, TypeVar, cast

_F = TypeVar("_F", bound=Callable[..., Any])
_C = TypeVar("_C", bound=type)


def leaves_no_trace(guarded: _F) -> _F:
    """Make exceptions forget the variables of a function and of all that it called.

    Of a class, all methods and properties are decorated, and it is `shown_half_built`. Files,
    lines, notes and causes of an exception stay as they are.

    >>> @leaves_no_trace
    ... def mean(values):
    ...     total = sum(values)
    ...     return total / 0
    >>> try:
    ...     mean([0.25, 0.5])
    ... except ZeroDivisionError as error:
    ...     inside = error.__traceback__.tb_next.tb_next
    >>> inside.tb_frame.f_code.co_name, inside.tb_frame.f_locals
    ('mean', {})
    """
    if isinstance(guarded, type):
        for name, member in list(vars(guarded).items()):
            changed = member if name == "__repr__" else _guarded_member(member)
            if changed is not member:
                setattr(guarded, name, changed)
        return cast("_F", shown_half_built(guarded))
    return cast("_F", _guarded(guarded))


def guard_functions(module: str) -> None:
    """Decorate all public functions of a module with `leaves_no_trace`; its last line calls it."""
    names = vars(sys.modules[module])
    for name, value in list(names.items()):
        own = isinstance(value, FunctionType) and value.__module__ == module
        if own and not name.startswith("_"):
            names[name] = leaves_no_trace(value)


def _guarded_member(member: Any) -> Any:
    if isinstance(member, FunctionType):
        return _guarded(member)
    if isinstance(member, (classmethod, staticmethod)):
        return type(member)(_guarded(member.__func__))
    if isinstance(member, property) and member.fget is not None:
        return member.getter(_guarded(member.fget))
    if isinstance(member, functools.cached_property):
        member.func = _guarded(member.func)
    return member


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise TypeError(f"{function.__qualname__} runs after its call has ended: guard its caller")
    if hasattr(function, "__leaves_no_trace__"):
        return function
    handled_now, forget_frames = sys.exception, forget

    def guard(*args: Any, **kwargs: Any) -> Any:
        # Nothing above the try can be interrupted but the call itself, while the arguments are
        # still the caller's alone.
        handled = None
        try:
            handled = handled_now()
            return function(*args, **kwargs)
        except BaseException as error:
            del args, kwargs
            forget_frames(error, handled)
            del handled
            raise

    # With the globals of the function it is one of its module, as doctest asks.
    names = getattr(function, "__globals__", guard.__globals__)
    moved = FunctionType(guard.__code__, names, closure=guard.__closure__)
    moved.__dict__["__leaves_no_trace__"] = True
    return functools.update_wrapper(moved, function)


def forget(error: BaseException, handled: BaseException | None = None) -> None:
    """Clear the variables of all functions that an exception and its causes went through.

    Functions that still run keep theirs: those above the caller. So do those of ``handled``, the
    exception that was being handled when the caller was called, and of what led to it.
    """
    try:
        _clear(error, handled)
    except BaseException as second:  # Ctrl-C again; the first exception is its context
        _clear(second, handled)
        raise


def _clear(error: BaseException, handled: BaseException | None) -> None:
    """Clear the frames of an exception, of those it came from, and of the members of a group."""
    pending: list[BaseException | None] = [error]
    seen = {id(handled)}
    while pending:
        one = pending.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        for frame, _ in walk_tb(one.__traceback__):
            with suppress(RuntimeError):  # it is running
                frame.clear()
        pending += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            pending += one.exceptions


def shown_half_built(cls: _C) -> _C:
    """Give the objects of a class a ``repr`` before they have all of their attributes.

    A traceback shows ``self``, also that of an ``__init__`` that failed.

    >>> @shown_half_built
    ... class Point:
    ...     def __repr__(self):
    ...         return f"Point({self.x})"
    >>> Point()
    Point(<being built>)
    """
    complete: Callable[..., str] = cls.__repr__

    @functools.wraps(complete)
    def show(self: Any, *options: Any, **named: Any) -> str:
        try:
            return complete(self, *options, **named)
        except AttributeError:
            return f"{type(self).__name__}(<being built>)"

    cls.__repr__ = show  # type: ignore[method-assign,assignment]
    return cls
