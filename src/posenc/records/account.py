"""The record behind a report: an inspection and everything that follows from it."""

from __future__ import annotations

from posenc.records.analysis import (
    Claim,
    DecayFacts,
    Fact,
    PermutationFacts,
    PrecisionFacts,
    SideBySide,
    TableFacts,
    WavelengthFacts,
)
from posenc.records.base import Curve, Record
from posenc.records.inspection import Inspection


class Clock(Fact):
    """One pair as a clock: how far its hand turns for a step, and what it is called.

    Args:
        role: ``fast``, ``middle`` or ``slow``.
        pair: its index.
        theta: radians per position.
        wavelength: positions per turn; None if it does not turn.
    """

    role: str
    pair: int
    theta: float
    wavelength: float | None


class EncodingAccount(Fact):
    """What follows from one encoding with frequencies.

    Args:
        part: the stack of layers it belongs to.
        notation: the encoding in one line.
        layers: how many layers use it; None for the input.
        waves: wavelengths against lengths.
        decay: similarity against distance, with the scaling as it runs at the served length.
        before: the same curve before scaling; None without scaling.
        precision: what rounding costs.
        clocks: three pairs as clocks.
        table: the first rows as a table, for the heat maps.
    """

    part: str
    notation: str
    layers: int | None
    waves: WavelengthFacts
    decay: DecayFacts
    before: Curve | None
    precision: PrecisionFacts
    clocks: tuple[Clock, ...]
    table: TableFacts


class Account(Record):
    """Everything a report says of one subject.

    Args:
        name: what was asked for.
        inspection: what was read; None for an array or a function.
        encodings: what follows from each encoding with frequencies.
        array: facts of a user's own table.
        permutation: what attention knows of order; with this encoding where it is additive.
        mechanisms: the comparison of mechanisms.
        claims: the claims ledger on this ground.
        notes: what could not be computed, and why.
    """

    name: str
    inspection: Inspection | None = None
    encodings: tuple[EncodingAccount, ...] = ()
    array: TableFacts | None = None
    permutation: PermutationFacts | None = None
    mechanisms: tuple[SideBySide, ...] = ()
    claims: tuple[Claim, ...] = ()
    notes: tuple[str, ...] = ()
