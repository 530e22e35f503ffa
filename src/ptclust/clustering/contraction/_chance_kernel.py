"""The best partition by affinities, and whether chance would give one as good."""

from __future__ import annotations

from math import lgamma, log, sqrt
from typing import TYPE_CHECKING

import numpy as np

from ptclust._components import fill_adjacency
from ptclust._kernel import inlined, kernel
from ptclust.clustering.contraction._greedy_kernel import contract_greedily
from ptclust.clustering.contraction._partition_kernel import (
    GAIN,
    agreement_within,
    climb_and_walk_down,
    nodes_around,
)

if TYPE_CHECKING:
    from ptclust._types import Array, Floats, Ints

#: Chance, about, that weights which are independent of clusters pass for such that are not.
ERROR = 1e-4
#: Bins of affinities, and steps to the largest likelihood of a mixture.
BINS, HALVINGS = 1024, 30
#: Of the larger of two clusters so many times the nodes of the smaller are looked at, and at least
#: so many: those nearest to it.
NEAREST, LEAST = 8, 200


@kernel
def log_binomial(n: int, k: int) -> float:
    """Return the logarithm of the number of ways to choose k of n."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


@kernel
def value_of(
    sources: Array, targets: Array, affinity: Floats, labels: Ints, n_clusters: int, penalty: float
) -> float:
    """Return the sum of the affinities within clusters, less what it costs to name these."""
    within = agreement_within(sources, targets, affinity, labels)
    return within - penalty * log_binomial(len(labels), n_clusters)


@kernel
def best_partition(
    sources: Ints,
    targets: Ints,
    indptr: Ints,
    indices: Ints,
    edges: Array,
    affinity: Floats,
    penalty: float,
    enough: float,
    start: Ints,
) -> tuple[Ints, float]:
    """Return the best connected clusters found, or the first good enough, and their value.

    Searches begin with ``start``, unless it is empty, with single nodes, and with greedy
    contraction; they end in different places. The price of a cluster depends on the answer. The
    first guess is a K of about the root of n; a search goes on from where it ended at the price of
    the K it found.
    """
    n = len(indptr) - 1
    is_due, shared, data = np.empty(n, np.bool_), np.empty(n), np.empty(len(edges))
    for place in range(len(edges)):
        data[place] = affinity[edges[place]]
    best, best_value, found = np.zeros(n, np.int64), -np.inf, np.arange(n)
    for step in range(4):
        # From the start; from single nodes, and on from there; from greedy contraction.
        if step == 0 and len(start) == 0:
            continue
        first = start if step == 0 else found
        n_clusters = sqrt(n) if step == 1 else first.max() + 1.0
        price = penalty * log(n / n_clusters)
        if step == 1:
            first = np.arange(n)
        elif step == 3:
            first, _ = contract_greedily(sources, targets, affinity, n, price)
        found, _ = climb_and_walk_down(
            sources, targets, indptr, indices, data, affinity, price, is_due, shared, first
        )
        if step == 1:
            continue
        value = value_of(sources, targets, affinity, found, found.max() + 1, penalty)
        if value > best_value:
            best, best_value = found, value
        if value >= enough:
            break
    return best, best_value


@kernel
def mixture(affinity: Floats) -> float:
    """Return at least the largest sum of log(1 - p + p e^a) over all affinities a, for any p.

    They are counted in bins and taken for the upper end of theirs. The sum is concave in p.
    """
    low, high = np.inf, -np.inf
    for edge in range(len(affinity)):
        low, high = min(low, affinity[edge]), max(high, affinity[edge])
    if not low < high:
        return max(0.0, high * len(affinity)) if len(affinity) > 0 else 0.0
    count, width = np.zeros(BINS), (high - low) / BINS
    for edge in range(len(affinity)):
        count[min(int((affinity[edge] - low) / width), BINS - 1)] += 1.0
    # What the bins that are not empty add, with both sides divided by the larger of 1 and e^a.
    used, n_used = np.empty((4, min(BINS, len(affinity)))), 0
    for i in range(BINS):
        if count[i] > 0:
            a = low + (i + 1) * width
            used[0, n_used], used[1, n_used] = count[i], np.exp(min(-a, 0.0))
            used[2, n_used], used[3, n_used] = np.exp(min(a, 0.0)), max(a, 0.0)
            n_used += 1
    least, most = 0.0, 1.0
    slope = total = 0.0
    for _ in range(HALVINGS):
        p = (least + most) / 2
        slope = total = 0.0
        for i in range(n_used):
            mean = (1 - p) * used[1, i] + p * used[2, i]
            slope += used[0, i] * (used[2, i] - used[1, i]) / mean
            total += used[0, i] * (np.log(mean) + used[3, i])
        if slope > 0:
            least = p
        else:
            most = p
    return total + abs(slope) * (most - least)


@kernel
def clear_value(indptr: Ints, affinity: Floats) -> float:
    r"""Return a value that permuted affinities reach with a chance of at most ``ERROR``.

    A partition is a node in each of K clusters and, for every other node, one of its d neighbours
    that it is joined to: there are at most :math:`\binom nK \prod d` of them. One with k of m edges
    within has the sum of k values drawn without replacement, which is that of independent choices
    with probability p = k / m, given that they are k; that has a chance of at least 1 / (m + 1).
    So by Markov's inequality the chance of a sum of at least s is at most

    .. math:: (m + 1) \, e^{-s} \prod_e (1 - p + p \, e^{a_e}),

    where s is the value and log binom(n, K) at least, and K one of n. The last product is at most
    the largest over p: the likelihood of two levels that are independent of clusters.
    """
    n, m, neighbours = len(indptr) - 1, len(affinity), 0.0
    for node in range(n):
        neighbours += log(max(indptr[node + 1] - indptr[node], 1))
    return mixture(affinity) + neighbours + log(n) + log(m + 1) - log(ERROR)


@kernel
def is_clear(
    value: float,
    sources: Ints,
    targets: Ints,
    indptr: Ints,
    indices: Ints,
    edges: Array,
    affinity: Floats,
    penalty: float,
    reaches: Floats,
    random: np.random.Generator,
) -> bool:
    """Return whether affinities permuted over the edges give no partition of such a value.

    Where a bound does not say so they are permuted. Their values are about normal, with at most
    half the variance of the sum of all edges (the Poincare inequality for transpositions: to
    exchange two edges, one of them within the best partition, changes its value by no more than
    their difference). So often one suffices. Else Student's distribution says how likely a
    further one is to reach ``value``. If one of them does reach it, more will not make it clear.

    ``reaches`` has the deviations beyond which a further value lies with a chance of ``ERROR``: of
    the normal distribution, and of Student's after so many values.
    """
    if value >= clear_value(indptr, affinity):
        return True
    largest, reached = sqrt(len(affinity) * np.var(affinity) / 2), value - GAIN
    none, seen = np.empty(0, np.int64), np.empty(len(reaches))
    for n_seen in range(1, len(reaches)):
        permuted = random.permutation(affinity)
        _, found = best_partition(
            sources, targets, indptr, indices, edges, permuted, penalty, reached, none
        )
        if found >= reached:
            return False
        seen[n_seen - 1] = found
        mean = seen[:n_seen].mean()
        reach = reaches[0] * largest
        if reaches[n_seen] < np.inf:
            deviation = sqrt(((seen[:n_seen] - mean) ** 2).sum() / (n_seen - 1))
            reach = min(reach, reaches[n_seen] * deviation)
        if value > mean + reach * sqrt(1 + 1 / n_seen):
            return True
    return False


@inlined
def induced_graph(
    indptr: Ints, indices: Ints, edges: Array, members: Ints, number: Ints
) -> tuple[Ints, Ints, Ints]:
    """Return the edges between members, and their ends by place in ``members``.

    ``number`` has a place for every node and is -1 throughout, before and after.
    """
    most = 0
    for i in range(len(members)):
        number[members[i]] = i
        most += indptr[members[i] + 1] - indptr[members[i]]
    kept, sources, targets = (
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
    )
    count = 0
    for i in range(len(members)):
        for place in range(indptr[members[i]], indptr[members[i] + 1]):
            other = number[indices[place]]
            if other > i:
                kept[count], sources[count], targets[count] = edges[place], i, other
                count += 1
    for i in range(len(members)):
        number[members[i]] = -1
    return kept[:count], sources[:count], targets[:count]


@kernel
def is_pair_clear(
    indptr: Ints,
    indices: Ints,
    edges: Array,
    affinity: Floats,
    penalty: float,
    one: Ints,
    other: Ints,
    between: float,
    number: Ints,
    reaches: Floats,
    random: np.random.Generator,
) -> bool:
    """Return whether more than chance separates two clusters, of these members.

    If both were one cluster, a given cut would have likelihood ratio exp(-between) of mean 1, so
    it exceeds r with a chance of at most 1 / r (Markov). Of n nodes there are binom(n, s) cuts
    that part s from the rest, and n sizes s: beyond n binom(n, s) / error no search is needed.

    Where one is much larger, only what lies around the other is searched. There are as many places
    for that as it is contained in the whole. ``number`` is -1 for every node, before and after.
    """
    small, large = (one, other) if len(one) <= len(other) else (other, one)
    n_nodes = len(small) + len(large)
    if -between > log(n_nodes) + log_binomial(n_nodes, len(small)) - log(ERROR):
        return True
    n_near = max(NEAREST * len(small), LEAST)
    if n_near < len(large):
        large = nodes_around(indptr, indices, small, large, n_near, number)
    members = np.concatenate((small, large))
    kept, sources, targets = induced_graph(indptr, indices, edges, members, number)
    n, m = len(members), len(kept)
    own_indptr, own_indices, own_edges = (
        np.zeros(n + 1, np.int64),
        np.empty(2 * m, np.int64),
        np.empty(2 * m, np.int32),
    )
    fill_adjacency(sources, targets, own_indptr, own_indices, own_edges)
    own = affinity[kept]
    labels = np.zeros(n, np.int64)
    labels[len(small) :] = 1
    value = value_of(sources, targets, own, labels, 2, penalty) - log(n_nodes / n)
    return is_clear(
        value, sources, targets, own_indptr, own_indices, own_edges, own, penalty, reaches, random
    )
