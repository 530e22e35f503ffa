"""Room of the clusterings: post-processing of a weighted tree or graph, whoever made it."""

from ptclust.clustering.contraction import contract
from ptclust.clustering.dbcvi import (
    WeightedTree,
    cluster_validity,
    dbcvi,
    dispersion,
    separation,
)
from ptclust.clustering.dbmstclu import Clustering, Cuts, check_sizes, dbmstclu, without_small
from ptclust.clustering.excess_of_mass import excess_of_mass
from ptclust.clustering.level_cuts import LevelCuts, cut_levels

__all__ = [
    "Clustering",
    "Cuts",
    "LevelCuts",
    "WeightedTree",
    "check_sizes",
    "cluster_validity",
    "contract",
    "cut_levels",
    "dbcvi",
    "dbmstclu",
    "dispersion",
    "excess_of_mass",
    "separation",
    "without_small",
]
