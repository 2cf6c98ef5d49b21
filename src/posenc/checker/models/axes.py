"""Several coordinates: each axis moved alone from a start that is not 0; equal positions on all axes see nothing."""

from __future__ import annotations

import numpy as np

from posenc.checker.boxes import CosSin
from posenc.checker.examining.cosines import repeats
from posenc.checker.gathering import Gathered
from posenc.formulas.scalings import frequencies
from posenc.records.finding import Evidence, FirstWrong, Recovered
from posenc.spec import Rotary


def check_axes(notes: Gathered, box: CosSin, encoding: Rotary) -> None:
    """Which axis turns which pair, against the wanted sections."""
    theta = frequencies(encoding).theta
    axes, pairs = theta.shape[-2:]
    notes.ran("axes one by one")
    owners = np.full(pairs, -1)
    start = np.array([3.0, 5.0, 7.0, 11.0])[:axes]
    for axis in range(axes):
        at = np.repeat(start[:, None], 4, axis=1)
        at[axis] += np.array([0.0, 1.0, 2.0, 5.0])
        cos, sin = box.calls["axes"](at)
        z = cos + 1j * sin
        how = repeats(z)
        z = z[:, : z.shape[1] // 2] if how == "half" else z[:, ::2] if how == "adjacent" else z
        if z.shape[1] != pairs:
            notes.skipped("axes one by one", f"{z.shape[1]} pairs in place of {pairs}")
            return
        moved = np.abs(np.angle(z[3] * z[0].conj())) > 1e-7
        owners[moved & (owners >= 0)] = -2
        owners[moved & (owners == -1)] = axis
    wanted = np.where(np.abs(theta).sum(0) > 0, np.abs(theta).argmax(0), -1)
    slow = np.abs(theta).max(0) * 5 < 1e-6
    wrong = np.flatnonzero((owners != wanted) & ~slow)
    if len(wrong):
        i = int(wrong[0])
        notes.found(
            "defect",
            ("multimodal-positions", "axis-order"),
            f"{len(wrong)} of {pairs} pairs are turned by another axis than wanted",
            evidence=[Evidence(name=f"axis of pair {i}", expected=int(wanted[i]), seen=int(owners[i]))],
            first=FirstWrong(pair=i),
            recovered=[Recovered(name="axis of each pair", value=str(owners.tolist()), expected=str(wanted.tolist()))],
            cause="sections are laid out chunked in place of interleaved, or in another order of axes",
            like="mrope",
        )
