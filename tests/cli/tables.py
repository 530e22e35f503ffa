"""Tables of edges, and options, that tests of several commands use."""

from __future__ import annotations

HEADER = "source,target,distance\n"


EDGES = HEADER + "a,b,0.1\nb,c,0.1\nc,d,0.9\nd,e,0.1\ne,f,0.1\n"


LABELS = "node,cluster\na,0\nb,0\nc,0\nd,1\ne,1\nf,1\n"


def text(content):
    return lambda path: path.write_text(content)


#: Many trips are within towns 0 to 5, and within towns 6 to 11; few are across.
TOWNS = "node,cluster\n" + "".join(f"{town},{town // 6}\n" for town in range(12))


BUDGET = ["--epsilon", "1", "--delta", "1e-6", "--linf", "1e-5"]


UNIT = ["--privacy-unit", "one patient"]


SPARSE = ["--privacy-unit", "one patient", "--topology", "public"]


PAID = [*BUDGET, "--ledger", "l", "--dataset", "survey", "-o", "release.json"]
