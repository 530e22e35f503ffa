"""Changes of the exact sampler, one at a time: the checks of `exactness` notice each of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest

from ptclust.privacy.noise import _lattice_kernel as kernel
from ptclust.privacy.noise import exact as exact_noise
from ptclust.privacy.noise.exact import BEYOND_T, LatticeSampler
from tests.mechanisms.exactness import (
    ExhaustedError,
    all_words,
    decision_faults,
    half_width_faults,
    lattice_faults,
    loop_faults,
    settling_faults,
    table_faults,
    uniform_faults,
    wrong_yields,
)

POWERS = {"laplace": 1, "gaussian": 2}
DISTRIBUTIONS = tuple(POWERS)
LARGEST = BEYOND_T - Fraction(1, 4)


def noticed(*checks: Callable[[], Any]) -> bool:
    """Whether a check finds a fault, or stumbles over one."""
    for check in checks:
        try:
            with np.errstate(all="ignore"):
                if check():
                    return True
        except (AssertionError, IndexError, OverflowError, ValueError, ExhaustedError):
            return True
    return False


def patched(module: ModuleType, line: str, by: str) -> ModuleType:
    """Return a module with one line of its source changed; kernels in it are not compiled."""
    source = Path(str(module.__file__)).read_text()
    assert source.count(line) == 1, line
    mutant = ModuleType(module.__name__)
    exec(source.replace(line, by).replace("@kernel\n", ""), mutant.__dict__)
    return mutant


# Fields of the table, and the exact numbers beside it


def _put(place: int, by: int) -> Any:
    def change(array: Any) -> Any:
        changed = array.copy()
        changed[place] += np.uint64(by)
        return changed

    return change


FIELDS = {
    "thresholds": _put(7, 1),
    "aliases": _put(3, 1),
    "ratios": lambda ratios: ratios * (1 - 2.0**-20),
    "column_shift": lambda shift: shift + np.uint64(1),
    "column_mask": lambda mask: mask >> np.uint64(1),
    "tail": lambda tail: tail - np.uint64(1),
    "low_bits": lambda bits: bits + np.uint64(1),
    "low_mask": lambda mask: mask >> np.uint64(1),
    "low_unit": lambda unit: unit * (1 + 2.0**-14),
    "slope": lambda slope: slope * (1 + 2.0**-14) + 2.0**-20,
    "curvature": lambda curvature: curvature * (1 + 2.0**-14) + 2.0**-20,
    "v_unit": lambda unit: unit * (1 - 2.0**-20),
    "v_fine": lambda fine: fine * 2,
    "margin": lambda margin: margin / 8,
}
ATTRIBUTES = {
    "constant": lambda constant: constant + 2**40,
    "weights": lambda weights: [weights[0] - 1, *weights[1:-1], weights[-1] + 1],
    "tops": lambda tops: [tops[0], tops[1] - 2, *tops[2:]],
    "tail_start": lambda start: start // 2,
    "tail_shift": lambda shift: shift + 1,
}


def test_every_field_of_the_table_has_a_mutant() -> None:
    assert set(FIELDS) == set(kernel.Table._fields)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_mutants_of_the_table_are_noticed(field: str, distribution: str) -> None:
    sampler = LatticeSampler(POWERS[distribution], LARGEST)
    checks = (lambda: table_faults(sampler), lambda: decision_faults(sampler))
    assert not noticed(*checks)
    changed = FIELDS[field](getattr(sampler.table, field))
    sampler.table = sampler.table._replace(**{field: changed})
    assert noticed(*checks)


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_mutants_of_the_exact_numbers_are_noticed(name: str) -> None:
    sampler = LatticeSampler(1, Fraction(2**22 + 1))
    setattr(sampler, name, ATTRIBUTES[name](getattr(sampler, name)))
    assert table_faults(sampler)


# Lines of the kernels

ATTEMPT = {
    "if (first & table.column_mask) >= table.thresholds": "if (first & table.column_mask) > table"
    ".thresholds",
    "-size if is_negative": "size if is_negative",
    "if is_negative and size == 0": "if is_negative and size < 0",
    "np.float64(v + _ONE)": "np.float64(v) * (1 - 2.0**-12)",
    "0.5 * within": "within",
    "ratio * (1.0 - y)": "ratio * (1.0 - 0.99 * y)",
    "(1.0 - y) - table.margin": "(1.0 - y) + table.margin + y * y / 2",
    "np.float64(v) + third": "np.float64(v)",
    "range(8, 0, -1)": "range(2, 0, -1)",
    "series * y / i": "series * y",
    "series - table.margin": "series + table.margin",
    "series + table.margin": "series - table.margin",
    "if block == table.tail": "if block == table.tail + _ONE",
}
LOOPS = {
    # Words that are used twice, or beyond the last.
    "        at += used\n    return drawn": "        at += _ONE\n    return drawn",
    "noise[i] = value\n            at += used": "noise[i] = value\n            at += _ONE",
    "        and at + np.uint64(WORDS) <= last\n        and n_open": "        and at < last\n"
    "        and n_open",
    "and n_open < np.uint64(len(opened))": "and n_open <= np.uint64(len(opened))",
    # What is open is lost, or is told with the words of others.
    "= words[at + i]": "= words[i]",
    "opened[n_open, np.uint64(0)] = drawn": "opened[n_open, np.uint64(0)] = at",
    "if outcome != REJECTED:": "if outcome == ACCEPTED:",
    "OPEN + np.int64(at)": "OPEN",
    "while outcome[i] == REJECTED and": "while outcome[i] != ACCEPTED and",
    # Uniform values.
    "if number <= largest": "if number < largest",
    "number = word & mask": "number = word % (largest + _ONE)",
    "for shift in (1, 2, 4, 8, 16, 32)": "for shift in (1, 2, 4, 8, 16)",
    "np.int64(number) - half_width": "np.int64(number) - half_width + 1",
    "if drawn == np.uint64(len(noise))": "if drawn == np.uint64(len(noise)) + _ONE",
    "ACCEPTED if drawn else REJECTED": "ACCEPTED",
    # Rounding to the lattice, and sums.
    "steps - below >= 0.5": "steps - below > 0.5",
    "np.floor(steps)": "np.trunc(steps)",
    "abs(steps) < NEAR": "abs(steps) <= NEAR",
    "nearest + noise[i]": "nearest + noise[i - 1]",
    "values[i] * powers[0] * powers[1]": "values[i] * powers[0] * powers[0]",
    "* powers[2] * powers[3]": "* powers[2] * powers[2]",
    "return min(max(value, -largest), largest)": "return value",
}


@pytest.mark.parametrize("line", ATTEMPT)
def test_mutants_of_attempts_are_noticed(line: str) -> None:
    mutant = patched(kernel, line, ATTEMPT[line])
    samplers = [LatticeSampler(POWERS[each], LARGEST) for each in DISTRIBUTIONS]
    assert noticed(*(lambda s=s: decision_faults(s, mutant.attempt) for s in samplers))


@pytest.mark.parametrize("line", LOOPS)
def test_mutants_of_loops_are_noticed(line: str) -> None:
    mutant = patched(kernel, line, LOOPS[line])
    assert noticed(
        lambda: loop_faults(mutant), lambda: uniform_faults(mutant), lambda: lattice_faults(mutant)
    )


def test_kernels_that_are_not_compiled_are_right() -> None:
    same = patched(kernel, "OPEN + np.int64(at)", "OPEN + np.int64(at)")
    assert not noticed(
        *(
            lambda s=s: decision_faults(s, same.attempt)
            for s in (LatticeSampler(POWERS[each], LARGEST) for each in DISTRIBUTIONS)
        ),
        lambda: loop_faults(same),
        lambda: uniform_faults(same),
        lambda: lattice_faults(same),
    )


# Too little to change what words of nine bits decide; replayed decisions show it, above.
HIDDEN = {
    "(1.0 - y) - table.margin",
    "np.float64(v + _ONE)",
    "ratio * (1.0 - y)",
    "range(8, 0, -1)",
    "series - table.margin",
    "series + table.margin",
}


@pytest.mark.long
@pytest.mark.parametrize("line", [None, *(line for line in ATTEMPT if line not in HIDDEN)])
def test_all_strings_through_a_compiled_mutant_are_not_the_distribution(line: str | None) -> None:
    source = inspect.getsource(inspect.unwrap(kernel.attempt)).replace("@kernel\n", "")
    names = dict(vars(kernel))
    exec(source if line is None else source.replace(line, ATTEMPT[line]), names)
    run = all_words(numba.njit(names["attempt"]))
    samplers = [
        LatticeSampler(POWERS[each], Fraction(t), word_bits=9, column_bits=bits)
        for each, t, bits in (("laplace", 100, 3), ("gaussian", 70, 4))
    ]
    assert noticed(*(lambda s=s: wrong_yields(s, run) for s in samplers)) == (line is not None)


# Lines of what is exact

EXACT = {
    # Tables.
    "return -(-a * b >> _TABLE_BITS)": "return a * b >> _TABLE_BITS",
    "math.ceil(exp_bounds(-rise, _DIGITS)[1] * 2**_TABLE_BITS)": "math.floor(exp_bounds(-rise, "
    "_DIGITS)[0] * 2**_TABLE_BITS)",
    "exponent_below(self.t) + 3": "exponent_below(self.t) - 1",
    "tops[n_blocks] << (self.tail_shift - self.low_bits + 1)": "tops[n_blocks] << (self.tail_shift"
    " - self.low_bits)",
    "left[j] -= size - left[i]": "left[j] -= size",
    "thresholds[i], aliases[i] = left[i], j": "thresholds[i], aliases[i] = left[i] + 1, j",
    # Bits.
    "self._left &= (1 << self._n_left) - 1": "pass",
    "taken = self._left >> self._n_left": "taken = (self._left >> self._n_left) & ~1",
    # What is left open.
    "if part >= int(self.table.thresholds[column])": "if part > int(self.table.thresholds[column])",
    "if negative and size == 0": "if negative and size < 0",
    "v = v << self.word_bits | third": "v = v << self.word_bits",
    "v_bits = self.word_bits - 1 - self.low_bits": "v_bits = self.word_bits - self.low_bits",
    "return -size if negative else size\n\n    def _tail": "return size\n\n    def _tail",
    "if v + 1 <= low": "if v <= low",
    "if v >= high": "if v + 1 >= high",
    # The tail.
    "halvings = group + 1": "halvings = group",
    "bits.take(self.tail_shift)": "bits.take(self.tail_shift - 1)",
    "(group << self.tail_shift)": "(group << self.low_bits)",
    # The cube.
    "_times(Fraction(2**group), bounds)": "_times(Fraction(1), bounds)",
    "self.mode - 1 - away if is_left": "self.mode - away if is_left",
    "Fraction(2 * g + 1, 2 * other + 1)": "Fraction(2 * g + 2, 2 * other + 2)",
    "(group << self.group_bits)": "(group << self.group_bits + 1)",
    "not any(self.log_ratio_is_above(side": "not all(self.log_ratio_is_above(side",
    "log_bounds(Fraction(2), _DIGITS)": "log_bounds(Fraction(5, 4), _DIGITS)",
}


def exact_checks(module: Any) -> list[Callable[[], Any]]:
    """All checks of what is exact, on the classes of a module."""

    def of_lattice(distribution: str, t: Fraction) -> Any:
        sampler = module.LatticeSampler(POWERS[distribution], t)
        return table_faults(sampler) or settling_faults(sampler, module.Bits)

    scales = [("laplace", Fraction(2**22 + 1)), ("gaussian", LARGEST)]
    cubes = [(1, Fraction(1, 3)), (17, Fraction(100, 7)), (400, Fraction(3))]
    return [
        *(lambda scale=scale: of_lattice(*scale) for scale in scales),
        *(lambda cube=cube: half_width_faults(module.CubeSampler(*cube)) for cube in cubes),
    ]


def test_what_is_exact_is_right() -> None:
    assert not noticed(*exact_checks(exact_noise))


@pytest.mark.parametrize("line", EXACT)
def test_mutants_of_what_is_exact_are_noticed(line: str) -> None:
    assert noticed(*exact_checks(patched(exact_noise, line, EXACT[line])))
