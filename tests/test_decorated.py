"""Every function that takes private weights is decorated, so that its exceptions keep none."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import types
from collections.abc import Iterator
from typing import Any

import ptclust
from ptclust import (
    DBMSTClu,
    Graph,
    PTClust,
    Tree,
    dbmstclu,
    euclidean_spanning_tree,
    inputs,
    read_graph,
)
from ptclust.graph import read_topology
from ptclust.mechanisms import MECHANISMS
from ptclust.mechanisms.lattice import add_noise
from ptclust.trees.emst import euclidean_spanning_edges
from ptclust.trees.mst import minimum_spanning_edges

PRIVATE = re.compile(r"\b(Graph|WeightedGraph|WeightedTree|Tree|GraphFile)\b")

SEES_WEIGHTS = (
    "building",
    "graph",
    "trees",
    "mechanisms",
    "inputs",
    "pipeline",
    "estimators",
    "theory",
)


def functions_of(module: types.ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the public functions and methods that a module defines."""
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", "") != module.__name__:
            continue
        if isinstance(value, types.FunctionType):
            yield f"{module.__name__}.{name}", value
        elif isinstance(value, type):
            for part, member in vars(value).items():
                method = getattr(member, "__func__", member)
                if isinstance(method, types.FunctionType) and not part.startswith("_"):
                    yield f"{module.__name__}.{name}.{part}", method


def test_all_that_takes_private_weights_is_decorated():
    """Who adds a function that takes a graph or a tree is reminded here."""
    bare, n_guarded = [], 0
    for found in pkgutil.walk_packages(ptclust.__path__, "ptclust."):
        if found.name.split(".")[1] not in SEES_WEIGHTS:
            continue
        for name, function in functions_of(importlib.import_module(found.name)):
            if getattr(function, "__isabstractmethod__", False):
                continue
            if hasattr(function, "__leaves_no_trace__"):
                n_guarded += 1
            elif PRIVATE.search(str([*inspect.signature(function).parameters.values()])):
                bare.append(name)
    assert bare == []
    assert n_guarded > 80
    by_other_types = [
        add_noise, read_graph, read_topology, minimum_spanning_edges, euclidean_spanning_tree,
        euclidean_spanning_edges, dbmstclu, ptclust.dbcvi, ptclust.separation, ptclust.dispersion,
        ptclust.cluster_validity, PTClust.fit, PTClust.fit_predict, DBMSTClu.fit,
        DBMSTClu.fit_predict, inputs.as_graph, inputs.as_tree, Graph.__init__, Tree.__init__,
        ptclust.graph_from_flows, ptclust.graph_from_visits, ptclust.graph_from_profiles,
    ]  # fmt: skip
    by_other_types += [type(mechanism).draw for mechanism in MECHANISMS]
    assert all(hasattr(function, "__leaves_no_trace__") for function in by_other_types)
