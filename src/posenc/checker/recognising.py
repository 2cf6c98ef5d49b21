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
from posenc.checker.matching.geometric import fit_geometric
from posenc.checker.matching.scaled import form_words, ramp_of
from posenc.checker.recovery.angles import FIT_TO, LADDER, Waves
from posenc.checker.recovery.bias import BiasShape, bias_shape
from posenc.checker.recovery.tables import best_order
from posenc.checker.recovery.waves import Columns, fit_columns
from posenc.errors import PosencError
from posenc.formulas.biases import alibi_slopes
from posenc.formulas.spectrum import scheduled
from posenc.records.finding import Candidate
from posenc.spec import Geometric, Rotary, Sinusoidal


def identify_box(notes: Gathered, box: Box) -> None:
    """Add candidates, the best first, and what was recovered."""
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
            notes.note("attention is compared with a wanted encoding: give --expect")
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
    notes.recover("frequencies", _some(theta), error=float((waves.error / np.maximum(theta, 1e-300)).max()))
    notes.recover("gain", gain)
    width = rotary_dim or 2 * len(theta)
    for candidate in spectra(theta, width):
        text, residual, remark = candidate
        base = text.get("base")
        try:
            encoding: Any = Rotary(
                head_dim, rotary_dim=width, where=where, interleaved=interleaved,
                schedule=Geometric(base=base, shift=text.get("shift", 0.0), first=text.get("first", 1.0)),
            )  # fmt: skip
            line = str(encoding) + text.get("scaling", "")
        except PosencError:
            line = f"rotary of {len(theta)} pairs"
        if abs(gain - 1) > 1e-4:
            remark = f"{remark + '; ' if remark else ''}gain {gain:.6g}"
        notes.candidates.append(Candidate(notation=line, residual=residual, unit="relative, of a frequency", confidence=confidence(residual),
                                          remark="; ".join(p for p in (words, remark) if p)))  # fmt: skip
    if not notes.candidates:
        notes.note(f"none of the known: a rotation ({words}) with frequencies {_some(theta)}")


def spectra(theta: Array, width: int) -> list[tuple[dict[str, Any], float, str | None]]:
    """Known schedules that frequencies follow: parameters, residual, remark; the best first.

    >>> spectra(np.array([1.0, 0.1, 0.01, 0.001]), 8)[0][0]["base"]
    10000.0
    """
    found: list[tuple[dict[str, Any], float, str | None]] = []
    fit = fit_geometric(theta)
    if fit is None:
        return found
    if fit.residual < 0.02:
        base, first = fit.base(width), fit.first
        if 1 < base < 1e30:
            near = _round(base, 3e-4 + 2 * fit.residual)
            remark = None
            half = width / 2
            shifted = math.exp(fit.step * (half - 1)) if half > 1 and fit.step * half < 600 else 0.0
            parameters: dict[str, Any] = {"base": near}
            if abs(first - 1) > 1e-3 + fit.residual:
                parameters["first"] = _round(first, 1e-5)
            root = math.sqrt(near)
            if _is_round(_round(shifted, 1e-5)) and not _is_round(near):
                parameters |= {"base": _round(shifted, 1e-5), "shift": 1.0}
                remark = f"or base {base:.6g} with the paper's denominator"
            elif near >= 1e6 and _is_round(root) and root in (1e3, 1e4, 1e5):
                remark = (
                    f"base {root:g} with an exponent that counts the index twice gives the same frequencies; its longest "
                    f"wavelength {2 * math.pi / theta[-1]:.4g} tells that such a table was hardly meant to reach {2 * math.pi * root:.4g}"
                )
            found.append((parameters, fit.residual, remark))
    if fit.residual >= 1e-4:
        for base in (1e4, 5e5, 1e6, 1e5, 5e6, 1.5e5, 1e7, 8e6, 2.5e5, 5e4):
            plain = scheduled(Geometric(base=base), len(theta), float(width))
            ramp = ramp_of(theta, plain)
            if ramp is None:
                continue
            factor, start, end, form, residual, _ = ramp
            if residual < 1e-3:
                found.append(
                    (
                        {"base": base, "scaling": f" with a scaling by {factor:.6g}"},
                        residual,
                        f"{form_words(form)} from pair {start} to {end}",
                    )
                )
    return sorted(found, key=lambda f: f[1])


def _round(value: float, relative: float) -> float:
    """The number with the fewest digits within a relative distance."""
    for digits in range(1, 8):
        near = float(f"{value:.{digits - 1}e}")
        if abs(near - value) <= relative * abs(value):
            return near
    return value


def _is_round(value: float) -> bool:
    return value > 0 and float(f"{value:.1e}") == value


def confidence(residual: float, share: float | None = None) -> str:
    """How sure an identification is, with its reason.

    >>> confidence(1e-7), confidence(0.5)
    ('certain: within rounding', 'poor: only a resemblance')
    """
    if share is not None and share < 0.9:
        return f"low: sinusoids explain {100 * share:.0f} % of the energy"
    if residual < 2e-5:
        return "certain: within rounding"
    if residual < 2e-3:
        return "high: within half-precision rounding"
    return "fair: noise or training may hide the exact numbers" if residual < 0.05 else "poor: only a resemblance"


def _some(theta: Array) -> str:
    shown = [f"{v:.6g}" for v in (theta if len(theta) <= 6 else [*theta[:3], *theta[-2:]])]
    return ", ".join(shown if len(theta) <= 6 else [*shown[:3], "…", *shown[3:]])


def identify_table(notes: Gathered, table: Array, rounding: float) -> None:
    """A table of rows: exact orders first, then column by column, with the share of energy that sinusoids explain."""
    at = np.arange(float(len(table)))
    notes.measure("rows", len(table))
    notes.measure("width", table.shape[1])
    empty = np.flatnonzero(np.abs(table).max(axis=1) == 0)
    if len(empty):
        notes.recover("rows of zeros", str(empty[:4].tolist()))
    constant = np.ptp(table, axis=0) < 1e-9 * max(np.abs(table).max(), 1e-300)
    if constant.all():
        notes.candidates.append(
            Candidate(notation=f"constant({table.shape[1]})", residual=0.0, confidence="certain: all rows are equal")
        )
        return
    if np.array_equal(table, np.eye(*table.shape)):
        notes.candidates.append(
            Candidate(notation=f"one_hot({table.shape[1]})", residual=0.0, confidence="certain: rows of the identity")
        )
        return
    keep = np.setdiff1d(np.arange(len(table)), empty)
    shape = best_order(table, at, rounding)
    if shape is not None:
        waves = shape.waves
        start = waves.start
        offset = float(np.median(start[:2] / np.maximum(waves.theta[:2], 1e-12))) if np.abs(start).max() > 1e-3 else 0.0
        for parameters, residual, remark in spectra(np.abs(waves.theta), table.shape[1] - table.shape[1] % 2):
            line = _sinusoid(table.shape[1], parameters, shape.order, offset)
            extra = [
                remark,
                f"amplitude {shape.amplitude:.6g}" if abs(shape.amplitude - 1) > 1e-4 + 4 * rounding else None,
            ]
            notes.candidates.append(Candidate(notation=line, residual=residual, unit="relative, of a frequency", confidence=confidence(residual),
                                              remark="; ".join(p for p in extra if p) or None))  # fmt: skip
        notes.recover("order", shape.order)
        notes.recover("amplitude", shape.amplitude)
        notes.recover("first row", round(offset, 3))
        notes.recover("frequencies", _some(np.abs(waves.theta)))
        if notes.candidates:
            return
    columns = fit_columns(table[keep], at[keep])
    _columns(notes, columns, table)


def _sinusoid(width: int, parameters: dict[str, Any], order: str, offset: float) -> str:
    try:
        schedule = Geometric(
            base=parameters["base"], shift=parameters.get("shift", 0.0), first=parameters.get("first", 1.0)
        )
        shift = round(offset)
        line = str(
            Sinusoidal(
                width,
                schedule=schedule,
                order=order,
                odd="zero" if width % 2 and "|" in order else "lone_sine",
                offset=max(shift, 0),
            )
        )
        return line + parameters.get("scaling", "")
    except PosencError:
        return f"a sinusoidal table of width {width}"


def _columns(notes: Gathered, columns: Columns, table: Array) -> None:
    """Column by column: frequencies, and how much of the energy they explain."""
    energy = np.maximum((table**2).sum(0), 1e-300)
    total = float((columns.share * energy).sum() / energy.sum())
    strong = columns.share > 0.9
    notes.recover("share of energy in one sinusoid for each column", round(total, 4))
    notes.recover("columns that are sinusoids (share over 0.9)", int(strong.sum()))
    if columns.shared is not None:
        notes.recover("amplitude", columns.shared)
    notes.recover("frequencies of the first columns", _some(columns.theta[:8]))
    notes.measure("columns fitted with the shared amplitude", int(columns.tied.sum()), "they turn less than once")
    found = noisy_schedule(columns)
    if found is not None and total > 0.3:
        order, base, shift, spread, count = found
        named = _round(base, max(spread, 1e-3))
        line = _sinusoid(table.shape[1], {"base": max(named, 1.0001), "shift": shift}, order, 0.0)
        notes.candidates.append(Candidate(notation=line, residual=1 - total, unit="share of energy not explained",
                                          confidence=confidence(spread, total) if total < 0.9 else f"{confidence(max(spread, 1 - total))}",
                                          remark=f"base {base:.6g} within {100 * spread:.2g} %, from {count} columns"))  # fmt: skip
        return
    from posenc.analysis.symmetry import table_facts

    facts = table_facts(table)
    notes.recover("Toeplitz defect of the kernel, relative", facts.relative_defect.value)
    notes.recover("numerical rank", facts.rank.value)
    notes.candidates.append(Candidate(notation=f"learned({table.shape[1]}, shape=({len(table)},))", residual=1 - total, unit="share of energy not explained",
                                      confidence="by exclusion: no sinusoidal schedule fits", remark="a trained (or random) table"))  # fmt: skip
    notes.note("none of the known formulas; what was recovered is listed")


def noisy_schedule(columns: Columns) -> tuple[str, float, float, float, int] | None:
    """Order, base, shift, relative spread of the base and columns used, of a geometric schedule hidden in noise.

    The logarithms of fitted frequencies must fall linearly in the pair's index, under one of the orders.
    """
    best: tuple[float, str, float, float, float, int] | None = None
    width = columns.width
    live = (columns.share > 0.5) & (columns.theta > 0) & ~columns.constant
    if live.sum() < 4:
        return None
    log = np.log(np.maximum(columns.theta, 1e-300))
    half = width // 2
    for order in ("interleaved", "sin|cos"):
        index = np.arange(width) // 2 if order == "interleaved" else np.arange(width) % half
        x, y = index[live].astype(np.float64), log[live]
        weight = np.minimum(columns.theta[live] / np.maximum(columns.error[live], 1e-12), 1e6)
        for _ in range(6):
            mx, my = (weight * x).sum() / weight.sum(), (weight * y).sum() / weight.sum()
            slope = (weight * (x - mx) * (y - my)).sum() / max((weight * (x - mx) ** 2).sum(), 1e-300)
            left = y - my - slope * (x - mx)
            scale = max(np.median(np.abs(left)), 1e-9)
            weight = np.minimum(columns.theta[live] / np.maximum(columns.error[live], 1e-12), 1e6) / (
                1 + (left / (3 * scale)) ** 2
            )
        good = np.abs(left) < 0.15
        first = float(np.exp(my - slope * mx))
        if good.sum() < 0.5 * live.sum() or not 0.5 < first < 2 or slope >= -1e-6:
            continue
        spread = float(
            np.sqrt((weight * left**2).sum() / (weight * (x - mx) ** 2).sum()) / np.sqrt(max(good.sum() - 2, 1)) * half
        )
        score = float(np.median(np.abs(left)))
        if best is None or score < best[0]:
            plain, shifted = math.exp(-slope * half), math.exp(-slope * (half - 1))
            shift = (
                1.0
                if _is_round(_round(shifted, max(spread, 1e-4))) and not _is_round(_round(plain, max(spread, 1e-4)))
                else 0.0
            )
            best = (score, order, shifted if shift else plain, shift, max(spread, 1e-12), int(good.sum()))
    return None if best is None else (best[1], best[2], best[3], best[4], best[5])


def _vector(notes: Gathered, box: Vector) -> None:
    values = box.values
    if box.holds == "slopes":
        identify_slopes(notes, values)
        return
    theta = np.abs(values)
    notes.recover("frequencies", _some(values))
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
        notes.candidates.append(Candidate(notation=line + parameters.get("scaling", ""), residual=residual, unit="relative, of a frequency",
                                          confidence=confidence(residual), remark=remark))  # fmt: skip
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
        notes.recover("slopes", _some(shape.past))
        wanted = alibi_slopes(shape.heads)
        if np.allclose(shape.past, wanted, rtol=1e-3):
            symmetric = math.isfinite(shape.symmetric) and shape.symmetric < 1e-4
            notes.candidates.append(Candidate(notation=f"alibi({shape.heads}{', symmetric=True' if symmetric else ''})", residual=shape.past_residual,
                                              unit="relative", confidence=confidence(shape.past_residual)))  # fmt: skip
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
