"""The metadata of a graph in a Parquet file that ptclust wrote, and how stale metadata is noticed.

A file of edges has one entry ``ptclust`` among its key-value metadata, a JSON object::

    {"format": "ptclust-graph", "version": 1,
     "kind": "distance" | "similarity",
     "merge": null | "min" | "max" | "sum" | "mean",
     "topology_of_data": bool,
     "alone": [names of nodes without an edge],
     "provenance": null | {...},
     "topology_digest": "sha256:...", "digest": "sha256:..."}

The first digest is taken of all the words above it, the names of the nodes and the edges; the
second of the first and the weights. Programs that change rows may copy metadata as it is (pyarrow
does): the bound on what one person can do would then be that of another graph. The digests find
that; a forger can compute them anew.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ptclust._traces import leaves_no_trace
from ptclust.errors import FileError, InputError, UsageError
from ptclust.graph.topology import Kind, Topology, check_kind
from ptclust.privacy import _checks as check
from ptclust.privacy.provenance import Provenance

if TYPE_CHECKING:
    from ptclust._types import Floats
    from ptclust.graph.graph import Graph

KEY = "ptclust"
COLUMNS = ("source", "target", "weight")

_FORMAT, _VERSION = "ptclust-graph", 1
_FIELDS = ("kind", "merge", "topology_of_data", "alone", "provenance", "topology_digest", "digest")
_MERGES = ("min", "max", "sum", "mean")


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """What a file says of its graph."""

    kind: Kind
    merge: Any
    topology_of_data: bool
    alone: tuple[int | str, ...]  # names of nodes without an edge
    provenance: Provenance | None
    topology_digest: str = ""
    digest: str = ""

    @classmethod
    @leaves_no_trace
    def of(cls, graph: Graph) -> Metadata:
        """Return what is to be said of a graph; InputError if no file can hold its names."""
        joined = np.zeros(graph.n_nodes, dtype=bool)
        joined[graph.sources] = joined[graph.targets] = True
        names = _plain_names(graph.topology)
        words = cls(
            kind=graph.kind,
            merge=graph.merge,
            topology_of_data=graph.topology_of_data,
            alone=tuple(names[node] for node in np.flatnonzero(~joined).tolist()),
            provenance=graph.provenance,
        )
        digest = words._digest_of(graph.topology)
        both = _digest_with(digest, graph.weights)
        return replace(words, topology_digest=digest, digest=both)

    def encode(self) -> str:
        """Return the entry of a file."""
        return json.dumps({"format": _FORMAT, "version": _VERSION, **self._plain()})

    @classmethod
    def decode(cls, text: bytes, where: object) -> Metadata:
        """Read the entry of a file; FileError if it is none of ours."""
        try:
            return cls._of_document(json.loads(text))
        except (InputError, UsageError) as error:
            problem = str(error)
        except (ValueError, RecursionError):
            problem = "it is not JSON"
        raise FileError(
            f"what {where} says of its graph (metadata {KEY!r}) cannot be used: {problem}; build "
            "or save the graph again"
        )

    @classmethod
    def _of_document(cls, document: object) -> Metadata:
        if not isinstance(document, dict) or document.pop("format", None) != _FORMAT:
            raise InputError(f"it is not of the format {_FORMAT!r}")
        if (version := document.pop("version", None)) != _VERSION:
            raise InputError(f"it is of version {version!r}, and this ptclust reads {_VERSION}")
        given = check.exactly("it", document, _FIELDS)
        check_kind(given["kind"])
        if given["merge"] is not None:
            check.choice("merge", given["merge"], _MERGES)
        if type(given["topology_of_data"]) is not bool:
            raise InputError("topology_of_data must be true or false")
        if given["provenance"] is not None:
            given["provenance"] = Provenance.from_dict(given["provenance"])
        alone = given["alone"]
        if not isinstance(alone, list) or {*map(type, alone)} not in ({int}, {str}, set()):
            raise InputError("alone must be a list of names")
        given["alone"] = tuple(alone)
        for name in ("topology_digest", "digest"):
            check.text(name, given[name])
        return cls(**given)

    @leaves_no_trace
    def verify(self, topology: Topology, weights: Floats | None, where: object) -> None:
        """Refuse a file that was changed since these words were written.

        Without ``weights``, which were not read, the topology is all that can be compared.
        """
        digest = self._digest_of(topology)
        changed = weights is not None and _digest_with(digest, weights) != self.digest
        if changed or digest != self.topology_digest:
            raise FileError(
                f"{where} was changed after ptclust wrote it, and what it says of its graph, such "
                "as the sensitivity, may not hold any more; build the graph again, or remove the "
                f"metadata {KEY!r} and give kind= and the sensitivity yourself"
            )

    def _plain(self) -> dict[str, Any]:
        provenance = None if self.provenance is None else self.provenance.to_dict()
        return {**vars(self), "alone": list(self.alone), "provenance": provenance}

    def _digest_of(self, topology: Topology) -> str:
        words = {k: v for k, v in self._plain().items() if not k.endswith("digest")}
        content = [words, _plain_names(topology)]
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode("ascii"))
        for ends in (topology.sources, topology.targets):
            digest.update(ends.astype("<i8").tobytes())
        return f"sha256:{digest.hexdigest()}"


@leaves_no_trace
def edge_table(graph: Graph) -> pl.DataFrame:
    """Return the table of the file of a graph."""
    names = _plain_names(graph.topology)
    called = pl.Series(names, dtype=pl.String if names and isinstance(names[0], str) else pl.Int64)
    ends = (called.gather(ends) for ends in (graph.sources, graph.targets))
    return pl.DataFrame(dict(zip(COLUMNS, (*ends, pl.Series(graph.weights)), strict=True)))


def _digest_with(topology_digest: str, weights: Floats) -> str:
    digest = hashlib.sha256(topology_digest.encode("ascii"))
    digest.update(weights.astype("<f8").tobytes())
    return f"sha256:{digest.hexdigest()}"


def _plain_names(topology: Topology) -> list[Any]:
    """Return the names, all integers or all texts."""
    names: list[Any] = topology.names.tolist()
    kinds = {type(name) for name in names}
    fits = kinds == {str} or all(-(2**63) <= name < 2**63 for name in names if kinds == {int})
    if kinds not in ({int}, {str}, set()) or not fits:
        raise InputError(
            "a graph file names nodes all by integers of 64 bits or all by texts; rename the nodes "
            "of this graph first"
        )
    return names
