"""The paper's definitions of sections 3.1 and 3.2 by enumeration, exactly, for a few nodes."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

from hypothesis import strategies as st

from ptclust.graph import Graph


@st.composite
def graphs(draw, min_nodes=1, max_nodes=6, max_edges=10, weight=None):
    """Any simple graph with few distinct weights, sparse or dense, connected or not."""
    n = draw(st.integers(min_nodes, max_nodes))
    pairs = draw(st.permutations([(a, b) for a in range(n) for b in range(a)]))[:max_edges]
    pairs = pairs[draw(st.integers(0, max(len(pairs) // 2, 1))) :]
    if weight is None:
        weight = st.integers(1, draw(st.integers(1, 9)))
    weights = [float(draw(weight)) for _ in pairs]
    return Graph([a for a, _ in pairs], [b for _, b in pairs], weights, n_nodes=n)


def edges_of(graph):
    exact = [int(w) if w.is_integer() else Fraction(w) for w in graph.weights.tolist()]
    return list(zip(graph.sources.tolist(), graph.targets.tolist(), exact))


def distances(n_nodes, edges):
    """All minimum path distances (Floyd and Warshall)."""
    infinite = float("inf")
    d = [[0 if a == b else infinite for b in range(n_nodes)] for a in range(n_nodes)]
    for a, b, w in edges:
        d[a][b] = d[b][a] = min(d[a][b], w)
    for k in range(n_nodes):
        for a in range(n_nodes):
            for b in range(n_nodes):
                if d[a][k] != infinite and d[k][b] != infinite:
                    d[a][b] = min(d[a][b], d[a][k] + d[k][b])
    return d


def nearest(d, outside, part):
    """The argmin of the Definition: who of ``outside`` is nearest to ``part``."""
    least = min(d[z][v] for z in outside for v in part)
    return {z for z in outside if min(d[z][v] for v in part) == least}


def splits(c):
    c = sorted(c)
    for size in range(1, len(c)):
        for part in combinations(c, size):
            yield set(part), set(c) - set(part)


def is_cluster(d, c, within):
    return len(c) > 2 and all(nearest(d, within - c1, c1) <= c2 for c1, c2 in splits(c))


def spanning_forests(n_nodes, edges):
    """Every maximal set of edges without a cycle, as a list of edge numbers."""

    def grow(edge, component, chosen):
        if edge == len(edges):
            if all(component[a] == component[b] for a, b, _ in edges):
                yield chosen
            return
        a, b = component[edges[edge][0]], component[edges[edge][1]]
        if a != b:
            joined = tuple(a if c == b else c for c in component)
            yield from grow(edge + 1, joined, [*chosen, edge])
        yield from grow(edge + 1, component, chosen)

    yield from grow(0, tuple(range(n_nodes)), [])


def minimum_spanning_forests(n_nodes, edges):
    forests = list(spanning_forests(n_nodes, edges))
    least = min(sum(edges[i][2] for i in forest) for forest in forests)
    return [f for f in forests if sum(edges[i][2] for i in f) == least]


def alpha_and_verdict(forests, edges, c):
    """The largest alpha of the forests within ``c``; whether H holds by every cut edge in all."""
    alpha, holds = Fraction(1), True
    for forest in forests:
        inside = [edges[i][2] for i in forest if edges[i][0] in c and edges[i][1] in c]
        leaving = [edges[i][2] for i in forest if (edges[i][0] in c) != (edges[i][1] in c)]
        if inside:
            ratio = Fraction(max(inside)) / min(inside)
            alpha = max(alpha, ratio)
            holds = holds and all(ratio * max(inside) < s for s in leaving)
    return alpha, holds


def laplace_order_moment(n, r, k):
    """E[X^k] of the r-th smallest of n Laplace values, by the alternating sums of Kotz et al."""

    def alternating(count, start):
        return sum(
            Fraction((-1) ** j * math.comb(count, j), 2 ** (start + j) * (start + j) ** (k + 1))
            for j in range(count + 1)
        )

    factor = math.factorial(k) * r * math.comb(n, r)  # n! k! / ((r - 1)! (n - r)!)
    return factor * ((-1) ** k * alternating(n - r, r) + alternating(r - 1, n - r + 1))
