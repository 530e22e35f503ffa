"""The paper's theory: its definitions, conditions, theorems and bounds as functions.

Everything here reads private weights and returns numbers about them: it is for the curator's own
eyes, and nothing of it may be published.
"""

from ptclust.theory.bounds import certify_interval as certify_interval
from ptclust.theory.bounds import drawn_tree_excess as drawn_tree_excess
from ptclust.theory.bounds import excess_probability as excess_probability
from ptclust.theory.bounds import expected_drawn_tree_excess as expected_drawn_tree_excess
from ptclust.theory.bounds import expected_excess as expected_excess
from ptclust.theory.bounds import expected_perturbed_tree_excess as expected_perturbed_tree_excess
from ptclust.theory.bounds import noise_allowance as noise_allowance
from ptclust.theory.bounds import paper_exponent as paper_exponent
from ptclust.theory.bounds import paper_utility_threshold as paper_utility_threshold
from ptclust.theory.bounds import partitioning_probability as partitioning_probability
from ptclust.theory.bounds import perturbed_tree_excess as perturbed_tree_excess
from ptclust.theory.bounds import probability_of_no_larger_noise as probability_of_no_larger_noise
from ptclust.theory.bounds import recovery_promise as recovery_promise
from ptclust.theory.bounds import theorem_d as theorem_d
from ptclust.theory.check import check_clusters as check_clusters
from ptclust.theory.cluster import cluster_verdict as cluster_verdict
from ptclust.theory.cluster import clusters_verdict as clusters_verdict
from ptclust.theory.cluster import connected_in as connected_in
from ptclust.theory.cluster import distances_from as distances_from
from ptclust.theory.cluster import minimum_path_distance as minimum_path_distance
from ptclust.theory.homogeneity import homogeneously_separable as homogeneously_separable
from ptclust.theory.homogeneity import strong_homogeneity as strong_homogeneity
from ptclust.theory.homogeneity import weak_homogeneity as weak_homogeneity
from ptclust.theory.partition import as_partition as as_partition
from ptclust.theory.partition import cuts as cuts
from ptclust.theory.partition import has_partitioning_topology as has_partitioning_topology
from ptclust.theory.partition import is_cut as is_cut
from ptclust.theory.recovery import certify_recovery as certify_recovery
from ptclust.theory.recovery import recovered as recovered
from ptclust.theory.recovery import theorem_a as theorem_a
from ptclust.theory.recovery import theorem_b as theorem_b
from ptclust.theory.recovery import theorem_c as theorem_c
from ptclust.theory.separation import laplace_order_moments as laplace_order_moments
from ptclust.theory.separation import trade_off as trade_off
