"""GraphML files, read as a stream with the XML parser of the standard library.

A document type declaration is refused: GraphML needs none, and its entities can grow without bound.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable
from typing import Any
from xml.parsers import expat

import numpy as np
from numpy.typing import ArrayLike

from ptclust._markup import quoted
from ptclust.errors import FileError, PtclustError, WeightError
from ptclust.graph._bounds import check_declared
from ptclust.graph.graph import Edges
from ptclust.graph.readers.columns import Columns, known_columns, settled_kind
from ptclust.graph.readers.file import File
from ptclust.graph.topology import Kind, numbered, shown

_DEEPEST = 100
_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,19}\s*")


def read_graphml(
    file: File, weight: str | None, kind: Kind | None = None, *, ends_only: bool = False
) -> Edges:
    """Return the edges of a GraphML file, and its nodes, with edges or without.

    With ``ends_only`` all weights are zero, and what the file says of them is not looked at.
    """
    weights = None if ends_only else _Weights(file, weight, kind)
    reader = _Reader(file, weights)
    with file.open_plain() as document:
        reader.parse(document)
    return reader.edges()


class _Weights:
    """The weights of the edges: one of their attributes, chosen where the graph begins."""

    def __init__(self, file: File, asked: str | None, kind: Kind | None) -> None:
        self.file, self.asked, self.kind = file, asked, kind
        self.attributes: dict[str, str] = {}  # names by key; all are declared before the graph
        self.defaults: dict[str, str] = {}
        self.key: str | None = None
        self.name = ""
        self.default: float | None = None
        self.values: list[float | None] = []

    def choose(self) -> None:
        found = self._found()
        if len(found) == 1:
            self.key, self.name = list(self.attributes.items())[found[0]]
            self.kind = settled_kind(self.kind, self.name, self.file)
            if self.key in self.defaults:
                self.default = self.number(self.defaults[self.key], "that is the default")

    def number(self, text: str, where: str) -> float:
        value = _number(text)
        if value is None:
            give = "give every edge one, or name another attribute: weight="
            raise WeightError(
                f"the {quoted(self.name)} {where} of {self.file} is not a number; {give}"
            )
        return value

    def checked(self, lines: array[int]) -> ArrayLike:
        if self.key is None and lines:
            several = "several edge attributes for" if self._found() else "no edge attribute"
            names = ", ".join(map(shown, list(self.attributes.values())[:20])) or "none"
            lacks = f"{self.file} has {several} {self.asked or 'weight'!r}"
            listed = f"its edge attributes are: {names}; name the one to use: weight="
            raise WeightError(f"{lacks}; {listed}")
        if None in self.values:
            where = f"at line {lines[self.values.index(None)]} of {self.file}"
            raise WeightError(f"the edge {where} has no {quoted(self.name)}; give every edge one")
        return self.values  # type: ignore[return-value]

    def _found(self) -> list[int]:
        names = list(self.attributes.values())
        if self.asked is None:
            return known_columns("weight", names, Columns())
        return [i for i, name in enumerate(names) if name == self.asked]


class _Reader:
    """Collects nodes and edges from the events of the parser."""

    def __init__(self, file: File, weights: _Weights | None) -> None:
        self.file, self.weights = file, weights
        self.numbers: dict[str, int] = {}  # of nodes, by first mention
        self.declared = bytearray()  # by number, whether the node has an element
        self.sources, self.targets, self.lines = array("q"), array("q"), array("q")
        self.inside: list[str] = []
        self.graphs = 0
        self.key = ""  # declared last
        self.text: list[str] | None = None  # of the value that is being read

    def parse(self, document: Any) -> None:
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        line = 0
        try:
            self.parser.ParseFile(document)
        except PtclustError:  # ours, from one of the handlers
            raise
        except (expat.ExpatError, LookupError, ValueError):
            line = self.parser.CurrentLineNumber
        if line:  # raised out here, without a context that may quote the file
            raise FileError(f"{self.file} is not well-formed XML at line {line}; write it again")
        if not self.graphs:
            raise FileError(f"{self.file} has no <graph> element, so it is not a GraphML file")

    def edges(self) -> Edges:
        sources, targets = np.array(self.sources), np.array(self.targets)
        weights = (
            np.zeros(len(sources)) if self.weights is None else self.weights.checked(self.lines)
        )
        kind = None if self.weights is None else self.weights.kind
        names: list[Any] = list(self.numbers)
        declared = np.array(self.declared, dtype=bool)
        bad = ~(declared[sources] & declared[targets])
        if bad.any():
            edge = int(bad.argmax())
            node = next(names[end[edge]] for end in (sources, targets) if not declared[end[edge]])
            joins = f"at line {self.lines[edge]} of {self.file} joins node {shown(node)}"
            raise FileError(f"the edge {joins}, which the file does not declare; add a <node>")
        check_declared(len(names), len(sources), self.file)
        if all(_is_canonical_integer(name) for name in names):
            names = [int(name) for name in names]

        def say(edges: Iterable[int]) -> str:
            return numbered("line", f" of {self.file}")(self.lines[edge] for edge in edges)

        columns = None if self.weights is None else ("source", "target", self.weights.name)
        return Edges(sources, targets, weights, None, names, say, kind, columns)

    def _doctype(self, *_: object) -> None:
        found = f"has a document type declaration (line {self.parser.CurrentLineNumber})"
        why = "which is refused because its entities can be harmful; remove the <!DOCTYPE ...>"
        raise FileError(f"{self.file} {found}, {why}")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        line = self.parser.CurrentLineNumber
        if name == "key":
            self._start_key(attributes)
        elif name == "graph":
            self.graphs += 1
            if self.graphs > 1:
                raise FileError(f"{self.file} has a second <graph> at line {line}; keep one graph")
            if self.weights is not None:
                self.weights.choose()
        elif name == "node":
            node = self._attribute(attributes, "id", name)
            number = self._number_of(node)
            if self.declared[number]:
                twice = shown(node)
                raise FileError(f"line {line} of {self.file} declares node {twice} a second time")
            self.declared[number] = True
        elif name == "edge":
            self.sources.append(self._number_of(self._attribute(attributes, "source", name)))
            self.targets.append(self._number_of(self._attribute(attributes, "target", name)))
            self.lines.append(line)
            if self.weights is not None:
                self.weights.values.append(self.weights.default)
        elif name == "hyperedge":
            raise FileError(f"{self.file} has a hyperedge at line {line}; an edge joins two nodes")
        elif self._begins_value(name, attributes):
            self.text = []
        self.inside.append(name)
        if len(self.inside) > _DEEPEST:
            raise FileError(f"{self.file} nests elements over {_DEEPEST} deep at line {line}")

    def _start_key(self, attributes: dict[str, str]) -> None:
        self.key = self._attribute(attributes, "id", "key")
        of_edges = attributes.get("for", "all") in ("edge", "all")
        if self.weights is not None and of_edges and not self.graphs:
            self.weights.attributes[self.key] = attributes.get("attr.name", self.key)

    def _number_of(self, node: str) -> int:
        number = self.numbers.setdefault(node, len(self.numbers))
        if number == len(self.declared):
            self.declared.append(False)
        return number

    def _begins_value(self, name: str, attributes: dict[str, str]) -> bool:
        if self.weights is None or not self.inside:
            return False
        if name == "data" and self.inside[-1] == "edge" and self.weights.key is not None:
            return attributes.get("key") == self.weights.key
        return name == "default" and self.inside[-1] == "key"

    def _characters(self, text: str) -> None:
        if self.text is not None:
            self.text.append(text)

    def _end(self, tag: str) -> None:
        self.inside.pop()
        name = tag.rpartition(" ")[2]
        if self.text is None or self.weights is None or name not in ("data", "default"):
            return
        text = "".join(self.text)
        self.text = None
        if name == "data":
            where = f"at line {self.parser.CurrentLineNumber}"
            self.weights.values[-1] = self.weights.number(text, where)
        else:
            self.weights.defaults[self.key] = text

    def _attribute(self, attributes: dict[str, str], wanted: str, name: str) -> str:
        if wanted not in attributes:
            line = self.parser.CurrentLineNumber
            raise FileError(f"the <{name}> at line {line} of {self.file} has no {wanted!r}")
        return attributes[wanted]


def _number(text: str) -> float | None:
    """Return the number, an int if it is one; or None, for an exception would quote the text."""
    try:
        value = None if "_" in text else float(text)
    except ValueError:
        return None
    return int(text) if _INTEGER.fullmatch(text) and abs(int(text)) < 2**63 else value


def _is_canonical_integer(name: str) -> bool:
    digits = name.removeprefix("-")
    return digits.isdecimal() and digits.isascii() and len(digits) < 19 and str(int(name)) == name
