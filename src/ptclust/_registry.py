"""Objects known by their name: mechanisms, clusterers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from ptclust.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

AUTO = "auto"
"""What stands for a choice from public numbers, so no object has this name."""


class Named(Protocol):
    """Something with the name by which options, files and plans call it."""

    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)


class Registry(Generic[T]):
    """Named objects of one kind, in the order in which they are preferred.

    >>> from types import SimpleNamespace
    >>> tools = Registry("tool")
    >>> tools.register(SimpleNamespace(name="saw"))
    >>> tools["axe"]
    Traceback (most recent call last):
    ...
    ptclust.errors.UsageError: tool must be one of saw, not 'axe'
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._members: dict[str, T] = {}

    def register(self, member: T) -> None:
        """Add an object; UsageError if its name is taken."""
        if member.name == AUTO or member.name in self._members:
            there = f"there is a {self._kind} {member.name!r} already"
            raise UsageError(f"{there}; choose another name")
        self._members[member.name] = member

    def unregister(self, name: str) -> None:
        """Remove the object of this name."""
        del self._members[self[name].name]

    def __getitem__(self, name: object) -> T:
        """Return the object of this name; UsageError lists the names there are."""
        return self._members[self._one_of(self.names, name)]

    def check(self, name: object) -> str:
        """Return the name of an object, or ``auto``; UsageError for anything else."""
        return self._one_of((AUTO, *self.names), name)

    def _one_of(self, names: tuple[str, ...], name: object) -> str:
        if not isinstance(name, str) or name not in names:
            raise UsageError(f"{self._kind} must be one of {', '.join(names)}, not {name!r}")
        return name

    @property
    def names(self) -> tuple[str, ...]:
        """All names."""
        return tuple(self._members)

    def __iter__(self) -> Iterator[T]:
        return iter(tuple(self._members.values()))
