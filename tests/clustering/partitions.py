"""Partitions by affinities, the slow and obvious way: the judge of the kernels."""

from __future__ import annotations


def all_partitions(n_nodes: int):
    """Every partition of the nodes once, as labels by first appearance."""

    def extend(labels, used):
        if len(labels) == n_nodes:
            yield list(labels)
            return
        for label in range(used + 1):
            yield from extend([*labels, label], max(used, label + 1))

    yield from extend([], 0)


def clusters(labels) -> list[list[int]]:
    return [[v for v, label in enumerate(labels) if label == c] for c in sorted(set(labels))]


def is_connected(nodes: list[int], edges) -> bool:
    reached, todo = set(), nodes[:1]
    while todo:
        v = todo.pop()
        reached.add(v)
        todo += [
            u
            for a, b in edges
            for u, w in ((a, b), (b, a))
            if w == v and u in nodes and u not in reached
        ]
    return reached == set(nodes)


def value(labels, edges, affinity, price: float) -> float:
    within = sum(x for (a, b), x in zip(edges, affinity) if labels[a] == labels[b])
    return within - price * len(set(labels))


def connected_partitions(n_nodes: int, edges):
    """Every partition into connected clusters."""
    for labels in all_partitions(n_nodes):
        if all(is_connected(c, edges) for c in clusters(labels)):
            yield labels


def best_value(n_nodes: int, edges, affinity, price: float) -> float:
    """Over all partitions into connected clusters."""
    return max(
        value(labels, edges, affinity, price) for labels in connected_partitions(n_nodes, edges)
    )


def greedy_contraction(n_nodes: int, edges, affinity, price: float) -> list[set[int]]:
    """Join the pair of clusters with the largest sum between them while that exceeds -price."""
    parts = [{v} for v in range(n_nodes)]
    while True:
        best = None
        for i, p in enumerate(parts):
            for q in parts[i + 1 :]:
                between = [
                    x
                    for (a, b), x in zip(edges, affinity)
                    if (a in p and b in q) or (a in q and b in p)
                ]
                if between and sum(between) > -price and (best is None or sum(between) > best[0]):
                    best = sum(between), p, q
        if best is None:
            return parts
        _, p, q = best
        parts = [r for r in parts if r is not p and r is not q] + [p | q]


def moves(labels: list[int], edges, affinity, price: float) -> list[int]:
    """Let nodes move in turn; look again at neighbours of those that did, and at all in the end."""
    labels, everyone = list(labels), set(range(len(labels)))
    due, looks_at_all = set(everyone), True
    while True:
        has_moved = False
        for node in sorted(everyone):
            if node not in due:
                continue
            due.remove(node)
            near = [(a + b - node, x) for (a, b), x in zip(edges, affinity) if node in (a, b)]
            shared = {labels[node]: 0.0}
            for other, x in near:
                shared[labels[other]] = shared.get(labels[other], 0.0) + x
            if labels.count(labels[node]) == 1:
                shared[labels[node]] -= price
            else:
                shared[min(everyone - set(labels), default=-1)] = -price
            best = max(shared, key=shared.__getitem__)
            if shared[best] > shared[labels[node]] + 1e-9:
                labels[node], has_moved = best, True
                due |= {other for other, _ in near}
        if not has_moved and looks_at_all:
            return labels
        looks_at_all = not has_moved
        due = due if has_moved else set(everyone)
