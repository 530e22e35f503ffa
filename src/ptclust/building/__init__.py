"""From records of people to a Graph: bounded contributions, and the sensitivity that follows."""

from __future__ import annotations

from ptclust.building._build import description, summary
from ptclust.building._pairs import read_list
from ptclust.building.checking import check_records
from ptclust.building.counts import graph_from_flows, graph_from_visits
from ptclust.building.databases import Query
from ptclust.building.profiles import graph_from_profiles

__all__ = [
    "Query",
    "check_records",
    "description",
    "graph_from_flows",
    "graph_from_profiles",
    "graph_from_visits",
    "read_list",
    "summary",
]
