from ptclust.trees.emst import euclidean_spanning_tree
from ptclust.trees.mst import minimum_spanning_tree
from ptclust.trees.tree import Tree
