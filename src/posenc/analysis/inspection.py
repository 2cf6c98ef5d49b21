"""Inspection: what a model's position encodings are, number by number, as one record."""

from __future__ import annotations

from typing import Any

import numpy as np

from posenc.analysis.pairs import (
    along,
    axis_of,
    bands,
    channels,
    full_factor,
    layout,
    ratios,
    runs,
    wavelengths,
)
from posenc.analysis.subject import reading_of
from posenc.analysis.wording import encoding_formula, scaling_formula
from posenc.formulas.scalings import Power, Select, length_rule
from posenc.formulas.spectrum import Frequencies, unscaled
from posenc.records import Curve, Reading, thinned
from posenc.records.inspection import (
    EncodingInspection,
    Inspection,
    KindInspection,
    Lengths,
    Numbers,
    PartInspection,
    Spectrum,
    State,
    Unfinished,
)
from posenc.spec import ModelPositions, Rotary, Sinusoidal, notation

FARTHEST = 2**20
WORK = 2**31
"""Similarity is computed up to ``FARTHEST`` positions and for at most ``WORK`` cosines."""


def inspect(subject: Any, *, similarity: bool = True) -> Inspection:
    """Return what a model's position encodings are: formulas, pairs, frequencies, wavelengths, scalings, lengths.

    Args:
        subject: anything :func:`posenc.read` takes, or what it returned.
        similarity: also compute the similarity of positions against their distance, as a curve.

    Raises:
        PosencError: the subject cannot be read.
    """
    reading = reading_of(subject)
    return Inspection(
        name=reading.name,
        format=reading.format,
        source=reading.source,
        model_type=reading.model_type,
        row_order=reading.row_order,
        parts=tuple(_part(part.name, part.positions, similarity) for part in reading.parts),
        assumed=reading.assumed,
        unread=reading.unread,
        faults=all_faults(reading),
        notes=reading.notes,
    )


def all_faults(reading: Reading) -> tuple[str, ...]:
    """What the reading found wrong and what its encodings themselves declare, each once."""
    declared = [fault for encoding in reading.encodings() for fault in encoding.faults]
    return tuple(dict.fromkeys((*reading.faults, *declared)))


def _part(name: str, positions: ModelPositions, similarity: bool) -> PartInspection:
    lengths = Lengths(
        original=positions.original,
        trained=positions.trained,
        trained_source=positions.trained_source,
        served=positions.served,
    )
    encodings = positions.encodings
    index = {encoding: i for i, encoding in enumerate(encodings)}
    kinds = tuple(
        KindInspection(
            name=kind.name,
            layers=runs(positions.layers_of(k)),
            count=len(positions.layers_of(k)),
            window=kind.window,
            chunk=kind.chunk,
            encodings=tuple(index[e] for e in kind.encodings),
        )
        for k, kind in enumerate(positions.kinds)
    )
    return PartInspection(
        name=name,
        lengths=lengths,
        layers=len(positions.layers) or None,
        input=tuple(index[e] for e in positions.input),
        kinds=kinds,
        encodings=tuple(_encoding(e, lengths, similarity) for e in encodings),
    )


def _encoding(encoding: Any, lengths: Lengths, similarity: bool) -> EncodingInspection:
    has_pairs = isinstance(encoding, Rotary | Sinusoidal)
    return EncodingInspection(
        kind=encoding.kind,
        notation=notation(encoding),
        formula=encoding_formula(encoding),
        scaling=_scaling_formulas(encoding) if has_pairs else (),
        layout=layout(encoding) if has_pairs else None,
        enters=encoding.enters,
        relative=encoding.relative,
        content_dependent=encoding.content_dependent,
        needs_length=encoding.needs_length,
        spectrum=_spectrum(encoding, lengths, similarity) if has_pairs else None,
        numbers=_numbers(encoding),
        faults=encoding.faults,
    )


def _scaling_formulas(encoding: Rotary | Sinusoidal) -> tuple[str, ...]:
    """A line for each scaling of the chain, with the frequencies that it meets."""
    lines: list[str] = []
    chain, f = getattr(encoding, "scaling", ()), unscaled(encoding)
    for scaling in chain:
        lines.append(scaling_formula(scaling, f))
        if len(lines) < len(chain):
            f = length_rule(encoding.replace(scaling=chain[: len(lines)])).at(None)
    return tuple(lines)


def _spectrum(encoding: Rotary | Sinusoidal, lengths: Lengths, similarity: bool) -> Spectrum:
    rule, before = length_rule(encoding), unscaled(encoding)
    text, cases = _cases(rule, lengths)
    unfinished = []
    for name, length in lengths.named():
        theta = np.abs(along(rule.at(length)))
        slow = np.flatnonzero(theta * length < 2 * np.pi).tolist()
        unfinished.append(Unfinished(within=name, length=length, pairs=runs(slow), count=len(slow)))
    return Spectrum(
        channels=channels(encoding),
        axis=axis_of(encoding, before),
        unscaled=tuple(along(before).tolist()),
        unscaled_wavelength=tuple(wavelengths(along(before))),
        length_rule=text,
        states=tuple(
            _state(
                applies,
                length,
                before,
                rule.at(length),
                encoding,
                _farthest(lengths) if similarity and not _unit(encoding) else 0,
            )
            for applies, length in cases
        ),
        unfinished=tuple(unfinished),
        remark=_remark(encoding, before),
    )


def _cases(rule: Any, lengths: Lengths) -> tuple[str, list[tuple[str, int | None]]]:
    """The length rule in words, and for each of its cases the rows it applies to and a length to compute with."""
    if isinstance(rule, Select):
        n = rule.threshold
        beyond = max(lengths.served or 0, n + 1)
        text = f"one set of frequencies for rows of at most {n} positions, another for longer rows"
        return text, [(f"rows of at most {n} positions", n), (f"rows longer than {n} positions", beyond)]
    if isinstance(rule, Power):
        n = rule.original
        example = max((length for _, length in lengths.named() if length > n), default=2 * n)
        text = f"frequencies follow the length of a row beyond {n} positions"
        return text, [(f"rows of at most {n} positions", n), (f"rows of {example} positions", example)]
    return "the same frequencies for rows of any length", [("rows of any length", None)]


def _state(
    applies: str, length: int | None, before: Frequencies, f: Frequencies, encoding: Any, farthest: int
) -> State:
    ratio = ratios(along(before), along(f))
    return State(
        applies=applies,
        length=length,
        theta=tuple(along(f).tolist()),
        wavelength=tuple(wavelengths(along(f))),
        ratio=tuple(ratio),
        bands=bands(ratio, full_factor(encoding, length)),
        base=f.base,
        gain=float(f.gain),
        logit_scale=float(f.logit_scale),
        similarity=_similarity(f, min(farthest, length or farthest)),
    )


def _unit(encoding: Any) -> bool:
    """Whether its coordinates are no positions but run over [-1, 1]."""
    return getattr(encoding.axes, "coordinates", "index") == "unit"


def _remark(encoding: Any, f: Frequencies) -> str | None:
    if _unit(encoding):
        return f"{f.axes} axes; coordinates run over [-1, 1] whatever the grid, and a unit of them counts as a position"
    if f.theta.ndim == 3:
        return "frequencies are along each pair's own direction, which differs between heads; head 0 is shown"
    if f.axes > 1:
        return f"{f.axes} axes; the frequencies are per step of the axis that turns a pair"
    return None


def _farthest(lengths: Lengths) -> int:
    return min(max((length for _, length in lengths.named()), default=4096), FARTHEST)


def _similarity(f: Frequencies, farthest: int) -> Curve | None:
    """Similarity at distances 1 … farthest; every octave keeps its extremes, so that a logarithmic axis shows them."""
    if not farthest or f.theta.ndim == 3:
        return None
    from posenc.formulas.similarities import similarity

    stop = min(farthest, max(WORK // f.pairs, 16)) + 1
    values, x, y, start = similarity(f, 1, stop), [], [], 1  # type: ignore[var-annotated]
    while start < stop:
        end = min(2 * start, stop)
        octave = thinned(range(start, end), values[start - 1 : end - 1], points=256)
        x += octave.x
        y += octave.y
        start = end
    return Curve(x=tuple(x), y=tuple(y))


def _numbers(encoding: Any) -> tuple[Numbers, ...]:
    if encoding.kind == "alibi":
        from posenc.formulas.biases import alibi_slopes

        return (Numbers(name="m_h", values=tuple(alibi_slopes(encoding.num_heads, encoding.max_bias).tolist())),)
    return ()
