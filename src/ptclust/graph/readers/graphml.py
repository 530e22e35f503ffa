"""GraphML files, read as a stream with the XML parser of the standard library.

A document type declaration is refused: GraphML needs none, and its entities can grow without bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from ptclust.errors import FileError, InputError, WeightError
from ptclust.graph._bounds import open_plain
from ptclust.graph.graph import Edges
from ptclust.graph.topology import numbered, shown

_DEEPEST = 100


def read_graphml(path: Path, weight: str | None) -> Edges:
    """Return the edges of a GraphML file; nodes, with edges or without, keep the file's order."""
    reader = _Reader(path, weight or "weight")
    with open_plain(path) as document:
        reader.parse(document)
    return reader.edges()


class _Reader:
    """Collects nodes and edges from the events of the parser."""

    def __init__(self, path: Path, weight: str) -> None:
        self.path = path
        self.weight = weight
        self.weight_key: str | None = None
        self.key: str | None = None  # declared last
        self.default: float | None = None
        self.edge_attributes: list[str] = []
        self.numbers: dict[str, int] = {}
        self.ends: list[tuple[str, str]] = []
        self.weights: list[float | None] = []
        self.lines: list[int] = []
        self.inside: list[str] = []
        self.graphs = 0
        self.text: list[str] | None = None  # of the weight that is being read

    def parse(self, document: Any) -> None:
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        line = 0
        try:
            self.parser.ParseFile(document)
        except InputError:  # ours, from one of the handlers
            raise
        except (expat.ExpatError, LookupError, ValueError):
            line = self.parser.CurrentLineNumber
        if line:  # raised out here, without a context that may quote the file
            raise FileError(f"{self.path} is not well-formed XML at line {line}; write it again")
        if not self.graphs:
            raise FileError(f"{self.path} has no <graph> element, so it is no GraphML file")

    def edges(self) -> Edges:
        weights = self._checked_weights()
        sources, targets = np.empty((2, len(self.ends)), dtype=np.int64)
        for edge, (source, target) in enumerate(self.ends):
            for node in (source, target):
                if node not in self.numbers:
                    joins = f"at line {self.lines[edge]} of {self.path} joins node {shown(node)}"
                    declare = "which the file does not declare; add a <node>"
                    raise FileError(f"the edge {joins}, {declare}")
            sources[edge], targets[edge] = self.numbers[source], self.numbers[target]
        names: list[Any] = list(self.numbers)
        if all(_is_canonical_integer(name) for name in names):
            names = [int(name) for name in names]

        def say(edges: Iterable[int]) -> str:
            return numbered("line", f" of {self.path}")(self.lines[edge] for edge in edges)

        return Edges(sources, targets, weights, None, names, say)

    def _checked_weights(self) -> list[float]:
        if self.weight_key is None and self.ends:
            there = ", ".join(map(shown, self.edge_attributes)) or "none"
            lacks = f"{self.path} has no edge attribute {self.weight!r}"
            listed = f"its edge attributes are: {there}; name the one to use: weight="
            raise WeightError(f"{lacks}; {listed}")
        weights = [value for value in self.weights if value is not None]
        if len(weights) < len(self.weights):
            where = f"at line {self.lines[self.weights.index(None)]} of {self.path}"
            such = f"({self.weights.count(None)} such edges in all); give every edge one"
            raise WeightError(f"the edge {where} has no {self.weight!r} {such}")
        return weights

    def _doctype(self, *_: object) -> None:
        found = f"has a document type declaration (line {self.parser.CurrentLineNumber})"
        why = "which is refused because its entities can be harmful; remove the <!DOCTYPE ...>"
        raise FileError(f"{self.path} {found}, {why}")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        line = self.parser.CurrentLineNumber
        if name == "key":
            self._key(attributes)
        elif name == "graph":
            self.graphs += 1
            if self.graphs > 1:
                raise FileError(f"{self.path} has a second <graph> at line {line}; keep one graph")
        elif name == "node":
            node = self._attribute(attributes, "id", name)
            if self.numbers.setdefault(node, len(self.numbers)) != len(self.numbers) - 1:
                twice = shown(node)
                raise FileError(f"line {line} of {self.path} declares node {twice} a second time")
        elif name == "edge":
            source = self._attribute(attributes, "source", name)
            self.ends.append((source, self._attribute(attributes, "target", name)))
            self.weights.append(self.default)
            self.lines.append(line)
        elif name == "hyperedge":
            raise FileError(f"{self.path} has a hyperedge at line {line}; an edge joins two nodes")
        elif self._begins_weight(name, attributes):
            self.text = []
        self.inside.append(name)
        if len(self.inside) > _DEEPEST:
            raise FileError(f"{self.path} nests elements over {_DEEPEST} deep at line {line}")

    def _key(self, attributes: dict[str, str]) -> None:
        self.key = self._attribute(attributes, "id", "key")
        if attributes.get("for", "all") in ("edge", "all"):
            name = attributes.get("attr.name", self.key)
            self.edge_attributes.append(name)
            if name == self.weight:
                self.weight_key = self.key

    def _begins_weight(self, name: str, attributes: dict[str, str]) -> bool:
        if self.weight_key is None or not self.inside:
            return False
        if name == "data":
            return self.inside[-1] == "edge" and attributes.get("key") == self.weight_key
        in_key = name == "default" and self.inside[-1] == "key"
        return in_key and self.key == self.weight_key

    def _characters(self, text: str) -> None:
        if self.text is not None:
            self.text.append(text)

    def _end(self, tag: str) -> None:
        self.inside.pop()
        if self.text is None:
            return
        value = _number("".join(self.text))
        self.text = None
        if value is None:
            bad = f"the {self.weight!r} at line {self.parser.CurrentLineNumber} of {self.path}"
            give = "give every edge one, or name another attribute: weight="
            raise WeightError(f"{bad} is not a number; {give}")
        if tag.rpartition(" ")[2] == "data":
            self.weights[-1] = value
        else:
            self.default = value

    def _attribute(self, attributes: dict[str, str], wanted: str, name: str) -> str:
        if wanted not in attributes:
            line = self.parser.CurrentLineNumber
            raise FileError(f"the <{name}> at line {line} of {self.path} has no {wanted!r}")
        return attributes[wanted]


def _number(text: str) -> float | None:
    """Return the number, or None; never an exception, which would quote the text."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _is_canonical_integer(name: str) -> bool:
    digits = name.removeprefix("-")
    return digits.isdecimal() and digits.isascii() and len(digits) < 19 and str(int(name)) == name
