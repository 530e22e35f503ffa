"""GraphML files, read as a stream with the XML parser of the standard library.

A document type declaration is refused: GraphML needs none, and its entities can grow without bound.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable
from contextlib import suppress
from typing import Any
from xml.parsers import expat

import numpy as np
from numpy.typing import ArrayLike

from ptclust._markup import quoted
from ptclust.errors import FileError, PtclustError, WeightError
from ptclust.graph._bounds import check_declared
from ptclust.graph.graph import Edges
from ptclust.graph.readers.columns import ENDS, Columns, Request, known_columns, settled_kind
from ptclust.graph.readers.file import File
from ptclust.graph.topology import Kind, numbered, shown

_DEEPEST = 100
_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,19}\s*")


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
        """Return the weights of all edges."""
        if self.weight is None:
            if not self.lines:
                return []
            several = "several edge attributes for" if self._of_weights() else "no edge attribute"
            names = ", ".join(map(shown, list(self.attributes.values())[:20])) or "none"
            lacks = f"{self.file} has {several} {self.request.columns.weight or 'weight'!r}"
            listed = f"its edge attributes are: {names}; name the one to use: weight="
            raise WeightError(f"{lacks}; {listed}")
        default = self.defaults.get(self.weight)
        texts = [default if text is None else text for text in self.weights]
        if None in texts:
            name, where = self.attributes[self.weight], self.lines[texts.index(None)]
            lacks = f"the edge at line {where} of {self.file} has no {quoted(name)}"
            raise WeightError(f"{lacks}; give every edge one")
        lines = zip(texts, self.lines, strict=True)
        return [self._number(str(text), f"at line {line}") for text, line in lines]

    def _number(self, text: str, where: str) -> float:
        """Return the number, an int if it is one; the error does not quote it."""
        number: float | None = None
        with suppress(ValueError):
            number = None if "_" in text else float(text)
        if number is None:
            name = quoted(self.attributes[str(self.weight)])
            give = "give every edge one, or name another attribute: weight="
            raise WeightError(f"the {name} {where} of {self.file} is not a number; {give}")
        return int(text) if _INTEGER.fullmatch(text) and abs(int(text)) < 2**63 else number

    def _of_weights(self) -> list[str]:
        """Return the keys of the attributes that may be the weight."""
        names, asked = list(self.attributes.values()), self.request.columns.weight
        found = known_columns("weight", names, Columns())
        if asked is not None:
            found = [i for i, name in enumerate(names) if name == asked]
        return [list(self.attributes)[i] for i in found]

    def _doctype(self, *_: object) -> None:
        found = f"has a document type declaration (line {self.parser.CurrentLineNumber})"
        why = "which is refused because its entities can be harmful; remove the <!DOCTYPE ...>"
        raise FileError(f"{self.file} {found}, {why}")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        line = self.parser.CurrentLineNumber
        parent = self.inside[-1] if self.inside else ""
        if name == "key":
            self.key = self._attribute(attributes, "id", name)
            if attributes.get("for", "all") in ("edge", "all") and not self.has_graph:
                self.attributes[self.key] = attributes.get("attr.name", self.key)
        elif name == "graph":
            if self.has_graph:
                raise FileError(f"{self.file} has a second <graph> at line {line}; keep one graph")
            self.has_graph = True
            self._choose_weight()
        elif name == "node":
            node = self._attribute(attributes, "id", name)
            if node in self.declared:
                twice = shown(node)
                raise FileError(f"line {line} of {self.file} declares node {twice} a second time")
            self.declared.add(node)
            self.numbers.setdefault(node, len(self.numbers))
        elif name == "edge":
            for end, numbers in (("source", self.sources), ("target", self.targets)):
                node = self._attribute(attributes, end, name)
                numbers.append(self.numbers.setdefault(node, len(self.numbers)))
            self.lines.append(line)
            self.weights.append(None)
        elif name == "hyperedge":
            raise FileError(f"{self.file} has a hyperedge at line {line}; an edge joins two nodes")
        elif (name, parent) == ("data", "edge") and self.weight is not None:
            self.text = [] if attributes.get("key") == self.weight else None
        elif (name, parent) == ("default", "key"):
            self.text = []
        self.inside.append(name)
        if len(self.inside) > _DEEPEST:
            raise FileError(f"{self.file} nests elements over {_DEEPEST} deep at line {line}")

    def _choose_weight(self) -> None:
        """Choose the attribute that is the weight: all are declared before the graph."""
        found = self._of_weights()
        if len(found) == 1 and not self.request.ends_only:
            self.weight = found[0]
            self.kind = settled_kind(self.request.kind, self.attributes[self.weight], self.file)
            if self.weight in self.defaults:
                self._number(self.defaults[self.weight], "that is the default")

    def _characters(self, text: str) -> None:
        if self.text is not None:
            self.text.append(text)

    def _end(self, _: str) -> None:
        name = self.inside.pop()
        if self.text is not None and name == "data":
            self.weights[-1], self.text = "".join(self.text), None
        elif self.text is not None and name == "default":
            self.defaults[self.key], self.text = "".join(self.text), None

    def _attribute(self, attributes: dict[str, str], wanted: str, name: str) -> str:
        if wanted not in attributes:
            line = self.parser.CurrentLineNumber
            raise FileError(f"the <{name}> at line {line} of {self.file} has no {wanted!r}")
        return attributes[wanted]


def _is_canonical_integer(name: str) -> bool:
    digits = name.removeprefix("-")
    return digits.isdecimal() and digits.isascii() and len(digits) < 19 and str(int(name)) == name
