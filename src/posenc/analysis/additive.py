"""Additive scores as a sum of terms: each side's content and position, with everything else accounted for exactly.

With ``u = word + type + position`` and ``s = sqrt(var(u) + eps)`` the layer normalisation is
``g (u - mean(u)) / s + beta``; given ``s`` it is linear, so a part ``x`` of ``u`` enters as ``g (x - mean(x)) / s`` and
``beta`` is a constant. A query is ``W_q`` times the sum of these plus its bias, a key likewise, and the score is their
product times the scale: sixteen summands of four parts on either side.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from posenc.analysis.shares import allowed, deviation, share, softmax, verdict
from posenc.analysis.toeplitz_form import off_pair, random_distance, toeplitz_defects, toeplitz_distance
from posenc.errors import ShapeError
from posenc.formats.weights import AdditiveLayer
from posenc.formulas.spectrum import Array
from posenc.records.decomposition import HeadDecomposition, ScoreTerm, ToeplitzForm

SIDES = ("content", "position", "type", "constant")
"""``constant`` is the normalisation's ``beta`` through the projection, plus the projection's bias."""
PARTS = tuple((query, key) for query in SIDES for key in SIDES)
TERMS = ("content-content", "content-position", "position-content", "position-position")
MOST_ROWS = 512
"""Rows of the position table on which the Toeplitz defect of a head is measured."""

_NOUN = {"content": "the word", "position": "the position", "type": "the token type", "constant": "its constants"}


def part_terms() -> tuple[ScoreTerm, ...]:
    """The sixteen parts; those whose key side is constant depend on the query alone."""
    return tuple(
        ScoreTerm(
            name=f"{query}-{key}",
            meaning=f"{_NOUN[query]} of the query with {_NOUN[key]} of the key",
            cancels=key == "constant",
        )
        for query, key in PARTS
    )


def four_terms() -> tuple[ScoreTerm, ...]:
    """The four terms; token type and constants count with the content, so that the four add up to the scores."""
    side = {"content": "everything but the position", "position": "the position"}
    return tuple(
        ScoreTerm(name=name, meaning=f"{side[q]} of the query with {side[k]} of the key")
        for name in TERMS
        for q, k in [name.split("-")]
    )


def term_of(query: str, key: str) -> str:
    """The term that a part belongs to.

    >>> term_of("constant", "position"), term_of("position", "type")
    ('content-position', 'position-content')
    """
    return "-".join("position" if side == "position" else "content" for side in (query, key))


def normalised_parts(layer: AdditiveLayer) -> dict[str, Array]:
    """``(tokens, width)`` of each part after the layer normalisation; they add up to what the projections read."""
    position = layer.positions[: len(layer.words)]
    whole = layer.words + layer.types + position
    spread = np.sqrt(whole.var(-1, keepdims=True) + layer.eps)
    parts = {
        name: layer.norm_weight * (x - x.mean(-1, keepdims=True)) / spread
        for name, x in (("content", layer.words), ("position", position), ("type", layer.types))
    }
    return parts | {"constant": np.broadcast_to(layer.norm_bias, whole.shape)}


def projected_parts(layer: AdditiveLayer) -> tuple[dict[str, Array], dict[str, Array]]:
    """Each part's queries ``(heads, tokens, head_dim)`` and keys (key heads repeated for the heads that read them)."""
    p, parts = layer.projections, normalised_parts(layer)
    owner = [p.key_head(h) for h in range(p.heads)]
    query = {name: x @ p.query.swapaxes(-1, -2) for name, x in parts.items()}
    key = {name: x @ p.key.swapaxes(-1, -2) for name, x in parts.items()}
    query["constant"] = query["constant"] + p.query_bias[:, None]
    key["constant"] = key["constant"] + p.key_bias[:, None]
    return query, {name: x[owner] for name, x in key.items()}


def whole_scores(layer: AdditiveLayer) -> Array:
    """``(heads, tokens, tokens)``: the scores in one piece."""
    p = layer.projections
    u = layer.words + layer.types + layer.positions[: len(layer.words)]
    u = u - u.mean(-1, keepdims=True)
    x = u / np.sqrt((u**2).mean(-1, keepdims=True) + layer.eps) * layer.norm_weight + layer.norm_bias
    q = np.einsum("hdw,nw->hnd", p.query, x, optimize=True) + p.query_bias[:, None]
    k = np.einsum("hdw,nw->hnd", p.key, x, optimize=True) + p.key_bias[:, None]
    owner = [p.key_head(h) for h in range(p.heads)]
    return np.asarray(np.einsum("hmd,hnd->hmn", q, k[owner], optimize=True) * p.scale)


def heads_of(layer: AdditiveLayer, pairs: Any) -> tuple[tuple[HeadDecomposition, ...], float]:
    """The record of every head, and the largest change of the attention when the cancelling parts are left out.

    Args:
        layer: the layer.
        pairs: ``(pairs, 2)`` channels for the Toeplitz form.
    """
    if layer.projections.key_heads != layer.projections.heads:
        raise ShapeError("an additive layer has a key head for each head", layer.projections.key_heads)
    query, key = projected_parts(layer)
    scores, forms = whole_scores(layer), toeplitz_forms(layer, pairs)
    mask = allowed(len(layer.words), layer.projections.causal)
    scale, made, changed = layer.projections.scale, [], 0.0
    for head, whole in enumerate(scores):
        parts = {(q, k): scale * (query[q][head] @ key[k][head].T) for q, k in PARTS}
        terms = {name: sum(x for at, x in parts.items() if term_of(*at) == name) for name in TERMS}
        spread = deviation(whole, mask)
        wordless = sum(x for at, x in parts.items() if "content" not in at)
        positional = share(np.asarray(wordless), whole, mask).explained if spread else None
        made.append(
            HeadDecomposition(
                head=head,
                key_head=head,
                deviation=spread,
                terms=tuple(share(np.asarray(terms[name]), whole, mask) for name in TERMS) if spread else (),
                parts=tuple(share(parts[at], whole, mask) for at in PARTS) if spread else (),
                positional=positional,
                verdict=verdict(positional),
                sum_error=float(np.abs(np.asarray(sum(terms.values())) - whole).max()),
                toeplitz=forms[head],
            )
        )
        left_out = np.asarray(sum(x for (_, k), x in parts.items() if k != "constant"))
        changed = max(changed, float(np.abs(softmax(whole, mask) - softmax(left_out, mask)).max()))
    return tuple(made), changed


def position_matrices(layer: AdditiveLayer) -> Array:
    """``(heads, width, width)``: ``C g W_q^T W_k g C`` of each head, ``C`` the centring of the layer normalisation.

    ``p_m^T A p_n`` is the position-position term up to the scale and the tokens' deviations ``s``.
    """
    p = layer.projections
    return np.stack([_centred_rows(layer, p.query[h]).T @ _centred_rows(layer, p.key[h]) for h in range(p.heads)])


def _centred_rows(layer: AdditiveLayer, weight: Array) -> Array:
    """``(head_dim, width)``: ``W g C``."""
    scaled = weight * layer.norm_weight
    return np.asarray(scaled - scaled.mean(-1, keepdims=True))


def toeplitz_forms(layer: AdditiveLayer, pairs: Any) -> tuple[ToeplitzForm, ...]:
    """How far each head's position-position term is from a function of ``m - n``; rows of the table up to 512."""
    p, table = layer.projections, layer.positions[:MOST_ROWS]
    sides = [(_centred_rows(layer, p.query[h]), _centred_rows(layer, p.key[h])) for h in range(p.heads)]
    terms = np.stack([(table @ query.T) @ (table @ key.T).T for query, key in sides])
    here = min(len(layer.words), len(table))
    return tuple(
        ToeplitzForm(
            distance=toeplitz_distance(query.T @ key, pairs),
            random=random_distance(p.width, len(pairs)),
            off_pair=off_pair(query.T @ key, pairs),
            table_defect=whole,
            rows=len(table),
            sentence_defect=part,
        )
        for (query, key), whole, part in zip(
            sides, toeplitz_defects(terms), toeplitz_defects(terms[:, :here, :here]), strict=True
        )
    )
