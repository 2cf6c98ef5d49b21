"""Everything that follows from a subject, as the one record that a report is drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from posenc.analysis.arrays import is_own, own_table
from posenc.analysis.decay import decay_facts
from posenc.analysis.inspection import inspect
from posenc.analysis.ledger import Ground, ledger
from posenc.analysis.mechanisms import side_by_side
from posenc.analysis.permutation import permutation_facts
from posenc.analysis.precision import precision_facts
from posenc.analysis.subject import reading_of
from posenc.analysis.symmetry import table_facts
from posenc.analysis.wavelengths import wavelength_facts
from posenc.errors import SubjectError
from posenc.formulas.scalings import frequencies
from posenc.formulas.similarities import similarity
from posenc.formulas.spectrum import Frequencies, unscaled
from posenc.records import Reading, spread
from posenc.records.account import Account, Clock, EncodingAccount
from posenc.records.analysis import Ledger
from posenc.spec import Geometric, Learned, ModelPositions, Rotary, Sinusoidal, notation
from posenc.spec.references import cited

REACH = 2**17
"""Farthest distance drawn, unless the model serves less."""
WIDEST = 2048
"""Channels of an encoding that the claims are examined on; they make matrices of that size."""
ANALYSED = 4096
"""Channels of an encoding that is analysed: tables of thousands of rows are made of it."""
SHOWN = 4
"""Encodings with frequencies that are analysed; the inspection has all."""
ROWS = 512


def account(subject: Any, *, claims: bool = True) -> Account:
    """Analyse a model, an encoding, or somebody's own table or function.

    Args:
        subject: anything :func:`posenc.read` takes, an array ``(rows, width)``, a ``.npy`` file, a function of
            positions, or ``module:name`` of one.
        claims: also run the claims ledger on it.

    Raises:
        PosencError: the subject cannot be read.
    """
    return _own(subject) if is_own(subject) else _model(subject, claims)


def _own(subject: Any) -> Account:
    name, table = own_table(subject)
    facts = table_facts(table)
    broken = permutation_facts({name: table}) if len(table) >= 11 else None
    notes = () if broken else ("Fewer than 11 rows: the effect on attention was not measured.",)
    return Account(name=name, array=facts, permutation=broken, mechanisms=side_by_side(), notes=notes)


def _model(subject: Any, claims: bool) -> Account:
    reading = reading_of(subject)
    found: list[EncodingAccount] = []
    notes: list[str] = []
    ground = _ground(reading) if claims else None
    tables: dict[str, np.ndarray] = {}
    for part in reading.parts:
        for encoding in part.positions.encodings:
            if not isinstance(encoding, Rotary | Sinusoidal):
                if isinstance(encoding, Learned):
                    notes.append(
                        f"{notation(encoding)}: its rows are trained weights; nothing follows from the config."
                    )
                continue
            if len(found) == SHOWN:
                notes.append(f"{notation(encoding)} ({part.name}): inspected, not analysed further.")
                continue
            if 2 * unscaled(encoding).pairs > ANALYSED:
                notes.append(f"{notation(encoding)}: wider than {ANALYSED} channels; inspected, not analysed further.")
                continue
            if unscaled(encoding).theta.ndim == 3:
                notes.append(f"{notation(encoding)}: differs between heads; not analysed as one.")
                continue
            found.append(analysed(part.name, part.positions, encoding))
            if isinstance(encoding, Sinusoidal):
                tables[notation(encoding)] = _rows(frequencies(encoding))
    return Account(
        name=reading.name,
        inspection=inspect(reading, similarity=False),
        encodings=tuple(found),
        permutation=permutation_facts(tables),
        mechanisms=side_by_side(),
        claims=ledger(ground).claims if ground else (),
        ground=ground.name if ground else None,
        references=cited(reading.encodings()),
        notes=tuple(notes),
    )


def claims_about(subject: Any = None) -> Ledger:
    """Examine the claims on a model's first encoding with frequencies, or on the paper's sinusoid of width 512.

    Args:
        subject: anything :func:`posenc.read` takes; None for the paper's.

    Raises:
        PosencError: the subject cannot be read.
        SubjectError: it has no frequencies.

    >>> claims_about("rotary(6)").subject
    'rotary(6)'
    """
    if subject is None:
        return ledger()
    if is_own(subject):
        raise SubjectError("claims are examined on a model or an encoding with frequencies", "a table or a function")
    reading = reading_of(subject)
    ground = _ground(reading)
    if ground is None:
        raise SubjectError(
            f"claims are examined on an encoding with at most {WIDEST} channels that turn, the same for all heads",
            ", ".join(map(notation, reading.encodings())) or "no encoding",
        )
    return ledger(ground)


def _ground(reading: Reading) -> Ground | None:
    for part in reading.parts:
        for encoding in part.positions.encodings:
            if isinstance(encoding, Rotary | Sinusoidal) and unscaled(encoding).theta.ndim < 3:
                f = frequencies(encoding, part.positions.served)
                if f.fused.any() and 2 * f.pairs <= WIDEST:  # pairs that all stand still say nothing about turning
                    return Ground(notation(encoding), f, trained=_seen(part.positions))
    return None


def analysed(part: str, at: ModelPositions, encoding: Rotary | Sinusoidal) -> EncodingAccount:
    """What follows from one encoding, as it runs for rows of the served length."""
    after, before = frequencies(encoding, at.served), unscaled(encoding)
    scaled = bool(getattr(encoding, "scaling", ()))
    lengths: Mapping[str, int | None] = {"original": at.original, "trained": at.trained, "served": at.served}
    reach = min(max(at.served or 0, at.trained or 0) or 4096, REACH)
    using = sum(len(at.layers_of(i)) for i, kind in enumerate(at.kinds) if encoding in kind.encodings)
    seen = (at.original or _seen(at)) if scaled else _seen(at)
    return EncodingAccount(
        part=part,
        notation=notation(encoding),
        layers=None if encoding in at.input else using,
        waves=wavelength_facts(after, lengths, before=before, seen=seen),
        decay=decay_facts(after, max(reach, 2), base=None if scaled else _base(encoding)),
        before=spread(np.arange(reach + 1), similarity(before, 0, reach + 1), 2048) if scaled else None,
        precision=precision_facts(after, reach),
        clocks=clocks(after),
        table=table_facts(_rows(after)),
    )


def clocks(f: Frequencies) -> tuple[Clock, ...]:
    """The fastest, the middle and the slowest pair that turns."""
    turning = np.flatnonzero(f.fused != 0)
    if not len(turning):
        return ()
    order = turning[np.argsort(-np.abs(f.fused[turning]), kind="stable")]
    picked = {"fast": order[0], "middle": order[len(order) // 2], "slow": order[-1]}
    return tuple(
        Clock(role=role, pair=int(i), theta=float(f.fused[i]), wavelength=float(f.wavelengths[i]))
        for role, i in picked.items()
    )


def _rows(f: Frequencies) -> np.ndarray:
    """Sines, then cosines, of the first rows."""
    angles = np.arange(ROWS)[:, None] * f.fused
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def _seen(at: ModelPositions) -> int | None:
    """The length of training if a source states it."""
    return at.trained


def _base(encoding: Rotary | Sinusoidal) -> float | None:
    schedule = encoding.schedule
    plain = isinstance(schedule, Geometric) and schedule.keep == 1 and schedule.shift == 0 and schedule.first == 1
    return schedule.base if isinstance(schedule, Geometric) and plain and encoding.axes is None else None
