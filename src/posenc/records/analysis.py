"""Records of what follows from an encoding; every number says how exact it is."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from posenc.records.base import Curve, Record


class Fact(BaseModel):
    """The base of parts of records."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Quantity(Fact):
    """A number and how exact it is.

    Args:
        value: None when it does not exist; ``note`` says why.
        error: bound on the absolute error; 0 for counts, None where only the precision is known.
        precision: what it was computed in.
        note: range, definition or reason.
    """

    value: float | None
    error: float | None = None
    precision: str = "float64"
    note: str | None = None


class Within(Fact):
    """How many pairs complete no turn within a length."""

    name: Literal["original", "trained", "served", "asked"]
    length: int
    incomplete: int
    first_incomplete: int | None
    critical_dimension: int


class UnseenAngles(Fact):
    """Angles that the training lengths never reached.

    Args:
        seen_length, length: distances met in training, and distances asked about.
        pairs: how many pairs reach an angle that training did not.
        first_pair: the first of them.
        largest: the largest angle beyond, as a fraction of a turn.
    """

    seen_length: int
    length: int
    pairs: int
    first_pair: int | None
    largest: Quantity


class WavelengthFacts(Record):
    """Wavelengths against lengths."""

    wavelengths: tuple[float | None, ...]
    within: tuple[Within, ...]
    unseen: UnseenAngles | None
    per_decade: tuple[tuple[int, int], ...]
    """(decade, pairs): how many pairs have a wavelength in ``[10^decade, 10^(decade + 1))``."""
    widest_gap: Quantity
    """Largest ratio between neighbouring wavelengths."""


class Extreme(Fact):
    """A distance and the similarity there."""

    distance: int
    similarity: float


class DecayFacts(Record):
    """Similarity ``kappa(D)`` against distance.

    Args:
        reach: distances 0..reach were evaluated.
        curve: ``kappa``, thinned with its extremes.
        limit: the continuous limit where the schedule is geometric, at the same distances.
        limit_gap: largest distance between the two.
        envelope: ``sup over D' >= D, D' <= reach of |kappa(D')|``.
        first_negative: first distance with ``kappa < 0``.
        first_rise: first D with ``kappa(D + 1) > kappa(D)``.
        minimum: the smallest value met.
        sign_changes, maxima: of the sequence.
        mean, rms: over 1..reach; ``long_run_rms`` is the exact one, ``1/sqrt(d)`` for distinct frequencies.
        aliases: the largest local maxima after the main lobe (after ``kappa`` first falls below 1/2).
        records: near-returns; each is closer to 1 than all before it.
    """

    reach: int
    curve: Curve
    limit: Curve | None
    limit_gap: Quantity
    envelope: Curve
    first_negative: Quantity
    first_rise: Quantity
    minimum: Extreme
    sign_changes: int
    maxima: int
    mean: Quantity
    rms: Quantity
    long_run_rms: Quantity
    aliases: tuple[Extreme, ...]
    records: tuple[Extreme, ...]


class TableFacts(Record):
    """What a table of positions (rows, width) is like.

    Args:
        rows, width: its shape.
        toeplitz_defect: largest max - min along a diagonal of ``K = P P^T``, with the size.
        relative_defect: the same over the largest entry of K.
        distinct_rows: rows that differ bit by bit.
        nearest_rows: smallest distance between two rows, and which.
        norm: smallest and largest length of a row.
        rank: numerical rank at NumPy's default tolerance.
        energy_rank: singular values that hold 99 % of the energy.
        entropy_rank: exponential of the entropy of the normalised singular values.
        shift_error: largest residual of the best linear map from row m to row m + 1.
        kernel: mean of K along each diagonal over the mean of the main one.
        heat: K of the first rows for the heat map, at most 128 x 128, to 4 digits, row major.
        table: the first rows themselves, at most 128, and at most 128 columns spread over the width.
    """

    rows: int
    width: int
    toeplitz_defect: Quantity
    relative_defect: Quantity
    distinct_rows: Quantity
    nearest_rows: Quantity
    nearest_pair: tuple[int, int] | None
    norm: tuple[float, float]
    rank: Quantity
    energy_rank: Quantity
    entropy_rank: Quantity
    shift_error: Quantity
    kernel: Curve
    heat: tuple[tuple[float, ...], ...]
    table: tuple[tuple[float, ...], ...]


class PrecisionRow(Fact):
    """One dtype and one place where rounding happens.

    Args:
        dtype: where numbers are rounded to.
        stage: ``positions``, ``frequencies``, ``angles`` or ``table``.
        error: largest angle error in radians (largest value error for ``table``) against position.
        distinct_rows: different rows among the positions examined.
        rows: positions examined.
        last_safe: last position with every angle error below 0.01 rad and all rows up to it distinct; None if every
            position examined is safe.
    """

    dtype: Literal["float32", "bfloat16", "float16"]
    stage: Literal["positions", "frequencies", "angles", "table"]
    error: Curve
    largest: Quantity
    distinct_rows: int
    rows: int
    last_safe: int | None
    overflow: int | None


class PrecisionFacts(Record):
    """Where rounding happens and what it costs."""

    rows: Annotated[tuple[PrecisionRow, ...], Field(max_length=64)]


class PermutationFacts(Record):
    """What attention knows of order (random weights, float64).

    Args:
        equivariance: largest change of attention's rows under a permutation, after undoing it, without positions.
        pooled: the same for the mean over rows.
        equal_vectors: with the same vector added to every token.
        broken: with this encoding.
        one_causal_layer: change of the last row when its prefix is permuted, one causal layer without positions.
        two_causal_layers: the same after two.
    """

    equivariance: Quantity
    pooled: Quantity
    equal_vectors: Quantity
    broken: tuple[tuple[str, float], ...]
    one_causal_layer: Quantity
    two_causal_layers: Quantity


class SideBySide(Fact):
    """One row of the comparison of mechanisms (A9)."""

    encoding: str
    enters: str
    parameters: int
    cost: str
    guaranteed: str
    drawbacks: str
    use_when: str


class Claim(Fact):
    """One entry of the claims ledger (M5).

    Args:
        number: its number in the ledger.
        claim, claim_zh: what is said, in English and Chinese.
        verdict: what the program found.
        evidence, evidence_zh: the numbers behind the verdict.
        source: who says it, or where the formula is.
    """

    number: int
    claim: str
    claim_zh: str
    verdict: Literal["exact", "holds within stated bounds", "counterexample", "refuted", "needs training"]
    evidence: str
    evidence_zh: str
    numbers: tuple[tuple[str, float], ...] = ()
    source: str
    figure: str | None = None


class Ledger(Record):
    """All claims, for the encodings of one model or in general."""

    subject: str
    claims: tuple[Claim, ...]
