"""A dump of queries before and after, beside a rotary encoding."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from posenc.checker.examining.along import check_along
from posenc.checker.examining.first_row import check_start
from posenc.checker.examining.layout import Layout
from posenc.checker.examining.spectra import SAFE, check_frequencies, check_gain
from posenc.checker.gathering import Gathered
from posenc.checker.matching.spectrum import Wanted
from posenc.checker.recovery.angles import Waves, fit_waves
from posenc.checker.subjects.dumps import pairs_from, rows_of, waves_of_dump
from posenc.errors import SpecError
from posenc.formulas.rotation import pairs_of
from posenc.records.finding import Evidence, FirstWrong, Recovered
from posenc.spec import Rotary


def read_dump(
    notes: Gathered, arrays: dict[str, Any], which: str = "q"
) -> tuple[int, Layout, np.ndarray, Waves, float]:
    """Width, layout, pairs, waves and what no rotation explains."""
    before, after, at = rows_of(arrays, which)
    pairs, found = pairs_from(before, after, at)
    layout = Layout(found["layout"], found["first"], found["width"])
    waves = waves_of_dump(before, after, at, pairs)
    notes.ran("dump")
    notes.measure(
        "positions in the dump", len(waves.positions), f"{waves.positions.min():g} to {waves.positions.max():g}"
    )
    notes.measure("energy that no rotation explains", found["residual"], layout.words)
    if not (waves.positions > 0).any():
        notes.note("position 0 alone says nothing: it is the identity for every rotary")
    return before.shape[1], layout, pairs, waves, float(found["residual"])


def examine_dump(notes: Gathered, arrays: dict[str, Any], encoding: Rotary, rounding: float = 2.0**-24) -> None:
    """Pairing, frequencies, gain, positions of a dump; queries first, keys against them."""
    names = {name.rsplit(".", 1)[-1] for name in arrays}
    which = "q" if "q_before" in names else "k"
    width, layout, pairs, waves, residual = read_dump(notes, arrays, which)
    if width != encoding.head_dim:
        notes.found(
            "defect",
            ("width",),
            f"the head is {width} wide in place of {encoding.head_dim}",
            evidence=[Evidence(name="head_dim", expected=encoding.head_dim, seen=width)],
        )
        return
    if residual > 1e-3:
        notes.found(
            "defect",
            ("layout",),
            "no rotation of pairs explains the dump",
            evidence=[Evidence(name="energy not explained", expected=0.0, seen=residual, where=layout.words)],
            remedy="Dump q right before and right after the rotation, without normalisation between.",
        )
        return
    encoding, pairs, waves = _laid_out(notes, arrays, which, encoding, layout, pairs, waves)
    wanted = Wanted(encoding)
    right = wanted.theta()
    if len(waves.theta) != len(right):
        return
    steps = np.diff(waves.positions)
    if len(steps) == 0:
        notes.skipped("frequencies", "the dump holds one position")
        _single(notes, waves, right)
        return
    step = float(steps[steps > 0].min())
    if step * np.abs(right).max() > np.pi:
        notes.note(f"positions in the dump are at least {step:g} apart: fast pairs are known up to whole turns")
    if (waves.theta[np.abs(waves.theta) > 1e-4] < 0).all() and right.max() > 0:
        notes.found(
            "defect",
            ("layout",),
            "the rotation runs backwards: every angle has the opposite sign",
            evidence=[
                Evidence(name="radians per position of pair 0", expected=float(right[0]), seen=float(waves.theta[0]))
            ],
            recovered=[Recovered(name="sign", value=-1, expected=1)],
        )
        waves = fit_waves(waves.positions, waves.z.conj())
    tolerance = np.maximum(SAFE, 8 * waves.error / np.maximum(right, 1e-300)) + 8 * rounding / np.maximum(
        right * np.ptp(waves.positions), 1e-3
    )
    check_frequencies(
        notes, waves.theta, wanted, tolerance, floor=4 * rounding / max(float(np.ptp(waves.positions)), 1.0)
    )
    check_gain(notes, waves, wanted, 1e-3 + 8 * rounding, range(len(right)))
    check_start(notes, waves, rounding * 8, relative=True)
    check_along(notes, waves, waves.theta, max(rounding * 8, 2.0**-20), "float32")
    if which == "q" and {"k_before", "k_after"} <= names:
        _, _, _, keys, _ = read_dump(Gathered(), arrays, "k")
        if len(keys.theta) == len(waves.theta) and np.abs(keys.theta - waves.theta).max() > 1e-3:
            notes.found(
                "defect",
                ("double-application", "layout"),
                "keys are turned otherwise than queries",
                evidence=[
                    Evidence(
                        name="radians per position of pair 0, keys",
                        expected=float(waves.theta[0]),
                        seen=float(keys.theta[0]),
                    )
                ],
            )


def _laid_out(
    notes: Gathered,
    arrays: dict[str, Any],
    which: str,
    encoding: Rotary,
    layout: Layout,
    pairs: np.ndarray,
    waves: Waves,
) -> tuple[Rotary, np.ndarray, Waves]:
    """Layout and width against the wanted ones; the wanted layout is tried first where both explain."""
    wanted = pairs_of(encoding)
    if {tuple(p) for p in pairs.tolist()} == {tuple(p) for p in wanted.tolist()}:
        before, after, at = rows_of(arrays, which)
        return encoding, wanted, waves_of_dump(before, after, at, wanted)
    interleaved = layout.name == "adjacent"
    if layout.width != encoding.rotary_dim:
        notes.found(
            "defect",
            ("partial-rotary",),
            f"{layout.width} channels are rotated in place of {encoding.rotary_dim}",
            evidence=[Evidence(name="rotary_dim", expected=encoding.rotary_dim, seen=layout.width)],
            first=FirstWrong(pair=min(layout.width, encoding.rotary_dim), of="channel"),
            recovered=[Recovered(name="rotary_dim", value=layout.width, expected=encoding.rotary_dim)],
            like="partial",
        )
        notes.recover("rotary_dim", layout.width, encoding.rotary_dim)
    if interleaved != encoding.interleaved:
        notes.found(
            "convention",
            ("layout",),
            f"pairs {'(2i, 2i + 1)' if interleaved else '(i, i + n/2)'} are turned in place of the other pairing",
            evidence=[Evidence(name="interleaved", expected=str(encoding.interleaved), seen=str(interleaved))],
            cause="right with query and key rows that are stored for this pairing, wrong with others",
            like="titan gguf",
            recovered=[Recovered(name="interleaved", value=str(interleaved), expected=str(encoding.interleaved))],
        )
    with contextlib.suppress(SpecError):
        encoding = encoding.replace(
            rotary_dim=layout.width, interleaved=interleaved, where="first" if layout.first == 0 else "last"
        )
    return encoding, pairs, waves


def _single(notes: Gathered, waves: Waves, right: np.ndarray) -> None:
    """One position: angles against the wanted ones, without a fit."""
    p = float(waves.positions[0])
    gap = np.abs(np.angle(waves.z[0] * np.exp(-1j * p * right)))
    if p and gap.max() > 1e-3:
        i = int(gap.argmax())
        notes.found(
            "defect",
            ("exponent", "scaling-parameters"),
            f"angles at position {p:g} are not the wanted ones",
            evidence=[
                Evidence(
                    name="angle",
                    expected=float((p * right[i] + np.pi) % (2 * np.pi) - np.pi),
                    seen=float(np.angle(waves.z[0, i])),
                    where=f"pair {i}",
                )
            ],
        )
