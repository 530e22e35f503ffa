"""Records that are written to files, and checks of their fields; every error names the field."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from functools import cache, partial
from numbers import Integral, Real
from types import MappingProxyType, NoneType
from typing import Annotated, Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

from ptclust._markup import quoted
from ptclust.errors import InputError, UsageError

_UUID4 = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_types_of: Callable[[type], dict[str, Any]] = cache(partial(get_type_hints, include_extras=True))


@dataclass(frozen=True)
class Record:
    """A frozen dataclass whose fields are checked by their types, and written to files by name."""

    _called: ClassVar[str]  # what errors call it

    def __init_subclass__(cls, *, called: str) -> None:
        super().__init_subclass__()
        cls._called = called

    def __post_init__(self) -> None:
        types = _types_of(type(self))
        for each in fields(self):
            value = as_type(each.name, getattr(self, each.name), types[each.name])
            object.__setattr__(self, each.name, value)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain objects, ready for JSON."""
        return {each.name: plain(getattr(self, each.name)) for each in fields(self)}

    @classmethod
    def given(cls, data: object, *derived: str) -> dict[str, Any]:
        """Return what was written for every field, and for what is derived from them."""
        return exactly(cls._called, data, (*(each.name for each in fields(cls)), *derived))

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Read what ``to_dict`` wrote; InputError if a field is missing, unknown or wrong."""
        return cls(**cls.given(data))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_dict, (self.to_dict(),)


def as_type(field: str, value: Any, wanted: Any) -> Any:
    """Return a value as the type of its field has it; InputError if it does not fit.

    A type is annotated with its check, or lists the words there are, or is a class that reads what
    its ``to_dict`` wrote. There may be several in a tuple, or None instead.
    """
    kind, parts = get_origin(wanted), get_args(wanted)
    if kind is Annotated:
        return parts[1](field, value)
    if kind is Literal:
        return choice(field, value, parts)
    if NoneType in parts:
        return None if value is None else as_type(field, value, parts[0])
    if kind is tuple:
        if not isinstance(value, (list, tuple)):
            raise InputError(f"{field} must be a list, not {type(value).__name__}")
        return tuple(as_type(f"{field}[{i}]", item, parts[0]) for i, item in enumerate(value))
    if isinstance(value, wanted):
        return value
    written = mapping(field, value)
    try:
        return wanted.from_dict(written)
    except (InputError, UsageError) as error:
        raise InputError(f"{field}: {error}") from None


def plain(value: Any) -> Any:
    """Return an object as JSON has it."""
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return dict(value)
    return value.to_dict() if hasattr(value, "to_dict") else value


def text(field: str, value: object, *, empty: bool = False) -> str:
    """Return one line of text; control characters are refused, as terminals obey them."""
    if not isinstance(value, str):
        raise InputError(f"{field} must be text, not {type(value).__name__}")
    if not empty and not value.strip():
        raise InputError(f"{field} must not be empty")
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in value):
        raise InputError(f"{field} holds a control character; write it as one line of text")
    return value


def texts(field: str, value: object) -> tuple[str, ...]:
    """Return several lines of text."""
    if not isinstance(value, (list, tuple)):
        raise InputError(f"{field} must be a list of texts, not {type(value).__name__}")
    return tuple(text(f"{field}[{i}]", item) for i, item in enumerate(value))


def choice(field: str, value: object, choices: tuple[str, ...]) -> object:
    """Return one of the words given."""
    if value not in choices:
        raise InputError(f"{field} must be one of {', '.join(choices)}, not {quoted(value)}")
    return value


def number(field: str, value: object) -> float:
    """Return a finite number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"{field} must be a number, not {type(value).__name__}")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise InputError(f"{field} must be a finite number, not {result}")
    return result


def positive(field: str, value: object) -> float:
    """Return a finite number above 0."""
    if (result := number(field, value)) <= 0:
        raise InputError(f"{field} must be above 0, not {result:g}")
    return result


def not_negative(field: str, value: object) -> float:
    """Return a finite number of at least 0."""
    if (result := number(field, value)) < 0:
        raise InputError(f"{field} must not be negative, not {result:g}")
    return result


def interval(field: str, value: object) -> tuple[float, float]:
    """Return two finite numbers, the smaller first."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise InputError(f"{field} must be two numbers")
    low, high = (number(field, bound) for bound in value)
    if not low < high:
        raise InputError(f"{field} must be two numbers, the smaller first")
    return low, high


def numbers(field: str, value: object, *, words: bool = False) -> Mapping[str, Any]:
    """Return a read-only mapping to finite numbers, or words; whole numbers stay whole."""
    found: dict[str, int | float | str] = {}
    for key, item in mapping(field, value).items():
        where = f"{field}[{quoted(key)}]"
        if words and isinstance(item, str):
            found[key] = text(where, item)
        else:
            finite = number(where, item)
            found[key] = int(item) if isinstance(item, Integral) else finite
    return MappingProxyType(found)


def mapping(field: str, value: object) -> Mapping[str, Any]:
    """Return ``value`` if it is a mapping whose keys are words."""
    if not isinstance(value, Mapping):
        raise InputError(f"{field} must be a mapping, not {type(value).__name__}")
    for key in value:
        text(f"a key of {field}", key)
    return value


def exactly(what: str, value: object, fields: Iterable[str]) -> dict[str, Any]:
    """Return ``value`` as a dict with these fields: none missing, none unknown."""
    given, wanted = dict(mapping(what, value)), set(fields)
    if missing := sorted(wanted - set(given)):
        raise InputError(f"{what} lacks the field {missing[0]!r}")
    if unknown := sorted(set(given) - wanted):
        raise InputError(f"{what} has an unknown field {quoted(unknown[0])}")
    return given


def uuid4(field: str, value: object) -> str:
    """Return a random UUID in its usual spelling."""
    written = text(field, value)
    if not _UUID4.fullmatch(written):
        raise InputError(f"{field} must be a version 4 UUID in lower case, not {quoted(written)}")
    return written


def utc_time(field: str, value: object) -> str:
    """Return a time in ISO 8601 with the offset of UTC."""
    written = text(field, value)
    try:
        offset = datetime.fromisoformat(written).utcoffset()
    except ValueError:
        offset = None
    if offset != timedelta(0):
        given = quoted(written)
        raise InputError(f"{field} must be a time as 2026-01-31T12:00:00+00:00, not {given}")
    return written


Text = Annotated[str, text]
AnyText = Annotated[str, partial(text, empty=True)]
Texts = Annotated[tuple[str, ...], texts]
Positive = Annotated[float, positive]
NotNegative = Annotated[float, not_negative]
RandomId = Annotated[str, uuid4]
