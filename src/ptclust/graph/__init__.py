"""Room of the input: the public topology, the private weights, and how both come in and go out."""

from ptclust.graph.files import read_graph, read_topology
from ptclust.graph.graph import Graph, Merge
from ptclust.graph.topology import Topology, index_dtype

__all__ = ["Graph", "Merge", "Topology", "index_dtype", "read_graph", "read_topology"]
