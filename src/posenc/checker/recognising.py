"""What is this? The encoding a subject follows, or what was recovered of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from posenc.checker.boxes import Array, Attention, Bias, Box, Buckets, CosSin, Rows, Turning, Vector
from posenc.checker.examining.biases import ASKED, describe
from posenc.checker.examining.cosines import waves_from
from posenc.checker.examining.turning import free_look
from posenc.checker.gathering import Gathered
from posenc.checker.matching.known import confidence, some_of, spectra
from posenc.checker.recognising_tables import identify_table
from posenc.checker.recovery.angles import FIT_TO, LADDER, Waves
from posenc.checker.recovery.bias import BiasShape, bias_shape
from posenc.errors import PosencError, SubjectError
from posenc.formulas.biases import alibi_slopes
from posenc.records.finding import Candidate
from posenc.spec import Geometric, Rotary


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
            identify_waves(notes, waves, 2 * waves.pairs, how == "adjacent", words)
        case Rows():
            identify_table(notes, _table(box), box.rounding)
        case Vector():
            _vector(notes, box)
        case Bias():
            n = 37
            identify_bias(notes, bias_shape(box.bias(n, ASKED[1])))
        case Buckets():
            seen = np.asarray(box.buckets(np.arange(-140, 141)))
            notes.recover("buckets of -8, 0, 1, 8", str([int(seen[140 + d]) for d in (-8, 0, 1, 8)]))
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


def identify_bias(notes: Gathered, shape: BiasShape) -> None:
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
        notes.candidates.append(
            Candidate(
                notation=f"a bucketed bias for {shape.heads} heads (T5)",
                confidence="by its shape: constant between the steps",
            )
        )
    else:
        notes.note("Toeplitz, neither linear nor in buckets; the curve by distance is what it is")
