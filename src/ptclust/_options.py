"""What may be requested, every option once: its type, its default and its help.

Command line, estimator and Spark fill these classes; `ptclust.pipeline` and `ptclust.planning`
check what they hold. Nothing heavy is imported here: ``ptclust --help`` reads it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal, get_args

from ptclust.errors import UsageError

Bounds = tuple[float, float]
CalibrationRule = Literal["sound", "published"]  # noise scales of the proofs, or of the paper
Engine = Literal["local", "spark"]  # what works on the edges: this machine, or many
Kind = Literal["distance", "similarity"]  # of weights: small, or large, means close
Merge = Literal["min", "max", "sum"]  # of the weights of parallel edges
Per = Literal["series", "period"]  # whom the total of a series protects
Sampler = Literal["auto", "opendp"]  # of the noise: our own, or OpenDP's


@dataclass(frozen=True)
class Option:
    """What the command line says of an option; only ``--help-all`` lists a ``rare`` one."""

    help: str
    short: str | None = None
    rare: bool = False
    metavar: str | None = None
    min: float | None = None
    max: float | None = None


def check_choice(name: str, value: object, choices: Any) -> None:
    """Raise UsageError unless a value is one of a Literal.

    >>> check_choice("engine", "cluster", Engine)
    Traceback (most recent call last):
    ...
    ptclust.errors.UsageError: engine must be 'local' or 'spark', not 'cluster'
    """
    if value not in get_args(choices):
        known = " or ".join(map(repr, get_args(choices)))
        raise UsageError(f"{name} must be {known}, not {value!r}")


Certainty = Annotated[
    bool, Option("Compute how probable nodes and clusters are; takes 8 clusterings.")
]
Clusterer = Annotated[
    str, Option("Clusterer of what is released, by name; dbmstclu is the paper's.", metavar="NAME")
]
Dataset = Annotated[str | None, Option("The dataset of the ledger to charge.")]
Delta = Annotated[
    float | Fraction,
    Option("0 for a pure guarantee; a tiny positive value allows Gaussian noise."),
]
LedgerFile = Annotated[
    str | os.PathLike[str] | Any,  # or a Ledger, in Python
    Option("Charge this ledger first; it refuses what its total does not cover."),
]
Mechanism = Annotated[
    str,
    Option(
        "Mechanism by name (`plan` lists all); auto picks the smallest visible gap.",
        metavar="NAME",
    ),
]
MinClusterSize = Annotated[int, Option("Drop smaller clusters: their nodes get label -1.", min=1)]
MinProbability = Annotated[
    float, Option("Nodes less likely to belong to their cluster get label -1.", max=1.0)
]
Split = Annotated[
    float | Fraction | None,
    Option(
        "Share of the budget for the tree; by default tree and weights get equal noise.", rare=True
    ),
]


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """What is requested of a release, in public numbers, beside the sensitivity."""

    epsilon: Annotated[float | Fraction, Option("The privacy budget.")]
    delta: Delta = 0
    mechanism: Mechanism = "auto"
    clusterer: Clusterer = "auto"
    split: Split = None
    calibration: Annotated[
        CalibrationRule,
        Option("published: the paper's scales, with their true epsilon.", rare=True),
    ] = "sound"
    clip: Annotated[
        Bounds | None, Option("Public bounds; weights outside are moved to the nearer: LOW HIGH.")
    ] = None
    sampler: Annotated[
        Sampler, Option("Sampler of the noise; the statement names it.", rare=True)
    ] = "auto"


@dataclass(frozen=True, kw_only=True)
class ReleaseOptions(PlanOptions):
    """All that is requested of a release, beside the sensitivity."""

    shift: Annotated[float | None, Option("tau; default from the release.", rare=True)] = None
    scale: Annotated[float | None, Option("p; default from the release.", rare=True)] = None
    min_cluster_size: MinClusterSize = 1
    min_probability: MinProbability = 0.0
    certainty: Certainty = False
    privacy_unit: Annotated[
        str | None, Option("What one unit is, for the statement: 'one patient'.")
    ] = None
    topology: Annotated[
        Literal["public"] | None,
        Option("public: the list of edges is public knowledge, though not all pairs are edges."),
    ] = None
    random_state: Annotated[
        int | None, Option("Seed for experiments: the release is NOT private.", rare=True, min=0)
    ] = None
    ledger: LedgerFile = None
    dataset: Dataset = None
    noisy: Annotated[
        str | os.PathLike[str] | None,
        Option("With --engine spark: write all noisy weights to this new folder.", rare=True),
    ] = None


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """How a text table is written."""

    separator: Annotated[str | None, Option("Separator of a text table: ';', tab, space.")] = None
    encoding: Annotated[
        str | None, Option("Encoding of a text table, if not UTF-8: latin-1, cp1252.")
    ] = None
    decimal: Annotated[str | None, Option("Decimal point of a text table: '.' or ','.")] = None


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """What works on a table: this machine, or many."""

    engine: Annotated[
        Engine, Option("spark: work on Parquet where it is, in many parts.", rare=True)
    ] = "local"
    master: Annotated[
        str | None,
        Option("Where Spark runs: spark://host:7077, local[2], yarn.", rare=True, metavar="URL"),
    ] = None


@dataclass(frozen=True, kw_only=True)
class GraphOptions(EngineOptions, TextOptions):
    """How to read a file with a graph."""

    source: Annotated[str | None, Option("Column of the first node.")] = None
    target: Annotated[str | None, Option("Column of the second node.")] = None
    weight: Annotated[str | None, Option("Column of the weight.")] = None
    merge: Annotated[
        Merge | None,
        Option("How to merge rows that join the same two nodes; --l1, --linf bound the result."),
    ] = None
    kind: Annotated[
        Kind | None,
        Option("Weights are distances, or similarities: small, or large, means close."),
    ] = None
    format: Annotated[
        str | None, Option("Format of the file, if its name does not show it.", rare=True)
    ] = None
    header: Annotated[
        bool, Option("Whether the first line of a text table names the columns.", rare=True)
    ] = True
