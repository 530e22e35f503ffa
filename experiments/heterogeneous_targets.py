"""What was asked of ptclust's defaults on heterogeneous graphs, beside what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from experiments.rivals import NON_PRIVATE, TOPOLOGY_ONLY
from experiments.settings import HETEROGENEOUS, MIXING, NULLS
from experiments.utility import equal_name
from ptclust._statistics import clopper_pearson

if TYPE_CHECKING:
    from collections.abc import Iterator

    from experiments.means import Mean, Means

__all__ = ["Judged", "judged"]

_OURS = "auto"
_CLOSE = 0.005
"""Values are compared as they are printed, with two digits."""
_WORTH_FINDING = 0.5
_SHARE = 0.9
_NEAR = 0.02  # below Leiden, on one LFR graph
_AT = "0.5, 0.2"  # that graph
_BIKE = {0.1: 0.85, 1.0: 0.95}
_CO_VISITS = 0.9
_ALARMS = 0.01
_RATIO = 10.0
_REAL = ("counts", "contacts", "tables")
_NAMED = {setting.name: setting for setting in HETEROGENEOUS}


@dataclass(frozen=True)
class Judged:
    """One target: what was asked, what was measured, and why it was missed if it was."""

    graph: str
    asked: str
    measured: str
    met: bool
    reason: str = ""

    @property
    def verdict(self) -> str:
        """Whether the target is met, in words."""
        return "met" if self.met else "**missed**"


def judged(means: Means) -> Iterator[Judged]:
    """Yield every target whose graph was measured."""
    yield from _bike(means)
    yield from _lfr(means)
    yield from _co_visits(means)
    for group in _REAL:
        for shape in _NAMED[group].shapes:
            yield from _real(means, group, shape)
    yield from _nulls(means)
    yield from _cost(means)


def _at_least(means: Means, found: Mean, asked: str, least: float) -> Judged:
    """Compare the mean ARI of the defaults with what was asked."""
    return Judged(
        f"{found.family}, epsilon = {found.epsilon:g}",
        asked,
        f"{found.ari:.2f}" + (f" ± {found.ari_margin:.2f}" if found.ari_margin is not None else ""),
        found.ari > least - _CLOSE,
        _reason(means, found),
    )


def _reason(means: Means, found: Mean) -> str:
    """Say what kind of miss it is, from what other methods make of the same release."""
    words = [f"{found.n_clusters:.0f} clusters" if found.n_clusters > 1 else "one cluster"]
    where = found.setting, found.family
    release = means.get(*where, "leiden-release", found.epsilon)
    if release is not None:
        words.append(f"Leiden on the same release has {release.ari:.2f}")
    last = means.curve(*where, _OURS)[-1]
    if last is not found:
        words.append(f"at epsilon = {last.epsilon:g} it is {last.ari:.2f}")
    return ", ".join(words)


def _best(means: Means, setting: str, family: str) -> float:
    found = [means.get(setting, family, control.name, None) for control in NON_PRIVATE]
    return max(float(mean.ari) for mean in found if mean is not None)


def topology_only(means: Means, setting: str, family: str) -> float:
    """Return what the topology gives away: to the defaults on equal weights, or to Leiden."""
    equal = means.curve(setting, family, equal_name(_OURS))
    plain = means.get(setting, family, TOPOLOGY_ONLY.name, None)
    return max((mean.ari for mean in (*equal, *([plain] if plain else ()))), default=0.0)


def _bike(means: Means) -> Iterator[Judged]:
    for shape in _NAMED["bike"].shapes:
        for epsilon, least in _BIKE.items():
            found = means.get("bike", shape, _OURS, epsilon)
            if found is not None:
                yield _at_least(means, found, f"{least:g}", least)


def _lfr(means: Means) -> Iterator[Judged]:
    for name in ("lfr-1000", "lfr-10000"):
        for shape in MIXING:
            found = means.get(name, shape, _OURS, 1.0)
            if found is None or means.get(name, shape, "leiden", None) is None:
                continue
            judged_here = []
            if shape == _AT:
                usual = means.of(name, shape, "leiden", None).ari
                asked = f"Leiden's {usual:.2f} - {_NEAR:g}"
                judged_here.append(_at_least(means, found, asked, usual - _NEAR))
            best = _best(means, name, shape)
            if best > _WORTH_FINDING:
                asked = f"{_SHARE:g} of the best, {best:.2f}"
                judged_here.append(_at_least(means, found, asked, _SHARE * best))
            for each in judged_here:
                yield Judged(f"{name} {each.graph}", *_rest(each))


def _rest(found: Judged) -> tuple[str, str, bool, str]:
    return found.asked, found.measured, found.met, found.reason


def _co_visits(means: Means) -> Iterator[Judged]:
    found = means.get("co-visits", "co-visits", _OURS, 1.0)
    if found is not None:
        yield _at_least(means, found, f"{_CO_VISITS:g}", _CO_VISITS)


def _real(means: Means, group: str, shape: str) -> Iterator[Judged]:
    found = means.get(group, shape, _OURS, 1.0)
    if found is None:
        return
    usual = means.of(group, shape, "leiden", None).ari
    given = topology_only(means, group, shape)
    asked = f"topology only, {given:.2f}, and {_SHARE:g} of Leiden's {usual:.2f}"
    yield _at_least(means, found, asked, max(given, _SHARE * usual))
    found = means.get(group, shape, _OURS, 10.0)
    if found is not None:
        yield _at_least(means, found, f"Leiden's {usual:.2f}", usual)


def _nulls(means: Means) -> Iterator[Judged]:
    """Count the graphs without clusters in which some were found; ARI is 0 there, else 1."""
    drawn = alarms = 0
    for shape in NULLS:
        for mean in means.curve("null", shape, _OURS):
            drawn += mean.repetitions
            alarms += round((1.0 - mean.ari) * mean.repetitions)
    if drawn:
        high = float(clopper_pearson([alarms], drawn, 0.05)[1][0])
        yield Judged(
            "null graphs, epsilon = 1",
            f"clusters in at most {_ALARMS:.0%}",
            f"{alarms} of {drawn} (95 %: at most {high:.1%})",
            alarms <= _ALARMS * drawn,
            "clusters where there are none",
        )


def _cost(means: Means) -> Iterator[Judged]:
    for name, edges in (("lfr-10000", "1e5"), ("lfr-100000", "1e6")):
        ours = means.get(name, _AT, _OURS, 1.0)
        theirs = means.get(name, _AT, "leiden-release", 1.0)
        if ours is not None and theirs is not None and ours.cpu and theirs.cpu:
            ratio = ours.cpu / theirs.cpu
            yield Judged(
                f"CPU time, m = {edges}",
                f"at most {_RATIO:g} times Leiden's",
                f"{ratio:.1f} times",
                ratio <= _RATIO,
                "the search and its judge take longer",
            )
