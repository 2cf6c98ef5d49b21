"""A box of cosines and sines, and a vector of frequencies, beside a rotary encoding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from posenc.checker.boxes import Array, CosSin, Vector
from posenc.checker.examining.along import check_along
from posenc.checker.examining.first_row import check_start
from posenc.checker.examining.half_precision import rounding_explains
from posenc.checker.examining.matrices import not_finite
from posenc.checker.examining.spectra import SAFE, check_frequencies, check_gain
from posenc.checker.examining.turning import fit_like
from posenc.checker.gathering import Gathered
from posenc.checker.matching.spectrum import Wanted
from posenc.checker.matching.unscaled import rounded
from posenc.checker.recovery.angles import FIT_TO, LADDER, Waves, fit_waves, ladder
from posenc.errors import PosencError
from posenc.records.finding import Evidence, FirstWrong, Recovered


def waves_from(box: CosSin, positions: Array) -> tuple[Waves, str]:
    """The waves of a box, one for each pair, and how columns repeat them: ``once``, ``half`` or ``adjacent``."""
    cos, sin = box.cos_sin(positions)
    z = cos + 1j * sin
    how = repeats(z)
    if how == "half":
        z = z[:, : z.shape[1] // 2]
    elif how == "adjacent":
        z = z[:, ::2]
    return fit_waves(positions, np.ascontiguousarray(z)), how


def repeats(z: NDArray[np.complex128]) -> str:
    """Whether columns are given once, as (a, b, a, b) or as (a, a, b, b)."""
    n = z.shape[1]
    if n % 2 or n < 2:
        return "once"
    if np.array_equal(z[:, : n // 2], z[:, n // 2 :]):
        return "half"
    if np.array_equal(z[:, ::2], z[:, 1::2]):
        return "adjacent"
    return "once"


def examine_cos_sin(notes: Gathered, box: CosSin, encoding: object, served: int | None = None) -> None:
    """Everything about cosines and sines: width, frequencies, gain, positions."""
    wanted = Wanted(encoding)
    original = min((int(s["original"]) for _, s in wanted.chain if s.get("original")), default=None)
    top = min(FIT_TO, original - 1 if original else FIT_TO, box.largest if box.largest is not None else FIT_TO)
    at = np.array([p for p in LADDER if p <= top], dtype=np.float64)
    if not_finite(notes, np.concatenate(box.cos_sin(at), axis=1), at):
        return
    waves, how = waves_from(box, at)
    notes.ran("cosines and sines")
    notes.measure(
        "columns",
        waves.pairs * (1 if how == "once" else 2),
        {"once": "one for each pair", "half": "(a, b, a, b)", "adjacent": "(a, a, b, b)"}[how],
    )
    theta = waves.theta
    if waves.pairs != wanted.pairs:
        theta = _other_width(notes, waves, wanted, how)
    if len(theta) != wanted.pairs:
        return
    interleaved = getattr(encoding, "interleaved", None)
    if how != "once" and interleaved is not None and (how == "adjacent") != interleaved:
        notes.found(
            "convention",
            ("layout",),
            f"columns are laid out {'(a, a, b, b)' if how == 'adjacent' else '(a, b, a, b)'}, for the other pairing",
            cause="right with a rotate step that pairs channels in this way",
            like="table-expansion",
            evidence=[Evidence(name="interleaved", expected=str(interleaved), seen=str(how == "adjacent"))],
        )
    right = wanted.theta()
    if (theta[np.abs(right) > 1e-4] < 0).any() and (theta[np.abs(theta) > 1e-4] < 0).all():
        quarter = np.abs(np.abs(waves.start) - np.pi / 2).max() < 0.05
        if not quarter:
            notes.found(
                "defect",
                ("layout",),
                "the sines have the opposite sign",
                evidence=[
                    Evidence(name="radians per position of pair 0", expected=float(right[0]), seen=float(theta[0]))
                ],
                cause="the signs of the two sine terms are exchanged",
                recovered=[Recovered(name="sign", value=-1, expected=1)],
            )
        theta = -theta
    tolerance = spread(waves, right, box.rounding)
    low = rounding_explains(waves, right, box.rounding)
    compared = check_frequencies(
        notes, theta, wanted, tolerance, floor=floor_of(box.rounding, at), dtype=box.dtype, rounded=low
    )
    exact = right if (compared.same or low) and (waves.theta >= -1e-9).all() else waves.theta
    check_gain(notes, waves, wanted, 8 * box.rounding + 1e-6, range(waves.pairs))
    check_start(notes, waves, box.rounding, relative=True)
    _far(notes, box, waves, wanted, served, exact)


def _other_width(notes: Gathered, waves: Waves, wanted: Wanted, how: str) -> Array:
    """Too many columns or too few: the wanted frequencies may be inside all the same."""
    theta, seen = waves.theta, waves.pairs
    if seen > wanted.pairs and not np.abs(theta[wanted.pairs :]).any():
        return theta[: wanted.pairs]  # pairs that stand still: proportional rotary written out in full
    name = "width" if how == "once" else "rotary_dim"
    notes.found(
        "defect",
        ("partial-rotary", "width"),
        f"there are {seen} pairs of cosine and sine in place of {wanted.pairs}",
        evidence=[Evidence(name="pairs", expected=wanted.pairs, seen=seen)],
        recovered=[
            Recovered(name=name if name != "width" else "rotary_dim", value=2 * seen, expected=2 * wanted.pairs)
        ],
        first=FirstWrong(pair=min(seen, wanted.pairs)),
        like="partial",
    )
    encoding = wanted.encoding
    try:
        other = Wanted(
            encoding.replace(rotary_dim=2 * seen, head_dim=max(getattr(encoding, "head_dim", 2 * seen), 2 * seen)),
            wanted.length,
        )
        check_frequencies(
            notes,
            np.abs(theta),
            other,
            spread(waves, other.theta(), 2.0**-24),
            widths={"width:wanted rotary_dim": 2.0 * wanted.pairs},
        )
    except PosencError:
        pass
    return theta


def spread(waves: Waves, right: Array, rounding: float) -> Array:
    """``(pairs,)`` relative tolerance of frequencies fitted on these waves."""
    tolerance = np.maximum(SAFE, 6 * waves.error / np.maximum(np.abs(right), 1e-300))
    if rounding > 2.0**-23:
        reach = np.maximum(np.abs(right) * waves.positions.max(), 1.0)
        tolerance = tolerance + 2 * rounding / np.sqrt(len(waves.positions)) / reach
    return np.asarray(tolerance)


def floor_of(rounding: float, at: Array) -> float:
    """Frequencies below this cannot be told from 0 at these positions."""
    return 1e-12 if rounding <= 2.0**-23 else 0.02 * rounding / max(float(at.max()), 1.0)


def _far(notes: Gathered, box: CosSin, short: Waves, wanted: Wanted, served: int | None, theta: Array) -> None:
    at = ladder(box, None if served is None else max(served - 1, 300))
    if at.max() <= short.positions.max():
        return
    try:
        long, _ = waves_from(box, at)
    except PosencError as error:
        notes.note(f"positions up to {at.max():g} are refused: {error}")
        return
    if long.pairs != short.pairs:
        notes.found(
            "defect",
            ("table-length", "width"),
            "a long row has another number of columns than a short one",
            evidence=[Evidence(name="pairs", expected=short.pairs, seen=long.pairs)],
        )
        return
    if wanted.encoding.needs_length:
        length = int(at.max()) + 1
        there = Wanted(wanted.encoding, length)
        notes.assume(f"the declared length of a call is its largest position plus one ({length})")
        if long.pairs == there.pairs and not notes.has("exponent"):
            check_frequencies(
                notes, long.theta, there, spread(long, there.theta(), box.rounding), floor=1e-12, dtype=box.dtype
            )
        return
    both = np.isin(long.positions, short.positions)
    gap = np.abs(np.angle(long.z[both] * short.z[np.isin(short.positions, long.positions)].conj()))
    if gap.max(initial=0.0) > 1e-3 + 8 * box.rounding:
        notes.found(
            "defect",
            ("scaling-parameters", "state-leak"),
            "early rows of a long table differ from those of a short one",
            evidence=[Evidence(name="angle between them", expected=0.0, seen=float(gap.max()), unit="radians")],
            shape="a step at a threshold of the length",
            cause="a scaling depends on the length of the call, and the value has none that does",
        )
        return
    check_along(notes, fit_like(long, short), theta, box.rounding, box.dtype)


def examine_vector(notes: Gathered, box: Vector, encoding: object) -> None:
    """A vector of frequencies (or of wavelengths, which are recognised) beside a rotary or sinusoidal encoding."""
    wanted = Wanted(encoding)
    values = box.values
    notes.ran("frequency vector")
    finite = np.isfinite(values)
    if not finite.all() or not values.any():
        notes.found(
            "defect",
            ("meta-init",),
            "the frequencies hold what is not finite" if not finite.all() else "the frequencies are all zero",
            evidence=[
                Evidence(
                    name="first frequency",
                    expected=float(wanted.theta()[0]),
                    seen=float(values[0]) if len(values) else None,
                )
            ],
            cause="the buffer was never filled after it was made without memory",
            like="meta",
        )
        return
    theta, right = values, wanted.theta()
    if len(theta) == 2 * wanted.pairs and np.array_equal(theta[: wanted.pairs], theta[wanted.pairs :]):
        theta = theta[: wanted.pairs]
    elif len(theta) == 2 * wanted.pairs and np.array_equal(theta[::2], theta[1::2]):
        theta = theta[::2]
    if len(theta) != wanted.pairs:
        notes.found(
            "defect",
            ("width", "partial-rotary"),
            f"there are {len(theta)} frequencies in place of {wanted.pairs}",
            evidence=[Evidence(name="frequencies", expected=wanted.pairs, seen=len(theta))],
            recovered=[Recovered(name="rotary_dim", value=2 * len(theta), expected=2 * wanted.pairs)],
        )
        return
    with np.errstate(divide="ignore"):
        waves = 1 / theta
    if np.abs(waves - right).max() < 1e-4 * np.abs(right).max() and not np.allclose(theta, right, rtol=1e-3):
        notes.found(
            "naming",
            ("time-unit",),
            "the vector holds 1/theta (wavelengths over 2 pi), not theta",
            evidence=[Evidence(name="last entry", expected=float(right[-1]), seen=float(theta[-1]))],
            cause="some libraries take frequencies in this form",
            remedy="Take the reciprocal.",
        )
        theta = waves
    if theta[0] > 1e4 or (theta <= 0).all() or _scrambled(theta, right):
        notes.found(
            "defect",
            ("meta-init", "buffer-state-dict"),
            "the frequencies look uninitialised: neither from 1 nor decreasing",
            evidence=[Evidence(name="first frequency", expected=float(right[0]), seen=float(theta[0]))],
            cause="memory that was never filled",
            like="meta",
        )
        return
    notes.assume(f"the vector is stored in {box.dtype}")
    if box.rounding > 2.0**-23 and np.array_equal(theta, rounded(right, box.dtype)):
        verdict = "convention" if box.dtype == "float16" else "defect"
        notes.found(
            verdict,
            ("precision", "buffer-state-dict"),
            f"the frequencies are stored in {box.dtype}",
            evidence=[
                Evidence(name="largest relative error", expected=0.0, seen=float(np.abs(theta / right - 1).max()))
            ],
            cause="exact values rounded to the type of the file; a model trained with these must keep them",
            like="esm",
            recovered=[Recovered(name="dtype of the frequencies", value=box.dtype, expected="float32")],
        )
        return
    check_frequencies(notes, theta, wanted, SAFE, floor=0.0, dtype=box.dtype, trained=True)


def _scrambled(theta: Array, right: Array) -> bool:
    """Neither monotone like the wanted ones nor in their range."""
    if (np.diff(right) > 0).any():
        return False
    rises = (np.diff(theta) > 0).mean() if len(theta) > 1 else 0.0
    return bool(0.1 < rises < 0.9 and (theta.max() > 100 * right.max() or theta.min() < right.min() / 1e6))
