"""The record of an attention decomposition: what the scores of a first layer are made of, head by head."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from posenc.records.base import Record


class _Item(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ScoreTerm(_Item):
    """One summand of the scores.

    Args:
        name: ``content-position`` is the query's content part times the key's position part; ``fast`` a band of pairs.
        meaning: what it holds, in words.
        cancels: True if it depends on the query alone, so that the softmax takes it out.
        pairs: the frequency pairs that it holds (rotary).
        wavelengths: the shortest and longest of them, in positions; None where a pair does not turn, or there is none.
    """

    name: str
    meaning: str
    cancels: bool = False
    pairs: tuple[int, ...] = ()
    wavelengths: tuple[float, float | None] | None = None


class TermShare(_Item):
    """How much of a head's scores one term makes, after the mean of every query's row was taken out.

    Args:
        share: inner product of the term with the scores over the scores' square; all shares of a head add up to 1, and
            one may be negative.
        explained: 1 minus what is left of the scores' square when the term is taken away; at most 1.
    """

    share: float
    explained: float


class ToeplitzForm(_Item):
    """How far a head's position-position term is from depending on ``m - n`` alone.

    Args:
        distance: of the head's matrix from ``a I + b J`` on each pair, relative (Frobenius), 0 to 1.
        random: what a random matrix of that size has.
        off_pair: the part of its square that lies outside the pairs.
        table_defect: of the term over the rows of the model's own table from the nearest function of ``m - n``,
            relative, functions of the query alone left out of both; None where nothing else is there.
        rows: how many rows of the table that was measured on.
        sentence_defect: the same on the rows of the sentence alone.
    """

    distance: float
    random: float
    off_pair: float
    table_defect: float | None
    rows: int
    sentence_defect: float | None


class HeadDecomposition(_Item):
    """One head.

    Args:
        head: its number.
        key_head: the key head it reads.
        deviation: root mean square of its scores, each row's mean taken out.
        terms: one share for each of the decomposition's terms; empty where the deviation is 0.
        parts: one share for each of the finer parts; empty for rotary models.
        pair_shares: the share of each frequency pair; empty for additive models.
        positional: what of the scores needs no word: explained by the parts without a word on either side (additive),
            or by the mean query and the mean key at each distance (rotary). None where the deviation is 0.
        verdict: ``positional`` from 0.9 on, ``content`` up to 0.1, ``mixed`` between, ``constant`` without deviation.
        sum_error: largest difference between the sum of the terms and the scores computed in one piece.
        toeplitz: for additive models.
    """

    head: int
    key_head: int
    deviation: float
    terms: tuple[TermShare, ...]
    parts: tuple[TermShare, ...] = ()
    pair_shares: tuple[float, ...] = ()
    positional: float | None
    verdict: Literal["positional", "mixed", "content", "constant"]
    sum_error: float
    toeplitz: ToeplitzForm | None = None


class Expansion(_Item):
    """The scores expanded around content alone, to second order in the positions; every row's mean taken out.

    Args:
        position_size: norm of the positions over norm of words and token types, each row's mean taken out; None
            without content.
        errors: relative error (Frobenius, all heads together) of the expansion to order 0, 1 and 2; None where the
            scores are constant rows.
        head_errors: the error to order 2, head by head.
        mixed: the part of the second-order term that joins both positions: its norm over the whole second order's.
    """

    position_size: float | None
    errors: tuple[float, float, float] | None
    head_errors: tuple[float | None, ...]
    mixed: float | None


class AttentionDecomposition(Record):
    """The scores of a first attention layer before the softmax, as sums of terms.

    Args:
        name: of the model.
        source: where the weights come from.
        mechanism: ``additive`` or ``rotary``.
        layer: always 0.
        tokens: the sentence as the model sees it.
        token_ids: their ids; empty where arrays were handed over.
        causal: whether keys after the query are left out of every number.
        scale: factor on the scores.
        terms: add up to the scores exactly.
        parts: the same in finer parts (additive): each side's content, position, token type and constant.
        heads: head by head.
        sum_error: the largest of the heads' errors.
        cancel_error: largest change of the attention after the softmax when the cancelling parts are left out; None
            where no part cancels.
        expansion: for additive models.
        precision: of the computation.
        notes: how to read it.
    """

    name: str
    source: str
    mechanism: Literal["additive", "rotary"]
    layer: int = 0
    tokens: tuple[str, ...]
    token_ids: tuple[int, ...] = ()
    causal: bool
    scale: float
    terms: tuple[ScoreTerm, ...]
    parts: tuple[ScoreTerm, ...] = ()
    heads: tuple[HeadDecomposition, ...]
    sum_error: float
    cancel_error: float | None = None
    expansion: Expansion | None = None
    precision: str = "float64"
    notes: tuple[str, ...] = ()
