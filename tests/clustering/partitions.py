"""Whether nodes are connected, the slow and obvious way."""

from __future__ import annotations


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
