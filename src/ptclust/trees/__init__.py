"""Exact spanning trees of graphs and points; names are imported when they are first used."""

from typing import TYPE_CHECKING

from ptclust._lazy import lazy

if TYPE_CHECKING:
    from ptclust.trees.emst import euclidean_spanning_tree
    from ptclust.trees.mst import minimum_spanning_tree
    from ptclust.trees.tree import Tree

__all__ = ["Tree", "euclidean_spanning_tree", "minimum_spanning_tree"]

__getattr__ = lazy(
    __name__, emst=("euclidean_spanning_tree",), mst=("minimum_spanning_tree",), tree=("Tree",)
)
