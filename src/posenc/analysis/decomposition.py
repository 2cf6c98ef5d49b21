"""Attention decomposed: the scores of a first layer before the softmax as sums of terms, from real weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from posenc.analysis import additive, bands, expansion
from posenc.analysis.toeplitz_form import adjacent_pairs
from posenc.errors import ShapeError, SubjectError
from posenc.formats.weights import AdditiveLayer, FirstLayer, RotaryLayer, first_layer
from posenc.formulas.scalings import frequencies
from posenc.records.decomposition import AttentionDecomposition, ScoreTerm

ADDITIVE_NOTES = (
    "Token type and constants (the normalisation's beta and the projections' biases) count with the content in the "
    "four terms; the sixteen parts hold them apart.",
    "Parts whose key side is constant depend on the query alone and cancel in the softmax; the token type of a key "
    "does not cancel, because the normalisation divides it by each token's own deviation.",
    "Positional: explained by the parts without a word on either side. The word still enters through the deviation "
    "that the normalisation divides by.",
)
ROTARY_NOTES = (
    "A band's part of the scores is the sum of its pairs; with the channels that are not rotated the bands add up.",
    "Positional: explained by the sentence's mean query and mean key at each distance, which is what the head would "
    "score if every word were the average one.",
)


def decompose(
    subject: Any,
    sentence: str | Sequence[int] | Sequence[str] = (),
    layer: int = 0,
    *,
    edges: Sequence[float] | None = None,
    pairs: Any = None,
) -> AttentionDecomposition:
    """Decompose the scores of a model's first attention layer on a sentence.

    Additive (learned or sinusoidal positions): content-content, content-position, position-content, position-position.
    Rotary: one term for each band of wavelengths. Every number is computed in float64 from the stored weights; the sum
    of the terms is held against the scores computed in one piece (``sum_error``).

    Args:
        subject: path of a model folder, of a safetensors file beside its config, or of a GGUF file; or a layer of
            arrays (:class:`AdditiveLayer`, :class:`RotaryLayer`, :class:`FirstLayer`).
        sentence: text, or token ids; for a layer of arrays the tokens' names, numbered if empty.
        layer: 0. A deeper layer's input is no sum of word and position any more.
        edges: wavelengths between the bands of a rotary model; thirds of the pairs if None.
        pairs: ``(pairs, 2)`` channels of a sinusoidal table for the Toeplitz form; ``(2i, 2i + 1)`` if None.

    Raises:
        FormatError: the model cannot be read or is of a kind that is not known here.
        ShapeError: too many tokens, arrays that do not fit, edges that do not increase.
        SubjectError: another layer than the first.
        SpecError: text was given and the ``tokenizers`` package is missing.
    """
    if isinstance(layer, bool) or layer != 0:
        raise SubjectError(
            "the first layer, 0, is decomposed",
            layer,
            "A deeper layer reads what attention has already mixed: no such sum exists.",
        )
    found, tokens, ids = _found(subject, sentence)
    common: dict[str, Any] = {
        "name": found.name if isinstance(found, FirstLayer) else "arrays",
        "source": found.source if isinstance(found, FirstLayer) else "arrays in memory",
        "tokens": tokens,
        "token_ids": ids,
    }
    inner = found.layer if isinstance(found, FirstLayer) else found
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            return _rotary(inner, edges, common) if isinstance(inner, RotaryLayer) else _additive(inner, pairs, common)
    except FloatingPointError as error:
        raise ShapeError("the scores of the layer are numbers that float64 holds", str(error)) from None


def _found(
    subject: Any, sentence: Any
) -> tuple[FirstLayer | AdditiveLayer | RotaryLayer, tuple[str, ...], tuple[int, ...]]:
    if isinstance(subject, str | Path):
        subject = first_layer(subject, sentence)
    if isinstance(subject, FirstLayer):
        return subject, subject.tokens.texts, subject.tokens.ids
    if not isinstance(subject, AdditiveLayer | RotaryLayer):
        raise SubjectError("a path or a layer of arrays is decomposed", type(subject).__name__)
    count = len(subject.words)
    names = tuple(map(str, sentence.split() if isinstance(sentence, str) else sentence)) or tuple(
        map(str, range(count))
    )
    if len(names) != count:
        raise SubjectError(f"the layer's {count} tokens have a name each", len(names))
    return subject, names, ()


def _additive(layer: AdditiveLayer, pairs: Any, common: dict[str, Any]) -> AttentionDecomposition:
    heads, changed = additive.heads_of(layer, adjacent_pairs(layer.projections.width) if pairs is None else pairs)
    return AttentionDecomposition(
        **common,
        mechanism="additive",
        causal=layer.projections.causal,
        scale=layer.projections.scale,
        terms=additive.four_terms(),
        parts=additive.part_terms(),
        heads=heads,
        sum_error=max(head.sum_error for head in heads),
        cancel_error=changed,
        expansion=expansion.expansion(layer),
        notes=ADDITIVE_NOTES,
    )


def _rotary(layer: RotaryLayer, edges: Sequence[float] | None, common: dict[str, Any]) -> AttentionDecomposition:
    f = frequencies(layer.encoding, len(layer.words))
    terms = bands.bands_of(f, edges)
    heads = bands.heads_of(layer, terms)
    unrotated = layer.projections.head_dim - 2 * f.pairs
    if unrotated:
        terms += (ScoreTerm(name="not rotated", meaning=f"{unrotated} channels without position"),)
    return AttentionDecomposition(
        **common,
        mechanism="rotary",
        causal=layer.projections.causal,
        scale=layer.projections.scale * f.logit_scale,
        terms=terms,
        heads=heads,
        sum_error=max(head.sum_error for head in heads),
        notes=ROTARY_NOTES,
    )
