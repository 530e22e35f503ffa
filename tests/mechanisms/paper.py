"""The paper's private spanning trees: exact distributions by enumeration, PAMST step by step."""

from __future__ import annotations

import math
from collections import defaultdict


def softmax(weights, exponent):
    low = min(weights)
    rates = [math.exp(-exponent * (w - low)) for w in weights]
    total = math.fsum(rates)
    return [rate / total for rate in rates]


def pamst_distribution(n_nodes, edges, exponent):
    """Algorithm 2: from a uniform root, always an edge that leaves S, until S has all nodes."""
    states = defaultdict(float)
    for root in range(n_nodes):
        states[frozenset([root]), frozenset()] = 1.0 / n_nodes
    for _ in range(n_nodes - 1):
        following = defaultdict(float)
        for (nodes, tree), probability in states.items():
            leaving = [i for i, (a, b, _) in enumerate(edges) if (a in nodes) != (b in nodes)]
            for i, p in zip(leaving, softmax([edges[i][2] for i in leaving], exponent)):
                following[nodes | {edges[i][0], edges[i][1]}, tree | {i}] += probability * p
        states = following
    return {tuple(sorted(tree)): p for (_, tree), p in collapse(states).items()}


def collapse(states):
    trees = defaultdict(float)
    for (_, tree), p in states.items():
        trees[None, tree] += p
    return trees


def kruskal_distribution(n_nodes, edges, exponent):
    """The next edge among all that join two components."""
    states = {(tuple(range(n_nodes)), frozenset()): 1.0}
    for _ in range(n_nodes - 1):
        following = defaultdict(float)
        for (component, tree), probability in states.items():
            joining = [i for i, (a, b, _) in enumerate(edges) if component[a] != component[b]]
            for i, p in zip(joining, softmax([edges[i][2] for i in joining], exponent)):
                a, b = component[edges[i][0]], component[edges[i][1]]
                joined = tuple(min(a, b) if c in (a, b) else c for c in component)
                following[joined, tree | {i}] += probability * p
        states = following
    return {tuple(sorted(tree)): p for (_, tree), p in collapse(states).items()}


def pamst(n_nodes, edges, exponent, random):
    """Algorithm 2, line by line; ``random`` is a random.Random."""
    v = random.randrange(n_nodes)  # line 2
    s_v, s_e = {v}, set()  # lines 3, 4
    while len(s_v) < n_nodes:  # line 5
        candidates = [i for i, (a, b, _) in enumerate(edges) if (a in s_v) != (b in s_v)]
        utility = [-abs(edges[i][2] - min(edges[j][2] for j in candidates)) for i in candidates]
        rates = [math.exp(exponent * u) for u in utility]
        (r,) = random.choices(candidates, rates)  # line 6
        s_v |= {edges[r][0], edges[r][1]}  # line 7
        s_e.add(r)  # line 8
    return tuple(sorted(s_e))
