"""``ptclust cluster``: publish the clusters of a graph under differential privacy."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Optional

import typer

from ptclust.cli import _options as o


def cluster(
    edges: o.Edges,
    epsilon: o.Epsilon,
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--output", "-o", help="Write the release to this JSON file."),
    ] = None,
    labels: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Write node,label to this CSV file too."),
    ] = None,
    delta: o.Delta = 0.0,
    l1: o.L1 = None,
    l2: o.L2 = None,
    linf: o.Linf = None,
    tree: o.TreeOption = o.TreeMethod.auto,
    clusterer: o.ClustererOption = o.ClustererName.auto,
    split: o.Split = None,
    calibration: o.CalibrationOption = o.Calibration.sound,
    clip: o.Clip = None,
    weight_range: o.WeightRange = None,
    shift: Annotated[Optional[float], typer.Option(help="tau; default from the release.")] = None,  # noqa: UP045
    scale: Annotated[Optional[float], typer.Option(help="p; default from the release.")] = None,  # noqa: UP045
    min_cluster_size: o.MinClusterSize = 1,
    privacy_unit: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="What one unit is, for the statement: 'one patient'."),
    ] = None,
    random_state: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=0, help="Seed for experiments: the release is NOT private."),
    ] = None,
    ledger: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Charge this ledger first; it refuses what it does not cover."),
    ] = None,
    dataset: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="The dataset of the ledger whose weights these are."),
    ] = None,
    dry_run: Annotated[bool, typer.Option(help="Show the plan and stop; spends nothing.")] = False,
    plot: o.Plot = None,
    source: o.Source = None,
    target: o.Target = None,
    weight: o.Weight = None,
    merge: o.MergeOption = None,
    similarity_cap: o.SimilarityCap = None,
    as_json: o.AsJson = False,
) -> None:
    """Publish the clusters of a graph; its weights stay differentially private.

    Say at least one of --l1, --l2, --linf: by how much one privacy unit can move the weights. Every run spends its
    budget anew, so an existing release is never overwritten.
    """
    import json

    from ptclust._files import check_writable
    from ptclust.cli._terminal import say, stages
    from ptclust.cli.ledger import confirm, show_account, show_dry_run
    from ptclust.errors import FileError, PrivacyWarning, UsageError
    from ptclust.pipeline import plan_file, publish_file
    from ptclust.privacy._ledger_plan import check_ledger
    from ptclust.report import check_format, draw_tree

    choices = o.plan_choices(
        epsilon, delta, l1, l2, linf, tree, split, calibration, clip or weight_range, clusterer
    )
    file = o.graph_file(edges, source, target, weight, merge, similarity_cap)
    book = check_ledger(ledger, dataset, random_state)
    if dry_run:
        show_dry_run(plan_file(file, **choices), book, dataset, as_json=as_json)
        return
    if output is None:
        raise UsageError("say where to write the release: --output release.json")
    if output.exists():
        raise FileError(
            f"{output} exists, and a release is never overwritten: running again spends the budget again. "
            "Give another name if that is what you want"
        )
    for path in (output, labels, plot):
        if path is not None:
            check_writable(path)
    if plot is not None:
        check_format(plot)
    with stages() as stage, warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # said below, in full
        planned, release = publish_file(
            file,
            choices,
            clip=clip,
            clusterer=clusterer.value,
            shift=shift,
            scale=scale,
            min_cluster_size=min_cluster_size,
            privacy_unit=privacy_unit,
            random_state=random_state,
            ledger=book,
            dataset=dataset,
            stage=stage,
        )
        stage(f"Writing {output.name}")
        release.save(output)
        if book is not None:
            confirm(book, release.statement.id)
        if labels is not None:
            release.to_csv(labels)
        if plot is not None:
            stage(f"Drawing {plot.name}")
            draw_tree(release.tree, release.labels, path=plot)
    if as_json:
        typer.echo(json.dumps(release.statement.to_dict(), indent=2))
    for warning in planned.warnings:
        say(f"Warning: {warning}.")
    say(release.statement.sentence)
    say(
        f"{release.n_clusters:,} clusters of {release.n_nodes:,} nodes in {output}. Running again "
        "spends the budget again; "
        "the release itself may be used as often as you like."
    )
    if book is not None:
        show_account(book, dataset)
