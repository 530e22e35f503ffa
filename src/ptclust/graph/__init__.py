"""The input: public topology, private weights, and how both come in and go out.

Names are imported when first used: who needs the topology only imports nothing that sees weights.
"""

from typing import TYPE_CHECKING

from ptclust._lazy import lazy

if TYPE_CHECKING:
    from ptclust.graph.graph import Graph, Merge
    from ptclust.graph.readers import read_graph, read_topology
    from ptclust.graph.topology import Kind, Topology, index_dtype

__all__ = ["Graph", "Kind", "Merge", "Topology", "index_dtype", "read_graph", "read_topology"]

__getattr__ = lazy(
    __name__,
    graph=("Graph", "Merge"),
    readers=("read_graph", "read_topology"),
    topology=("Kind", "Topology", "index_dtype"),
)
