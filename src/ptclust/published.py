"""The border between private and public, as a type: what a mechanism published."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ptclust._traces import leaves_no_trace
from ptclust._types import Floats
from ptclust.errors import InputError
from ptclust.graph.topology import Kind, Topology, as_distances
from ptclust.privacy.noise import Noise
from ptclust.trees.tree import Tree


@leaves_no_trace
@dataclass(frozen=True, eq=False)
class Published:
    """Noisy values that a mechanism published; all that follows sees only these.

    Parameters
    ----------
    mechanism : str
        The name of the mechanism.
    noise : Noise
        What was added to the weights.
    tree : Tree
        The published spanning tree with its noisy weights; of a whole graph, the minimum spanning
        tree of its noisy weights. InputError if it holds private weights.
    topology : Topology, optional
        The whole topology, if the weights of all edges were published; ``edge_ids`` of the tree
        count its edges. By default the topology of the tree.
    noisy_weights : array of float, optional
        The noisy weight of every edge of ``topology``. By default the weights of the tree.

    Notes
    -----
    *Privacy.* Published values only: whatever is computed from them is post-processing.
    """

    mechanism: str
    noise: Noise
    tree: Tree
    topology: Topology
    noisy_weights: Floats

    def __init__(
        self,
        mechanism: str,
        noise: Noise,
        tree: Tree,
        topology: Topology | None = None,
        noisy_weights: Floats | None = None,
    ) -> None:
        for name, part, kind in (("tree", tree, Tree), ("noise", noise, Noise)):
            if not isinstance(part, kind):
                raise InputError(f"{name} must be a {kind.__name__}, not {type(part).__name__}")
        if tree.private:
            raise InputError(
                "the tree holds private weights; a release is made of noisy weights only"
            )
        ids = tree.edge_ids
        if ids.dtype.kind not in "iu" or (len(ids) and ids[0] < 0):
            raise InputError("edge_ids of the tree must be whole numbers from 0")
        if topology is None and noisy_weights is None:
            topology, noisy_weights = tree.topology, tree.weights
        elif topology is None or noisy_weights is None:
            raise InputError("topology and noisy_weights must be given together")
        else:
            noisy_weights = _fitting(tree, topology, noisy_weights)
        parts = mechanism, noise, tree, topology, noisy_weights
        for field, value in zip(fields(self), parts, strict=True):
            object.__setattr__(self, field.name, value)

    @property
    def kind(self) -> Kind:
        """What the weights are: of distances a small one means close, of similarities a large."""
        return self.tree.kind

    @property
    def distances(self) -> Floats:
        """The noisy weights if they are distances, else their negatives: small means close."""
        return as_distances(self.noisy_weights, self.kind)

    @property
    def whole_graph(self) -> bool:
        """Whether the weights of all edges were published, not those of a tree."""
        return self.topology is not self.tree.topology

    @property
    def tree_alone(self) -> bool:
        """Whether noisy weights of more edges were published, and those of a tree are here."""
        return not self.whole_graph and self.noise.n_values > self.tree.n_edges

    def __reduce__(self) -> tuple[Any, ...]:
        whole = (self.topology, self.noisy_weights) if self.whole_graph else ()
        return type(self), (self.mechanism, self.noise, self.tree, *whole)


def _fitting(tree: Tree, topology: Topology, noisy_weights: Any) -> Floats:
    """Return the weights of all edges, read-only, if the tree is a part of them."""
    ids, weights = tree.edge_ids, np.array(noisy_weights, dtype=np.float64)
    if weights.shape != (topology.n_edges,):
        raise InputError(f"{weights.size} noisy_weights were given for {topology.n_edges} edges")
    if not np.isfinite(weights).all():
        raise InputError("noisy_weights must be finite")
    if topology.n_nodes != tree.n_nodes or not np.array_equal(topology.names, tree.names):
        raise InputError("topology and tree must have the same nodes, of the same names")
    is_part = (len(ids) == 0 or int(ids[-1]) < topology.n_edges) and (
        np.array_equal(topology.sources[ids], tree.sources)
        and np.array_equal(topology.targets[ids], tree.targets)
        and np.array_equal(weights[ids], tree.weights)
    )
    if not is_part:
        raise InputError("edges and weights of the tree must be those of topology at its edge_ids")
    weights.setflags(write=False)
    return weights
