"""The paper's theory: its definitions, conditions, theorems and bounds as functions.

Everything here reads private weights and returns numbers about them: it is for the curator's own
eyes, and nothing of it may be published.
"""

from ptclust.theory.bounds import (
    TheoremD,
    drawn_tree_excess,
    excess_probability,
    expected_drawn_tree_excess,
    expected_excess,
    expected_perturbed_tree_excess,
    paper_exponent,
    paper_utility_threshold,
    partitioning_probability,
    perturbed_tree_excess,
    theorem_d,
)
from ptclust.theory.check import Check, check_clusters
from ptclust.theory.cluster import (
    ClustersVerdict,
    ClusterVerdict,
    ClusterWitness,
    cluster_verdict,
    clusters_verdict,
    connected_in,
    distances_from,
    minimum_path_distance,
)
from ptclust.theory.homogeneity import (
    ClusterHomogeneity,
    Homogeneity,
    alpha,
    homogeneously_separable,
    strong_homogeneity,
    weak_homogeneity,
)
from ptclust.theory.partition import (
    Partition,
    as_partition,
    cuts,
    has_partitioning_topology,
    is_cut,
)
from ptclust.theory.promise import (
    Promise,
    certify_interval,
    noise_allowance,
    probability_of_no_larger_noise,
    recovery_promise,
)
from ptclust.theory.recovery import Condition, RecoveryCertificate, certify_recovery
from ptclust.theory.separation import (
    TradeOff,
    cluster_trade_offs,
    exact_laplace_order_moment,
    laplace_order_moments,
    trade_off,
)
from ptclust.theory.theorems import TheoremCheck, recovered, theorem_a, theorem_b, theorem_c

__all__ = [
    "Check",
    "ClusterHomogeneity",
    "ClusterVerdict",
    "ClusterWitness",
    "ClustersVerdict",
    "Condition",
    "Homogeneity",
    "Partition",
    "Promise",
    "RecoveryCertificate",
    "TheoremCheck",
    "TheoremD",
    "TradeOff",
    "alpha",
    "as_partition",
    "certify_interval",
    "certify_recovery",
    "check_clusters",
    "cluster_trade_offs",
    "cluster_verdict",
    "clusters_verdict",
    "connected_in",
    "cuts",
    "distances_from",
    "drawn_tree_excess",
    "exact_laplace_order_moment",
    "excess_probability",
    "expected_drawn_tree_excess",
    "expected_excess",
    "expected_perturbed_tree_excess",
    "has_partitioning_topology",
    "homogeneously_separable",
    "is_cut",
    "laplace_order_moments",
    "minimum_path_distance",
    "noise_allowance",
    "paper_exponent",
    "paper_utility_threshold",
    "partitioning_probability",
    "perturbed_tree_excess",
    "probability_of_no_larger_noise",
    "recovered",
    "recovery_promise",
    "strong_homogeneity",
    "theorem_a",
    "theorem_b",
    "theorem_c",
    "theorem_d",
    "trade_off",
    "weak_homogeneity",
]
