"""From records of people to a Graph: bounded contributions, and the sensitivity that follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptclust._lazy import lazy

if TYPE_CHECKING:
    from ptclust.building._build import description, summary
    from ptclust.building._pairs import read_list
    from ptclust.building.checking import RecordsCheck, check_records
    from ptclust.building.databases import Query
    from ptclust.building.flows import graph_from_flows
    from ptclust.building.profiles import graph_from_profiles
    from ptclust.building.visits import graph_from_visits

__all__ = [
    "Query",
    "RecordsCheck",
    "check_records",
    "description",
    "graph_from_flows",
    "graph_from_profiles",
    "graph_from_visits",
    "read_list",
    "summary",
]

__getattr__ = lazy(
    __name__,
    _pairs=("read_list",),
    _build=("description", "summary"),
    checking=("RecordsCheck", "check_records"),
    databases=("Query",),
    flows=("graph_from_flows",),
    profiles=("graph_from_profiles",),
    visits=("graph_from_visits",),
)
