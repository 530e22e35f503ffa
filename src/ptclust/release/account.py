"""The privacy statement of a plan that was carried out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptclust.privacy._numbers import float_up
from ptclust.privacy.statement import MechanismUse, PrivacyStatement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ptclust.privacy.budget import Budget
    from ptclust.privacy.plan import Candidate, Plan

__all__ = ["PAMST", "statement_of"]

PAMST = "PAMST: Exponential mechanism in Prim's order"

_NAMES = {
    "pamst": PAMST,
    "kruskal": "Exponential mechanism in Kruskal's order",
}
_REFERENCES = {
    "pamst": "Pinot et al. 2018, Algorithm 2; bounded range: Cesar and Rogers 2021",
    "kruskal": "Pagh, Retschmeier, Wu and Zhang 2024; bounded range: Cesar and Rogers 2021",
    "laplace": "Dwork et al. 2006; sampler: OpenDP",
    "gaussian": "Bun and Steinke 2016; sampler: OpenDP",
}


def statement_of(
    plan: Plan,
    *,
    reproducible: bool,
    post_processing: Sequence[str],
    privacy_unit: str | None = None,
    clip: tuple[float, float] | None = None,
) -> PrivacyStatement:
    """Return what a release made by ``plan`` guarantees."""
    chosen = plan.chosen
    pure = chosen.spent.kind == "pure"
    words: dict[str, Any] = {} if privacy_unit is None else {"privacy_unit": privacy_unit}
    if plan.calibration == "published":
        words["requested_epsilon"] = float(plan.budget.epsilon)
    caveats = list(plan.warnings)
    if chosen.tree is not None and chosen.tree.exponent > 0:
        bound = f"{chosen.tree.largest_weight:.3g}"
        caveats.append(
            f"to the draw of the tree, weights beyond {bound} in size look like that bound"
        )
    if clip is not None:
        caveats.append(
            f"weights were clipped to the public bounds {clip[0]:g} and {clip[1]:g} first"
        )
    return PrivacyStatement(
        variant="pure" if pure else "approximate",
        epsilon=float_up(chosen.spent.epsilon),
        delta=0.0 if pure else float_up(chosen.spent.delta),
        rho=None if pure else float_up(plan.budget.to_zcdp().rho or 0),
        sensitivity=plan.sensitivity.to_dict(),
        neighbours=plan.sensitivity.describe(),
        mechanisms=_uses(chosen),
        randomness="reproducible" if reproducible else "secure",
        calibration=plan.calibration,
        post_processing=tuple(post_processing),
        numerical_slack=chosen.tree.slack if chosen.tree else 0.0,
        numerical_slack_words=_slack_words(chosen),
        caveats=tuple(caveats),
        **words,
    )


def _uses(chosen: Candidate) -> tuple[MechanismUse, ...]:
    uses = []
    if chosen.tree is not None and chosen.tree.spent is not None:
        share_of, share = _share(chosen.tree.spent)
        uses.append(
            MechanismUse(
                name=_NAMES[chosen.method],
                purpose="topology of the spanning tree",
                share=share,
                share_of=share_of,
                noise="Gumbel, by exact sampling of the Exponential mechanism",
                scale=1.0 / chosen.tree.exponent,
                parameters={"n_steps": chosen.tree.n_steps, "exponent": chosen.tree.exponent},
                reference=_REFERENCES[chosen.method],
            )
        )
    if chosen.weights.n_values and chosen.weights_spent is not None:
        share_of, share = _share(chosen.weights_spent)
        uses.append(
            MechanismUse(
                name=f"{chosen.weights.distribution.capitalize()} mechanism",
                purpose="weights of the tree" if chosen.tree else "weights of the whole graph",
                share=share,
                share_of=share_of,
                noise=chosen.weights.distribution.capitalize(),
                scale=chosen.weights.scale,
                parameters={
                    "n_values": chosen.weights.n_values,
                    "granularity_exponent": chosen.weights.granularity,
                },
                reference=_REFERENCES[chosen.weights.distribution],
            )
        )
    return tuple(uses)


def _share(spent: Budget) -> tuple[Any, float]:
    return ("epsilon", float(spent.epsilon)) if spent.rho is None else ("rho", float(spent.rho))


def _slack_words(chosen: Candidate) -> str:
    if chosen.tree is None:
        return "none: the samplers of OpenDP are exact on their lattice, and rounding to it is in the noise scale"
    return (
        f"the tree sampler rounds exponents to a grid; its {chosen.tree.n_steps:,} steps widen the privacy loss by "
        f"{chosen.tree.slack:.2g} in all, and the exponent was lowered to pay for it"
    )
