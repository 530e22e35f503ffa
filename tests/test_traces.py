"""The decorator that makes exceptions forget variables; tests/test_leaks.py tests where it is."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import traceback
import types
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import ptclust
from ptclust import _traces
from ptclust._traces import guard_functions, leaves_no_trace, shown_half_built
from ptclust.ledger import Payment
from ptclust.planning.plan import PlanRequest
from ptclust.privacy import RandomStream
from ptclust.published import Published

SECRET = 0.123456789


def fail(secret: float) -> float:
    raise ValueError("no") if secret else KeyError("no")


def fail_in_a_handler(secret: float) -> None:
    try:
        fail(secret)
    except ValueError:
        fail(0.0 * secret)


def fail_with_a_cause(secret: float) -> None:
    try:
        fail(secret)
    except ValueError as error:
        raise KeyError("no") from error


def fail_from_none(secret: float) -> None:
    try:
        fail(secret)
    except ValueError:
        raise KeyError("no") from None


def fail_in_a_group(secret: float) -> None:
    errors = []
    for one in (secret, secret / 2):
        try:
            fail(one)
        except ValueError as error:
            errors.append(error)
    raise ExceptionGroup("two", errors)


def fail_in_a_generator(secret: float) -> None:
    def values() -> Iterator[float]:
        inner = secret
        yield inner
        fail(inner)

    list(values())


def fail_with_a_generator_open(secret: float) -> None:
    def values() -> Iterator[float]:
        inner = secret
        with contextlib.suppress(ZeroDivisionError):
            while True:
                yield inner

    for value in values():
        fail(value)


def fail_in_a_context(secret: float) -> None:
    @contextlib.contextmanager
    def managed() -> Iterator[float]:
        inner = secret
        yield inner
        assert inner

    with managed() as value:
        fail(value)


def fail_in_a_thread(secret: float) -> None:
    with ThreadPoolExecutor(2) as executor:
        results = [executor.submit(fail, secret) for _ in range(4)]
        for result in results:
            result.result()


def fail_in_a_comprehension(secret: float) -> None:
    sum([fail(value) for value in (secret, secret)])


def stop(secret: float) -> None:
    held = secret
    raise KeyboardInterrupt if held else SystemExit


FAILURES = [
    fail, fail_in_a_handler, fail_with_a_cause, fail_from_none, fail_in_a_group,
    fail_in_a_generator, fail_with_a_generator_open, fail_in_a_context, fail_in_a_thread,
    fail_in_a_comprehension, stop,
]  # fmt: skip


def all_errors(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    todo = [error]
    while todo:
        one = todo.pop()
        if one is not None and one not in found:
            found.append(one)
            todo += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
    return found


def shown_below(error: BaseException, first: str) -> str:
    """What is shown, with variables, of the functions from the first one of a name on."""
    lines = []
    for one in all_errors(error):
        step = one.__traceback__
        while step is not None and step.tb_frame.f_code.co_name != first:
            step = step.tb_next
        # Of a cause all is shown: it went through no function above the first.
        start = step if one is error else one.__traceback__
        lines += traceback.TracebackException(type(one), one, start, capture_locals=True).format(
            chain=False
        )
    return "".join(lines)


@pytest.mark.parametrize("function", FAILURES, ids=lambda function: function.__name__)
def test_nothing_is_remembered(function):
    expected = (ValueError, KeyError, ExceptionGroup, KeyboardInterrupt)
    with pytest.raises(expected) as caught:
        function(SECRET)
    assert str(SECRET) in shown_below(caught.value, function.__name__), "the test sees it"
    with pytest.raises(expected) as caught:
        leaves_no_trace(function)(SECRET)
    text = shown_below(caught.value, "guard")
    assert str(SECRET) not in text
    assert str(SECRET / 2) not in text
    assert f"in {function.__name__}" in text, "files and lines are still there"
    assert "secret = " not in text


def test_keyword_arguments_are_forgotten():
    with pytest.raises(ValueError, match="no") as caught:
        leaves_no_trace(fail)(secret=SECRET)
    assert str(SECRET) not in shown_below(caught.value, "guard")


def test_notes_and_causes_are_kept():
    def noted(secret: float) -> None:
        try:
            fail_with_a_cause(secret)
        except KeyError as error:
            error.add_note("what to do")
            raise

    with pytest.raises(KeyError) as caught:
        leaves_no_trace(noted)(SECRET)
    assert caught.value.__notes__ == ["what to do"]
    assert isinstance(caught.value.__cause__, ValueError)


def test_what_the_caller_was_handling_is_left_alone():
    """Its variables are the caller's own, and a debugger may need them."""

    def call_in_a_handler() -> None:
        try:
            fail(SECRET)
        except ValueError:
            leaves_no_trace(fail)(0.0)

    with pytest.raises(KeyError) as caught:
        call_in_a_handler()
    assert isinstance(caught.value.__context__, ValueError)
    assert str(SECRET) in shown_below(caught.value.__context__, "fail")


@pytest.mark.parametrize("again", [KeyboardInterrupt, MemoryError])
def test_a_second_interrupt_while_forgetting(monkeypatch, again):
    clear, calls = _traces._clear, []

    def interrupted(*arguments: Any) -> None:
        calls.append(len(arguments))
        if len(calls) == 1:
            raise again
        clear(*arguments)

    monkeypatch.setattr(_traces, "_clear", interrupted)
    with pytest.raises(again) as caught:
        leaves_no_trace(fail)(SECRET)
    assert len(calls) == 2
    assert isinstance(caught.value.__context__, ValueError)
    assert str(SECRET) not in shown_below(caught.value, "guard")


def test_errors_that_are_neither_hashable_nor_comparable():
    class Odd(Exception):  # noqa: N818
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            raise TypeError

    def odd(secret: float) -> None:
        raise Odd if secret else ValueError

    with pytest.raises(Odd) as caught:
        leaves_no_trace(odd)(SECRET)
    step = caught.value.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_name == "odd":
            assert not step.tb_frame.f_locals
        step = step.tb_next


def test_causes_in_a_circle():
    first, second = ValueError("first"), ValueError("second")
    first.__context__, second.__context__ = second, first

    def circle(secret: float) -> None:
        raise first if secret else second

    with pytest.raises(ValueError, match="first"):
        leaves_no_trace(circle)(SECRET)


class TestWhatIsDecorated:
    def test_it_looks_as_before(self):
        guarded = leaves_no_trace(fail)
        assert guarded.__name__ == "fail"
        assert inspect.signature(guarded) == inspect.signature(fail)
        assert guarded.__globals__ is fail.__globals__
        assert inspect.unwrap(guarded) is fail
        assert leaves_no_trace(guarded) is guarded

    def test_generators_and_coroutines_are_refused(self):
        def later() -> Iterator[int]:
            yield 1

        async def much_later() -> None: ...

        for function in (later, much_later):
            with pytest.raises(TypeError, match="guard its caller"):
                leaves_no_trace(function)

    def test_all_methods_of_a_class(self):
        @leaves_no_trace
        class Holder:
            kind = float

            def __init__(self, secret: float, *, ok: bool = True) -> None:
                self.secret = secret if ok else fail(secret)

            def method(self, secret: float) -> float:
                return fail(secret)

            @classmethod
            def of_class(cls, secret: float) -> float:
                return fail(secret)

            @staticmethod
            def alone(secret: float) -> float:
                return fail(secret)

            @property
            def current(self) -> float:
                return fail(self.secret)

            @functools.cached_property
            def cached(self) -> float:
                return fail(self.secret)

            def __reduce__(self) -> Any:
                return fail(self.secret)

            def __repr__(self) -> str:
                return f"Holder(n={self.secret > 0})"

        holder = Holder(SECRET)
        assert repr(holder) == "Holder(n=True)"
        assert repr(Holder.__new__(Holder)) == "Holder(<being built>)"
        assert Holder.kind is float
        calls = [
            lambda: Holder(SECRET, ok=False),
            lambda: holder.method(SECRET),
            lambda: Holder.of_class(SECRET),
            lambda: holder.alone(SECRET),
            lambda: holder.__reduce__(),
            lambda: holder.current,
            lambda: holder.cached,
        ]
        for call in calls:
            with pytest.raises(ValueError, match="no") as caught:
                call()
            assert str(SECRET) not in shown_below(caught.value, "guard")

    def test_the_functions_of_a_module(self, monkeypatch):
        module = types.ModuleType("module_of_this_test")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        code = "def public(): 'shown'\ndef _private(): ...\nnumber = 1\n"
        exec(code, module.__dict__)
        module.__dict__["foreign"] = fail
        guard_functions(module.__name__)
        guarded = [name for name, it in vars(module).items() if hasattr(it, "__leaves_no_trace__")]
        assert guarded == ["public"]
        assert module.public.__doc__ == "shown"


def test_half_built_objects_are_shown():
    """A traceback shows ``self`` of an ``__init__`` that failed."""
    kinds = [getattr(ptclust, name) for name in ptclust.__all__ if name[0].isupper()]
    kinds += [Payment, PlanRequest, Published, RandomStream]
    assert len(kinds) > 15
    for kind in kinds:
        shown = repr(kind.__new__(kind))
        assert shown.startswith(kind.__name__ + "("), shown
    assert repr(ptclust.Graph.__new__(ptclust.Graph)) == "Graph(<being built>)"


def test_only_a_missing_attribute_counts_as_half_built():
    @shown_half_built
    class Wrong:
        def __repr__(self) -> str:
            return str(1 / 0)

    with pytest.raises(ZeroDivisionError):
        repr(Wrong())
