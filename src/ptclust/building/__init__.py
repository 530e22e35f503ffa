"""From records of people to a Graph: bounded contributions, and the sensitivity that follows."""

from ptclust.building.flows import graph_from_flows
from ptclust.building.visits import graph_from_visits

__all__ = ["graph_from_flows", "graph_from_visits"]
