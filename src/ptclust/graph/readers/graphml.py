"""GraphML files, read as a stream with the XML parser of the standard library.

A document type declaration is refused: GraphML needs none, and its entities can grow without bound.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any
from xml.parsers import expat

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from ptclust._markup import quoted
from ptclust.errors import FileError, PtclustError, WeightError
from ptclust.graph._bounds import check_declared
from ptclust.graph.graph import Edges
from ptclust.graph.readers.columns import ENDS, Columns, Request, known_columns, settled_kind
from ptclust.graph.readers.file import File
from ptclust.graph.readers.tables import as_numbers
from ptclust.graph.topology import Kind, numbered, shown

_DEEPEST = 100


def read_graphml(file: File, request: Request) -> Edges:
    """Return the edges of a GraphML file, and its nodes, with edges or without."""
    reader = _Reader(file, request)
    with file.open_plain() as document:
        reader.parse(document)
    return reader.edges()


class _Reader:
    """Collects nodes and edges from the events of the parser."""

    def __init__(self, file: File, request: Request) -> None:
        self.file, self.request = file, request
        self.numbers: dict[str, int] = {}  # of nodes, by first mention
        self.declared: set[str] = set()  # nodes that have an element
        self.sources, self.targets, self.lines = array("q"), array("q"), array("q")
        self.weights: list[str | None] = []  # as they are written, of all edges
        self.attributes: dict[str, str] = {}  # names of those of edges, by key
        self.defaults: dict[str, str] = {}
        self.weight: str | None = None  # the key of the attribute that is the weight
        self.kind: Kind | None = None
        self.has_graph = False
        self.inside: list[str] = []
        self.key = ""  # declared last
        self.text: list[str] | None = None  # of the value that is being read
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters

    @property
    def line(self) -> int:
        return self.parser.CurrentLineNumber

    def parse(self, document: Any) -> None:
        damaged = False
        try:
            self.parser.ParseFile(document)
        except PtclustError:  # ours, from one of the handlers
            raise
        except (expat.ExpatError, LookupError, ValueError):
            damaged = True
        if damaged:  # raised out here, without a context that may quote the file
            where = f"at line {self.line}; write it again"
            raise FileError(f"{self.file} is not well-formed XML {where}")
        if not self.has_graph:
            raise FileError(f"{self.file} has no <graph> element, so it is not a GraphML file")

    def edges(self) -> Edges:
        sources, targets = np.array(self.sources), np.array(self.targets)
        weights = np.zeros(len(sources)) if self.request.ends_only else self._numbers()
        names: list[Any] = list(self.numbers)
        declared = np.array([name in self.declared for name in names], dtype=bool)
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

        columns = None if self.weight is None else (*ENDS, self.attributes[self.weight])
        return Edges(sources, targets, weights, None, names, say, self.kind, columns)

    def _numbers(self) -> ArrayLike:
        """Return the weights of all edges: integers if all are."""
        if not self.lines:
            return []
        if self.weight is None:
            several = "several edge attributes for" if self._of_weights() else "no edge attribute"
            names = ", ".join(map(shown, list(self.attributes.values())[:20])) or "none"
            lacks = f"{self.file} has {several} {self.request.columns.weight or 'weight'!r}"
            listed = f"its edge attributes are: {names}; name the one to use: weight="
            raise WeightError(f"{lacks}; {listed}")
        name, default = quoted(self.attributes[self.weight]), self.defaults.get(self.weight)
        texts = pl.Series(
            [default if text is None else text for text in self.weights], dtype=pl.String
        )
        if texts.null_count():
            lacks = f"the edge at line {self._line_of_first(texts)} of {self.file} has no {name}"
            raise WeightError(f"{lacks}; give every edge one")
        numbers, where = as_numbers(texts.str.strip_chars()), ""
        if numbers.null_count():
            where = f"at line {self._line_of_first(numbers)}"
        elif default is not None and as_numbers(pl.Series([default.strip()])).null_count():
            where = "that is the default"
        if where:
            give = "give every edge one, or name another attribute: weight="
            raise WeightError(f"the {name} {where} of {self.file} is not a number; {give}")
        return numbers.to_list()

    def _line_of_first(self, missing: Any) -> int:
        return self.lines[int(missing.is_null().to_numpy().argmax())]

    def _of_weights(self) -> list[str]:
        """Return the keys of the attributes that may be the weight."""
        names, asked = list(self.attributes.values()), self.request.columns.weight
        if asked is not None:
            return [key for key, name in self.attributes.items() if name == asked]
        return [list(self.attributes)[i] for i in known_columns("weight", names, Columns())]

    def _doctype(self, *_: object) -> None:
        why = "which is refused because its entities can be harmful; remove the <!DOCTYPE ...>"
        found = f"has a document type declaration (line {self.line})"
        raise FileError(f"{self.file} {found}, {why}")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        parent = self.inside[-1] if self.inside else ""

        def taken(wanted: str) -> str:
            if wanted not in attributes:
                at = f"at line {self.line} of {self.file}"
                raise FileError(f"the <{name}> {at} has no {wanted!r}")
            return attributes[wanted]

        if name == "key":
            self.key = taken("id")
            if attributes.get("for", "all") in ("edge", "all") and not self.has_graph:
                self.attributes[self.key] = attributes.get("attr.name", self.key)
        elif name == "graph":
            if self.has_graph:
                again = f"has a second <graph> at line {self.line}"
                raise FileError(f"{self.file} {again}; keep one graph")
            self.has_graph = True
            found = self._of_weights()  # all attributes are declared before the graph
            if len(found) == 1 and not self.request.ends_only:
                self.weight = found[0]
                asked = self.request.kind
                self.kind = settled_kind(asked, self.attributes[self.weight], self.file)
        elif name == "node":
            node = taken("id")
            if node in self.declared:
                again = f"declares node {shown(node)} a second time"
                raise FileError(f"line {self.line} of {self.file} {again}")
            self.declared.add(node)
            self.numbers.setdefault(node, len(self.numbers))
        elif name == "edge":
            for end, numbers in (("source", self.sources), ("target", self.targets)):
                numbers.append(self.numbers.setdefault(taken(end), len(self.numbers)))
            self.lines.append(self.line)
            self.weights.append(None)
        elif name == "hyperedge":
            found_one = f"has a hyperedge at line {self.line}"
            raise FileError(f"{self.file} {found_one}; an edge joins two nodes")
        elif (name, parent) == ("data", "edge") and self.weight is not None:
            self.text = [] if attributes.get("key") == self.weight else None
        elif (name, parent) == ("default", "key"):
            self.text = []
        self.inside.append(name)
        if len(self.inside) > _DEEPEST:
            raise FileError(f"{self.file} nests elements over {_DEEPEST} deep at line {self.line}")

    def _characters(self, text: str) -> None:
        if self.text is not None:
            self.text.append(text)

    def _end(self, _: str) -> None:
        name = self.inside.pop()
        if self.text is not None and name == "data":
            self.weights[-1], self.text = "".join(self.text), None
        elif self.text is not None and name == "default":
            self.defaults[self.key], self.text = "".join(self.text), None


def _is_canonical_integer(name: str) -> bool:
    digits = name.removeprefix("-")
    return digits.isdecimal() and digits.isascii() and len(digits) < 19 and str(int(name)) == name
