"""How a clustering leaves the command line."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import ExitStack, contextmanager, suppress
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ptclust.pipeline import TreeClustering
    from ptclust.release import Release


STDOUT = Path("-")


@contextmanager
def held_outputs(
    files: Mapping[str, Path | None],
    reads: Mapping[str, Path | None],
    overwrite: Iterable[Path] | None,
    *,
    as_json: bool = False,
    remedy: str = "",
) -> Iterator[None]:
    """Hold the names of outputs, by option, while they are made: none destroys another file.

    UsageError if an output is one of the files that are read, or two are one file; FileError if one
    cannot be written, or exists and is not to be overwritten. Names without a file go again.
    """
    from ptclust._files import check_writable, reserved, same_file
    from ptclust.errors import UsageError
    from ptclust.report import check_format

    given = {option: path for option, path in files.items() if path is not None}
    for option in (option for option, path in given.items() if path == STDOUT):
        if option != "--output":
            raise UsageError(f"{option} - is not possible: only --output can be standard output")
        if as_json:
            raise UsageError("--output - and --json both write to standard output; leave one out")
    written = {option: path for option, path in given.items() if path != STDOUT}
    known = written | {what: path for what, path in reads.items() if path is not None}
    for (option, path), (other, there) in combinations(known.items(), 2):
        if option in written and same_file(path, there):
            raise UsageError(f"{option} {path} and {other} {there} are one file: give another name")
    replaced = {os.path.realpath(path): path for path in overwrite or ()}
    for real, path in replaced.items():
        if real not in map(os.path.realpath, written.values()):
            raise UsageError(f"--overwrite {path} names no output of this command; leave it out")
    if (plot := given.get("--plot")) is not None:
        check_format(plot)
    with ExitStack() as names:
        for path in written.values():
            if os.path.realpath(path) in replaced:
                check_writable(path)
            else:
                option = f"--overwrite {shlex.quote(str(path))}"
                either = f"{remedy}give another name, or {option} if that file is not wanted"
                names.enter_context(reserved(path, either))
        yield


def write_release(release: Release, output: Path) -> None:
    """Write a release to its file, whose name is held, or to stdout."""
    from ptclust.errors import FileError
    from ptclust.release.format import encode

    if output != STDOUT:
        release.save(output, overwrite=True)
        return
    try:
        sys.stdout.write(encode(release).decode())
        sys.stdout.flush()
    except OSError as error:
        with suppress(OSError):  # or Python tries again when it ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise FileError(f"standard output could not be written: {error.strerror}") from error


def write_views(
    release: Release, labels: Path | None, plot: Path | None, *, escape_formulas: bool
) -> None:
    """Write the labels of a release, and its picture, where these are wanted."""
    from ptclust.report import draw_tree

    if labels is not None:
        release.to_csv(labels, escape_formulas=escape_formulas, overwrite=True)
    if plot is not None:
        draw_tree(release.tree, release.labels, path=plot)


def show_advice(release: Release) -> None:
    """Say what to do if the clusters are of little use."""
    from ptclust.cli._terminal import in_options, say

    for line in release.advice:
        say(in_options(line))


def place(output: Path) -> str:
    """Return where an output is, in words."""
    return "standard output" if output == STDOUT else str(output)


def write_json(result: TreeClustering, *, with_labels: bool) -> None:
    """Write counts, index and cuts to stdout, and the labels if they go nowhere else."""
    import json

    clustering, pairs = result.clustering, []
    if (cuts := clustering.cuts) is not None and cuts.dbcvi is not None:
        pairs = list(zip(cuts.edge_ids.tolist(), cuts.dbcvi.tolist(), strict=True))
    document: dict[str, object] = {
        "n_nodes": result.tree.n_nodes,
        "n_edges": result.n_edges,
        "n_components": result.tree.n_nodes - result.tree.n_edges,
        "n_clusters": clustering.n_clusters,
        "n_unclustered": clustering.n_unclustered,
        "dbcvi": clustering.dbcvi,
        "cuts": [{"edge": edge, "dbcvi": index} for edge, index in pairs],
        "private": False,
    }
    if with_labels:
        document["nodes"] = result.tree.names.tolist()
        document["labels"] = clustering.labels.tolist()
    json.dump(document, sys.stdout, default=str, ensure_ascii=False)
    sys.stdout.write("\n")


def summary(result: TreeClustering) -> str:
    """Return one line for the person at the terminal."""
    clustering = result.clustering
    left = f", {clustering.n_unclustered:,} nodes unclustered" if clustering.n_unclustered else ""
    clusters = "1 cluster" if clustering.n_clusters == 1 else f"{clustering.n_clusters:,} clusters"
    return (
        f"{clusters}{left} in {result.tree.n_nodes:,} nodes and {result.n_edges:,} edges; "
        f"DBCVI {clustering.dbcvi:.4f}. Not private: labels and index come from the raw weights."
    )
