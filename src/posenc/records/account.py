"""The record behind a report: an inspection and everything that follows from it."""

from __future__ import annotations

from typing import Any

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
from posenc.spec.references import Reference


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
        ground: what the claims were examined on; None without claims.
        references: the papers behind the configuration.
        notes: what could not be computed, and why.
    """

    name: str
    inspection: Inspection | None = None
    encodings: tuple[EncodingAccount, ...] = ()
    array: TableFacts | None = None
    permutation: PermutationFacts | None = None
    mechanisms: tuple[SideBySide, ...] = ()
    claims: tuple[Claim, ...] = ()
    ground: str | None = None
    references: tuple[Reference, ...] = ()
    notes: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        """The report's section of this subject, for notebooks."""
        from importlib import import_module

        # Records are below rendering and do not import it: the page is looked up by name when a notebook asks for it.
        page: Any = import_module("posenc.rendering.page")
        return str(page.notebook(self))
