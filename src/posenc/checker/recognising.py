"""What is this? The encoding a subject follows, or what was recovered of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from posenc.checker.boxes import Array, Attention, Bias, Box, Buckets, CosSin, Rows, Turning, Vector
from posenc.checker.examining.biases import ASKED, describe
from posenc.checker.examining.cosines import waves_from
from posenc.checker.examining.keys import check_keys
from posenc.checker.examining.turning import free_look
from posenc.checker.gathering import Gathered
from posenc.checker.matching.known import confidence, some_of, spectra
from posenc.checker.recognising_buckets import recognised
from posenc.checker.recognising_tables import identify_table
from posenc.checker.recovery.angles import FIT_TO, LADDER, Waves, standing
from posenc.checker.recovery.bias import BiasShape, bias_shape
from posenc.errors import PosencError, SubjectError
from posenc.formulas.biases import alibi_slopes
from posenc.records.finding import Candidate
from posenc.spec import Geometric, Rotary, T5Bias

FARTHEST = 301
"""Distances asked for: beyond the farthest of T5 and of its usual relatives."""


def identify_box(notes: Gathered, box: Box) -> None:
    """Add candidates, the best first, and what was recovered.

    Raises:
        SubjectError: attention, which no score tells from another's without knowing what is wanted.
    """
    match box:
        case Turning():
            _turning(notes, box)
        case CosSin():
            at = _positions(box.largest)
            waves, how = waves_from(box, at)
            notes.measure("columns", waves.pairs * (1 if how == "once" else 2))
            words = {
                "once": "one column for each pair",
                "half": "columns (a, b, a, b)",
                "adjacent": "columns (a, a, b, b)",
            }[how]
            if box.form in ("sin, cos", "[sin | cos]", "sin, cos by turns"):
                words += ", sines before cosines"
            identify_waves(notes, waves, 2 * waves.pairs, how == "adjacent", words)
        case Rows():
            identify_table(notes, _table(box), box.rounding)
        case Vector():
            _vector(notes, box)
        case Bias():
            identify_bias(notes, bias_shape(box.bias(ASKED[1], ASKED[1])), box)
        case Buckets():
            relative = np.arange(-FARTHEST, FARTHEST + 1)
            seen = np.asarray(box.buckets(relative))
            notes.recover("buckets of -8, 0, 1, 8", str([int(seen[FARTHEST + d]) for d in (-8, 0, 1, 8)]))
            if not _t5(notes, relative, seen, exact=True, heads=None):
                notes.note("none of the known: the buckets are not T5's")
        case Attention():
            raise SubjectError(
                "attention is compared with a wanted encoding", "none", "Say which: posenc check … --expect."
            )
    notes.ran("identification")


def _positions(largest: int | None) -> Array:
    top = min(FIT_TO, largest if largest is not None else FIT_TO)
    return np.array([p for p in LADDER if p <= top], dtype=np.float64)


def _table(box: Rows) -> Array:
    rows = min(512, (box.largest if box.largest is not None else 511) + 1)
    return box.rows(np.arange(float(rows)))


def _turning(notes: Gathered, box: Turning) -> None:
    found, layout, waves = free_look(box)
    notes.measure("pairs that turn", len(found.pairs), layout.words)
    notes.measure("channels that pass", len(found.still))
    if waves is None:
        notes.note(
            "none of the known: nothing is turned"
            if not found.tangled
            else "none of the known: more than two channels mix"
        )
        return
    identify_waves(
        notes,
        waves,
        found.head_dim,
        layout.name == "adjacent",
        layout.words,
        rotary_dim=layout.width,
        where="first" if layout.first == 0 else "last",
    )
    apart = Gathered()
    check_keys(apart, box, found.pairs, waves)
    for each in apart.findings:
        seen = "; ".join(f"{r.name} {r.value}" for r in each.recovered)
        notes.note(f"{each.title}" + (f" ({seen})" if seen else ""))
    first, left = standing(np.exp(1j * waves.start), waves.theta, reach=64.0)
    if left < 1e-3 and abs(first) > 1e-3:
        notes.recover("position that the first one stands for", round(first, 6))


def identify_waves(
    notes: Gathered,
    waves: Waves,
    head_dim: int,
    interleaved: bool,
    words: str,
    rotary_dim: int | None = None,
    where: str = "first",
) -> None:
    theta = np.abs(waves.theta)
    gain = float(np.median(waves.gain))
    notes.recover("frequencies", some_of(theta), error=float((waves.error / np.maximum(theta, 1e-300)).max()))
    notes.recover("gain", gain)
    turning = waves.theta[theta > 1e-9]
    backwards = bool(len(turning)) and bool((turning < 0).all())
    if len(turning):
        both = "some pairs forwards, others backwards"
        notes.recover("direction", "backwards, by -angle" if backwards else "forwards" if (turning > 0).all() else both)
    width = rotary_dim or 2 * len(theta)
    for candidate in spectra(theta, width):
        text, residual, remark = candidate
        base = text.get("base")
        try:
            encoding: Any = Rotary(
                head_dim,
                rotary_dim=width,
                where=where,
                interleaved=interleaved,
                schedule=Geometric(base=base, shift=text.get("shift", 0.0), first=text.get("first", 1.0)),
            )
            line = str(encoding) + text.get("scaling", "")
        except PosencError:
            line = f"rotary of {len(theta)} pairs"
        if abs(gain - 1) > 1e-4:
            remark = f"{remark + '; ' if remark else ''}gain {gain:.6g}"
        if backwards:
            remark = f"{remark + '; ' if remark else ''}turned backwards"
        notes.candidates.append(
            Candidate(
                notation=line,
                residual=residual,
                unit="relative, of a frequency",
                confidence=confidence(residual),
                remark="; ".join(p for p in (words, remark) if p),
            )
        )
    if not notes.candidates:
        notes.note(f"none of the known: a rotation ({words}) with frequencies {some_of(theta)}")


def _vector(notes: Gathered, box: Vector) -> None:
    values = box.values
    if box.holds == "slopes":
        identify_slopes(notes, values)
        return
    theta = np.abs(values)
    notes.recover("frequencies", some_of(values))
    if not np.isfinite(values).all():
        notes.note("none of the known: not all numbers are finite")
        return
    wavelengths = len(theta) > 2 and (np.diff(theta) > 0).all() and theta[0] >= 0.5
    if wavelengths:
        notes.note("numbers rise: they are read as wavelengths over 2 pi (1/theta)")
        theta = 1 / theta
    for parameters, residual, remark in spectra(theta, 2 * len(theta)):
        base = parameters["base"]
        try:
            line = str(
                Rotary(
                    2 * len(theta),
                    schedule=Geometric(
                        base=base, shift=parameters.get("shift", 0.0), first=parameters.get("first", 1.0)
                    ),
                )
            )
        except PosencError:
            line = f"{len(theta)} frequencies of base {base:g}"
        notes.candidates.append(
            Candidate(
                notation=line + parameters.get("scaling", ""),
                residual=residual,
                unit="relative, of a frequency",
                confidence=confidence(residual),
                remark=remark,
            )
        )
    if not notes.candidates and len(values) <= 128:
        identify_slopes(notes, values)
    if not notes.candidates:
        notes.note("none of the known schedules; the frequencies are listed")


def identify_slopes(notes: Gathered, slopes: Array) -> None:
    """ALiBi's slopes."""
    wanted = alibi_slopes(len(slopes))
    residual = float(np.abs(np.abs(slopes) - wanted).max() / wanted.max())
    if residual < 1e-3:
        notes.candidates.append(
            Candidate(
                notation=f"alibi({len(slopes)})",
                residual=residual,
                unit="relative, of a slope",
                confidence=confidence(residual),
            )
        )


def _t5(notes: Gathered, relative: Any, seen: Any, *, exact: bool, heads: int | None) -> bool:
    """T5's rule with the numbers that give these buckets, as a candidate."""
    found = recognised(relative, seen, exact=exact)
    if found is None:
        return False
    for name, value in found.items():
        notes.recover(name, str(value) if isinstance(value, bool) else value)
    notes.candidates.append(
        Candidate(
            notation=str(T5Bias(heads or 1, **found)) if heads else "T5's buckets",
            confidence="certain: every bucket is equal" if exact else "by its shape: it changes where the buckets do",
            remark=", ".join(f"{name} {value}" for name, value in found.items()),
        )
    )
    return True


def _buckets_of(notes: Gathered, shape: BiasShape, box: Bias | None) -> bool:
    """T5's rule behind a bias: by the rows it reads, or by where it changes."""
    if box is None or not shape.steps:
        known = np.isfinite(shape.line).all(0)
        return bool(shape.steps) and _t5(
            notes, shape.distances[known], _labels(shape.line[:, known]), exact=False, heads=shape.heads
        )
    n = FARTHEST
    try:
        if box.rows_read is not None:
            read = box.rows_read(n, n)
            relative = np.arange(1 - n, n)
            return _t5(notes, relative, np.concatenate([read[:0:-1, 0], read[0]]), exact=True, heads=shape.heads)
        wide = bias_shape(box.bias(n, n))
    except PosencError:
        wide = shape
    known = np.isfinite(wide.line).all(0)
    return _t5(notes, wide.distances[known], _labels(wide.line[:, known]), exact=False, heads=shape.heads)


def _labels(line: Array) -> Any:
    """A number for each distance, equal where all heads have the same value."""
    scaled = np.round(line / max(float(np.abs(line).max()), 1e-300), 6)
    return np.unique(scaled, axis=1, return_inverse=True)[1].ravel()


def identify_bias(notes: Gathered, shape: BiasShape, box: Bias | None = None) -> None:
    """A bias matrix in numbers, and ALiBi, buckets or nothing known."""
    describe(notes, shape)
    notes.recover("heads of one shape", str(shape.one_shape))
    if shape.toeplitz > 1e-4 and shape.toeplitz_up_to_rows > 1e-4:
        notes.note("none of the known: the bias does not depend on the distance alone")
        return
    if math.isfinite(shape.past_residual) and shape.past_residual < 1e-3:
        notes.recover("slopes", some_of(shape.past))
        wanted = alibi_slopes(shape.heads)
        if np.allclose(shape.past, wanted, rtol=1e-3):
            symmetric = math.isfinite(shape.symmetric) and shape.symmetric < 1e-4
            notes.candidates.append(
                Candidate(
                    notation=f"alibi({shape.heads}{', symmetric=True' if symmetric else ''})",
                    residual=shape.past_residual,
                    unit="relative",
                    confidence=confidence(shape.past_residual),
                )
            )
        else:
            notes.note("linear in the distance for each head, with slopes that are not ALiBi's")
    elif shape.steps:
        notes.recover("distances where the value changes", str(list(shape.steps[:16])))
        if _buckets_of(notes, shape, box):
            return
        notes.candidates.append(
            Candidate(
                notation=f"a bucketed bias for {shape.heads} heads (T5)",
                confidence="by its shape: constant between the steps",
            )
        )
    else:
        notes.note("Toeplitz, neither linear nor in buckets; the curve by distance is what it is")
