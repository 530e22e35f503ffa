"""What tests of payments share."""

from __future__ import annotations

from ptclust.mechanisms import MECHANISMS


def break_draws(monkeypatch, draw) -> None:
    for mechanism in MECHANISMS:
        for name in ("draw", "draw_tree"):
            monkeypatch.setattr(type(mechanism), name, draw)
