"""A mechanism: an object that calibrates, draws, states what it spends, and can be audited."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from ptclust._options import Sampler
from ptclust._registry import Registry
from ptclust._traces import leaves_no_trace
from ptclust._types import Floats
from ptclust.errors import UsageError
from ptclust.graph.topology import Topology, WeightedGraph
from ptclust.mechanisms.lattice import add_noise, sampler_of
from ptclust.mechanisms.laws import SmallGraph, TreeLaw
from ptclust.privacy.budget import Budget
from ptclust.privacy.noise import Noise
from ptclust.privacy.noise.distribution import Norm
from ptclust.privacy.randomness import RandomStream as Stream
from ptclust.privacy.sensitivity import Sensitivity
from ptclust.privacy.statement import MechanismUse
from ptclust.published import Published
from ptclust.trees.tree import Tree

if TYPE_CHECKING:
    from ptclust.mechanisms.exponential import TreeCalibration

Publishes = Literal["tree", "graph"]
Variant = Literal["pure", "approximate"]
#: What is drawn as a function of a key and the edge: noise on all weights, or clocks, whose least
#: spanning tree or tree of shortest paths is published (docs/proofs/keyed-trees.md).
Keyed = Literal["weights", "spanning tree", "shortest paths"]


@dataclass(frozen=True)
class Calibration:
    """A mechanism calibrated to a budget, from public numbers alone."""

    mechanism: str  # its name
    tree: TreeCalibration | None  # how the tree is drawn; None if it is that of a perturbed graph
    weights: Noise  # on the weights: of the tree, or of the whole graph where that is perturbed
    spent: Budget  # what the release as a whole costs
    weights_spent: Budget | None  # what of it goes into the weights; None if a tree is drawn alone
    # About how far apart weights within and across clusters have to be for clusters to be seen: a
    # rule of thumb, set by the plan, which knows the clusterer.
    visible_gap: float = 0.0
    sampler: Sampler = "auto"  # of the noise on the weights, as it was requested: set by the plan
    keyed: bool = False  # whether noise is a function of a key and the edge, as the Spark engine's

    @property
    def noise(self) -> float:
        """The larger of the standard deviations with which tree and weights see private weights."""
        return max(self.weights.standard_deviation, self.tree.noise if self.tree else 0.0)

    @property
    def slack(self) -> float:
        """How much of the epsilon spent pays for the rounding of a sampler."""
        return self.tree.slack if self.tree else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the public numbers."""
        tree = self.tree
        return {
            "mechanism": self.mechanism,
            "noise": self.noise,
            "visible_gap": self.visible_gap,
            "tree_exponent": tree.exponent if tree else None,
            "tree_noise": tree.noise if tree else None,
            "tree_largest_weight": tree.largest_weight if tree and tree.exponent else None,
            "weights": self.weights.to_dict(),
            "spent": self.spent.to_dict(),
        }


class Mechanism(ABC):
    """A way to publish noisy weights of a tree or of a whole graph.

    Plan, statement, audit, command line and documentation use these attributes and methods only.
    CONTRIBUTING.md has an example of adding one.
    """

    name: str  # what options, plans and files call it
    title: str  # what people call it, in statements
    reference: str  # where it and its guarantee are proved
    proof: str  # the section of docs/proofs that this implementation rests on
    publishes: Publishes  # whether noisy weights of a tree or of all edges are published
    variants: tuple[Variant, ...]  # guarantees; a pure one is an approximate one, too
    norm: Norm  # of the neighbours that suit it best
    clusterer: str | None = None  # what ``auto`` means after it, if it is special
    keyed: Keyed | None = None  # how many machines draw it, if that has the same law

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if {"draw", "draw_edges"} & vars(cls).keys() and "keyed" not in vars(cls):
            cls.keyed = None  # what a class says of its draws does not hold for those of another
        leaves_no_trace(cls)

    @abstractmethod
    def calibrate(
        self,
        topology: Topology,
        sensitivity: Sensitivity,
        budget: Budget,
        *,
        split: Fraction | None = None,
        largest_weight: float = 0.0,
    ) -> Calibration:
        """Return the calibration that spends no more than a budget; UsageError if it affords none.

        The budget is pure or (epsilon, delta); approximate mechanisms with `laws` take zCDP, too.
        ``split`` is the share of the tree where tree and weights are released apart: 1 for a tree
        without weights; by default both get the same noise. ``largest_weight`` is a public bound on
        the size of the weights, 0 if there is none.
        """

    def calibrate_published(
        self,
        topology: Topology,
        sensitivity: Sensitivity,
        budget: Budget,
        *,
        split: Fraction | None = None,
    ) -> Calibration:
        """Return the calibration with the scales that the paper prints, and their true cost."""
        raise UsageError(
            "calibration='published' is the paper's Algorithm 3, PAMST and Laplace noise: use "
            "mechanism='pamst' and delta=0"
        )

    @abstractmethod
    def draw(
        self,
        graph: WeightedGraph,
        calibration: Calibration,
        stream: Stream,
        *,
        progress: Callable[[str], None] = lambda _: None,
    ) -> Published:
        """Publish noisy weights: the only function that reads private weights and publishes.

        Notes
        -----
        *Privacy.* What is returned has the guarantee of ``calibration``.
        """

    @abstractmethod
    def draw_tree(self, graph: WeightedGraph, calibration: Calibration, stream: Stream) -> Tree:
        """Publish the topology of a spanning tree alone; it carries no weights."""

    def laws(self, graph: SmallGraph) -> tuple[TreeLaw, ...]:
        """Return the exact distribution of the tree on a small graph, for the audit.

        The first is that of the release, others are of what somebody with side knowledge sees.
        Where the tree is post-processing of noisy weights there is none.
        """
        return ()

    def recalibrate(
        self, published: Published, sensitivity: Sensitivity, stated: tuple[MechanismUse, ...]
    ) -> Calibration | None:
        """Return the calibration that published values show, and what it truly spends.

        With it the claim of a release is checked when it is loaded. ``stated`` are the uses of the
        statement, for parameters that the values do not show; InputError if they lack one. None if
        it is unknown.
        """
        return None

    def keeps(self, calibration: Calibration, sensitivity: Sensitivity, budget: Budget) -> bool:
        """Return whether a calibration keeps (epsilon, delta) by a proof other than that of zCDP.

        It is about all that the mechanism releases, and nothing else is released with it.
        """
        return False

    @abstractmethod
    def uses(self, calibration: Calibration) -> tuple[MechanismUse, ...]:
        """Return the parts that read private weights, and what each spends, for the statement."""


# Of two mechanisms that promise the same, ``auto`` takes the first.
MECHANISMS: Registry[Mechanism] = Registry("mechanism")


@leaves_no_trace
def with_noise(
    private_weights: Floats,
    calibration: Calibration,
    stream: Stream,
    progress: Callable[[str], None],
) -> Floats:
    """Return weights with the noise of a calibration; progress is reported in words."""
    what = f"Noise on {len(private_weights):,} weights"
    progress(what)
    return add_noise(
        private_weights,
        calibration.weights,
        stream=stream,
        sampler=calibration.sampler,
        progress=lambda done: progress(f"{what}: {done:,} done"),
    )


def noise_use(calibration: Calibration, purpose: str) -> tuple[MechanismUse, ...]:
    """Return the use of noise on weights."""
    noise, spent = calibration.weights, calibration.weights_spent
    if not noise.n_values or spent is None:
        return ()
    sampler = sampler_of(noise, calibration.sampler, keyed=calibration.keyed)
    return (
        MechanismUse(
            name=noise.law.mechanism,
            purpose=purpose,
            share=float(spent.amount),
            share_of=spent.unit,
            noise=noise.law.title,
            scale=noise.scale,
            parameters={"n_values": noise.n_values, "granularity_exponent": noise.granularity},
            reference=f"{noise.law.reference}; sampler: {sampler}",
        ),
    )
