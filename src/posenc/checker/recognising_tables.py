"""What is this table? Exact orders first, then column by column, with the share of energy that sinusoids explain."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from posenc.checker.boxes import Array
from posenc.checker.gathering import Gathered
from posenc.checker.matching.known import confidence, is_round, rounded_to, some_of, spectra
from posenc.checker.recovery.tables import best_order
from posenc.checker.recovery.waves import Columns, fit_columns
from posenc.errors import PosencError
from posenc.records.finding import Candidate
from posenc.spec import Geometric, Sinusoidal


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
            notes.candidates.append(
                Candidate(
                    notation=line,
                    residual=residual,
                    unit="relative, of a frequency",
                    confidence=confidence(residual),
                    remark="; ".join(p for p in extra if p) or None,
                )
            )
        notes.recover("order", shape.order)
        notes.recover("amplitude", shape.amplitude)
        notes.recover("first row", round(offset, 3))
        notes.recover("frequencies", some_of(np.abs(waves.theta)))
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
        return line + str(parameters.get("scaling", ""))
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
    notes.recover("frequencies of the first columns", some_of(columns.theta[:8]))
    notes.measure("columns fitted with the shared amplitude", int(columns.tied.sum()), "they turn less than once")
    found = noisy_schedule(columns)
    if found is not None and total > 0.3:
        order, base, shift, spread, count = found
        named = rounded_to(base, max(spread, 1e-3))
        line = _sinusoid(table.shape[1], {"base": max(named, 1.0001), "shift": shift}, order, 0.0)
        notes.candidates.append(
            Candidate(
                notation=line,
                residual=1 - total,
                unit="share of energy not explained",
                confidence=confidence(spread, total) if total < 0.9 else f"{confidence(max(spread, 1 - total))}",
                remark=f"base {base:.6g} within {100 * spread:.2g} %, from {count} columns",
            )
        )
        return
    if _other_order(notes, columns, table.shape[1]):
        return
    from posenc.analysis.symmetry import table_facts

    facts = table_facts(table)
    notes.recover("Toeplitz defect of the kernel, relative", facts.relative_defect.value)
    notes.recover("numerical rank", facts.rank.value)
    notes.candidates.append(
        Candidate(
            notation=f"learned({table.shape[1]}, shape=({len(table)},))",
            residual=1 - total,
            unit="share of energy not explained",
            confidence="by exclusion: no sinusoidal schedule fits",
            remark="a trained (or random) table",
        )
    )
    notes.note("none of the known formulas; what was recovered is listed")


def _other_order(notes: Gathered, columns: Columns, width: int) -> bool:
    """Columns that are all sinusoids, two of each frequency, in an order that no code base writes."""
    if width % 2 or (columns.share < 0.99).any():
        return False
    rank = np.argsort(-columns.theta)
    pairs = columns.theta[rank].reshape(-1, 2)
    if np.abs(pairs[:, 0] - pairs[:, 1]).max() > 1e-3 * pairs.mean():
        return False
    schedules = spectra(pairs.mean(axis=1), width)
    if not schedules:
        return False
    parameters, residual, remark = schedules[0]
    order = f"columns in another order: by frequency {', '.join(map(str, rank[:6]))}, …"
    notes.candidates.append(
        Candidate(
            notation=_sinusoid(width, parameters, "interleaved", 0.0),
            residual=residual,
            unit="relative, of a frequency",
            confidence=confidence(residual),
            remark="; ".join(part for part in (order, remark) if part),
        )
    )
    return True


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
                if is_round(rounded_to(shifted, max(spread, 1e-4)))
                and not is_round(rounded_to(plain, max(spread, 1e-4)))
                else 0.0
            )
            best = (score, order, shifted if shift else plain, shift, max(spread, 1e-12), int(good.sum()))
    return None if best is None else (best[1], best[2], best[3], best[4], best[5])
