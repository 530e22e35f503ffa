"""Compile the kernels once, before several processes of pytest would each do it for themselves."""

from __future__ import annotations

import numpy as np

from ptclust import DBMSTClu
from ptclust.planning import predict
from ptclust.privacy import Sensitivity
from tests.golden.graphs import GRAPHS
from tests.golden.record import record

if __name__ == "__main__":
    record(["path", "two clusters"])
    DBMSTClu().fit(np.random.default_rng(0).normal(size=(100, 2)))
    topology = GRAPHS["two clusters"]().topology
    bound = Sensitivity(linf=1e-4)
    predict(topology, sensitivity=bound, delta=1e-6, epsilons=[1.0], repetitions=1)
