"""What maps must be, whatever was learned: rows that sum to what the weighing claims, and no padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attnlab.evaluation.maps.shot import Shot
from attnlab.record import Check

ROUNDING = 1e-4  # of a row's sum in fp32; another normalisation misses one by far more


def checks(shots: Sequence[Shot]) -> tuple[Check, ...]:
    """Both checks, over every layer of every shot; none where no layer has weights to look at."""
    rows = [
        (shot.step, layer, told) for shot in shots for layer, told in enumerate(shot.figures["rows"]) if told
    ]
    if not rows:
        return ()
    return (_row_sums(rows), _padding(rows))


def _row_sums(rows: Sequence[tuple[int, int, Any]]) -> Check:
    """A row of zeros sees nothing: it has no sum to claim. Where all rows are, something is wrong."""
    claimed = [(step, layer, told) for step, layer, told in rows if told["claim"]]
    low, high = min(told["least"] for *_, told in rows), max(told["most"] for *_, told in rows)
    detail = {"least": low, "most": high, "tolerance": ROUNDING}
    if not claimed:
        return Check(
            "row-sums", "skip", f"rows sum to {low:.4g} to {high:.4g}, and no more is claimed", detail
        )
    for step, layer, told in claimed:
        if told["blind"] == told["rows"]:
            evidence = f"every row of layer {layer + 1} is zero after step {step}, and is claimed to sum to 1"
            return Check("row-sums", "fail", evidence, detail)
    step, layer, told = max(claimed, key=lambda row: _off(row[2]))
    worst = told["least"] if 1 - told["least"] > told["most"] - 1 else told["most"]
    if not _off(told) <= ROUNDING:
        evidence = (
            f"a row of layer {layer + 1} sums to {worst:.6g} after step {step}, and is claimed to sum to 1"
        )
        return Check("row-sums", "fail", evidence, detail)
    counted = sum(told["rows"] for *_, told in claimed)
    return Check("row-sums", "pass", f"{counted:,} rows sum to 1 within {_off(told):.1g}", detail)


def _off(told: Any) -> float:
    return float(max(1 - told["least"], told["most"] - 1))


def _padding(rows: Sequence[tuple[int, int, Any]]) -> Check:
    step, layer, told = max(rows, key=lambda row: row[2]["padding"])
    places = sum(told["padded"] for *_, told in rows)
    detail = {"largest": told["padding"], "places": places}
    if not places:
        return Check("padding", "skip", "no row of the probes was padded", detail)
    if told["padding"] != 0:
        evidence = (
            f"layer {layer + 1} puts up to {told['padding']:.3g} of a row on padding after step {step}; "
            "a sequence must not depend on what it is batched with"
        )
        return Check("padding", "fail", evidence, detail)
    return Check("padding", "pass", f"exactly zero at all {places:,} padded keys of the probes' rows", detail)
