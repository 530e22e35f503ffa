"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

if TYPE_CHECKING:
    from ptclust.pipeline import GraphFile


class Merge(StrEnum):
    """How to make one edge of several."""

    min = "min"
    max = "max"
    sum = "sum"


class TreeMethod(StrEnum):
    """Which mechanism publishes the tree."""

    auto = "auto"
    kruskal = "kruskal"
    pamst = "pamst"
    gaussian = "gaussian"
    laplace = "laplace"


class ClustererName(StrEnum):
    """How what was released is clustered."""

    auto = "auto"
    dbmstclu = "dbmstclu"
    levels = "levels"
    contraction = "contraction"


class Calibration(StrEnum):
    """Whose noise scales."""

    sound = "sound"
    published = "published"


Bounds = Optional[tuple[float, float]]  # noqa: UP045

Edges = Annotated[
    Path,
    typer.Argument(
        help="The graph: csv, tsv (also .gz), parquet, graphml, mtx or npz.",
        show_default=False,
        readable=False,  # a file that cannot be read is bad input, and read_graph says so
    ),
]
Source = Annotated[Optional[str], typer.Option(help="Column of the first node.")]  # noqa: UP045
Target = Annotated[Optional[str], typer.Option(help="Column of the second node.")]  # noqa: UP045
Weight = Annotated[Optional[str], typer.Option(help="Column of the weight.")]  # noqa: UP045
MergeOption = Annotated[
    Optional[Merge],  # noqa: UP045
    typer.Option(help="Merge edges between the same two nodes this way; else an error."),
]
SimilarityCap = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(help="Weights are similarities of at most C; cluster by C - weight."),
]
MinClusterSize = Annotated[
    int, typer.Option(min=1, help="Smaller clusters become noise, label -1.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON to stdout.")]
Plot = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(help="Draw the clustered tree to this PNG or SVG file."),
]


def number(given: str | float) -> float | Fraction:
    """Return the number that was written, never a larger one: ten times 0.1 fit in a budget of 1.

    >>> number("0.1"), number("0.3"), number("1/3")
    (Fraction(1, 10), 0.3, Fraction(1, 3))
    """
    text = str(given)  # a default comes as a float
    try:
        if "/" in text:
            return Fraction(text)
        nearest = float(text)
        if nearest == 0 or not isfinite(nearest):
            return nearest
        written = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise typer.BadParameter(f"{text!r} is not a number") from None
    return written if written < nearest else nearest


Epsilon = Annotated[
    float,
    typer.Option(help="The privacy budget.", show_default=False, parser=number, metavar="NUMBER"),
]
Delta = Annotated[
    float,
    typer.Option(
        help="0 for a pure guarantee; a tiny positive value for far less noise.",
        parser=number,
        metavar="NUMBER",
    ),
]
L1 = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(help="One privacy unit moves all weights together by at most this (sum)."),
]
L2 = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(help="... by at most this (root of the sum of squares)."),
]
Linf = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(help="One privacy unit moves every single weight by at most this."),
]
TreeOption = Annotated[TreeMethod, typer.Option(help="Mechanism; auto takes what shows most.")]
ClustererOption = Annotated[
    ClustererName,
    typer.Option("--clusterer", help="How to cluster what is released; dbmstclu is the paper's."),
]
Split = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(
        help="Share of the budget for the tree; by default tree and weights get equal noise."
    ),
]
CalibrationOption = Annotated[
    Calibration, typer.Option(help="published: the paper's scales, with their true epsilon.")
]
Clip = Annotated[Bounds, typer.Option(help="Public bounds to clip the weights to: LOW HIGH.")]
WeightRange = Annotated[Bounds, typer.Option(help="Public bounds that all weights keep: LOW HIGH.")]


def graph_file(
    path: Path,
    source: str | None,
    target: str | None,
    weight: str | None,
    merge: Merge | None,
    similarity_cap: float | None = None,
) -> GraphFile:
    """Return the file with its options."""
    from ptclust.pipeline import GraphFile

    how: Any = None if merge is None else merge.value
    return GraphFile(path, source, target, weight, how, similarity_cap)


def plan_choices(
    epsilon: float,
    delta: float,
    l1: float | None,
    l2: float | None,
    linf: float | None,
    tree: TreeMethod,
    split: float | None,
    calibration: Calibration,
    weight_range: Bounds,
    clusterer: ClustererName = ClustererName.auto,
) -> dict[str, Any]:
    """Return what `plan` is to be told."""
    from ptclust.privacy import Sensitivity

    return {
        "epsilon": epsilon,
        "delta": delta,
        "sensitivity": Sensitivity(l1=l1, l2=l2, linf=linf),
        "tree": tree.value,
        "split": split,
        "clusterer": clusterer.value,
        "calibration": calibration.value,
        "weight_range": weight_range,
    }
