"""From records of people to a Graph: bounded contributions, and the sensitivity that follows."""

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
