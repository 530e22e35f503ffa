"""The audit of a series of two: it stands, and a control that spends more is refuted."""

from __future__ import annotations

import pytest

from ptclust.audit.mechanisms import ValuesRelease
from ptclust.audit.noise import EPSILON, worst_series
from ptclust.audit.suite import Effort, Suite

SUITE = Suite(Effort.quick(), 0)


@pytest.mark.parametrize("shares", [(1, 1), (1, 3)])
def test_joint_loss_is_the_total_and_no_more(shares: tuple[int, int]) -> None:
    loss = worst_series(shares).loss
    assert 0.999 * EPSILON < loss <= EPSILON


def test_too_little_noise_is_refuted() -> None:
    assert worst_series((1, 1), 0.05).loss > 1.03 * EPSILON


def test_draws_stand_and_a_series_that_is_not_split_is_refuted() -> None:
    stands = SUITE.series(ValuesRelease, 1_000).run(1e-4)
    (control,) = SUITE.series(ValuesRelease, 12_000, split=False).run(1e-6)
    assert [each.verdict for each in stands] == ["stands", "stands"]
    assert control.verdict == "refuted"
