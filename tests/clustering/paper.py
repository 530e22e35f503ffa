"""Algorithm 1 of the paper, line by line, in exact arithmetic: the judge of the fast one."""

from __future__ import annotations

from fractions import Fraction

Edge = tuple[int, int, Fraction]


def exact(weights):
    """The weights as written in decimal: 0.3 / 0.6 is one half here, as it must be elsewhere."""
    return [Fraction(repr(float(w))) for w in weights]


def pieces(n_nodes: int, edges: list[Edge], cut: set[int]) -> list[set[int]]:
    """The components that remain without the edges in ``cut``, by first appearance."""
    unseen, found = set(range(n_nodes)), []
    while unseen:
        piece, todo = set(), [min(unseen)]
        while todo:
            v = todo.pop()
            piece.add(v)
            for i, (a, b, _) in enumerate(edges):
                if i not in cut and v in (a, b):
                    todo.extend({a, b} - piece)
        unseen -= piece
        found.append(piece)
    return found


def disp(cluster: set[int], edges: list[Edge], cut: set[int]) -> Fraction:
    inside = [
        w for i, (a, b, w) in enumerate(edges) if i not in cut and a in cluster and b in cluster
    ]
    return max(inside) if inside else Fraction(0)


def sep(cluster: set[int], edges: list[Edge], cut: set[int]) -> Fraction:
    incident = [
        w for i, (a, b, w) in enumerate(edges) if i in cut and (a in cluster or b in cluster)
    ]
    return min(incident) if cut else Fraction(1)


def v_c(cluster: set[int], edges: list[Edge], cut: set[int]) -> Fraction:
    s, d = sep(cluster, edges, cut), disp(cluster, edges, cut)
    return (s - d) / max(s, d)


def dbcvi(n_nodes: int, edges: list[Edge], cut: set[int]) -> Fraction:
    return sum(
        (Fraction(len(c), n_nodes) * v_c(c, edges, cut) for c in pieces(n_nodes, edges, cut)),
        Fraction(0),
    )


def dbmstclu(n_nodes: int, edges: list[Edge]) -> tuple[list[int], list[Fraction], list[int]]:
    """Return the cuts in order, the DBCVI after each, and the labels."""
    index = Fraction(-1)  # line 2
    made: list[int] = []  # line 3: clusters
    trace: list[Fraction] = []
    cut_list = list(range(len(edges)))  # line 4
    while index < 1:  # line 5
        cut_tp = None  # line 6
        dbcvi_tp = index  # line 7
        for cut in cut_list:  # line 8
            new_dbcvi = dbcvi(n_nodes, edges, {*made, cut})  # line 9
            if new_dbcvi >= dbcvi_tp:  # line 10
                cut_tp = cut  # line 11
                dbcvi_tp = new_dbcvi  # line 12
        if cut_tp is None:  # lines 17, 18
            break
        made.append(cut_tp)  # line 14
        index = dbcvi_tp  # line 15
        cut_list.remove(cut_tp)  # line 16
        trace.append(index)
    labels = [0] * n_nodes
    for number, piece in enumerate(pieces(n_nodes, edges, set(made))):
        for v in piece:
            labels[v] = number
    return made, trace, labels
