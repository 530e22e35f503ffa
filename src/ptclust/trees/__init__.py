"""Room of the trees: exact and private spanning trees of a graph."""

from ptclust.trees.emst import euclidean_spanning_tree
from ptclust.trees.mst import minimum_spanning_tree
from ptclust.trees.private import private_spanning_tree
from ptclust.trees.tree import Tree

__all__ = ["Tree", "euclidean_spanning_tree", "minimum_spanning_tree", "private_spanning_tree"]
