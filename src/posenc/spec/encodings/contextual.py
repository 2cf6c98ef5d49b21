"""Positions made from the content: contextual counts, forgetting, selective rotation."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from posenc.errors import SpecError
from posenc.spec.encodings.base import EncodingBase, Enters
from posenc.spec.value import Width


class Cope(EncodingBase):
    """CoPE: positions that count only what a query's gates let through (Golovneva et al. 2024, section 4).

    ``g_ij = sigmoid(score_ij)``, ``p_ij = min(sum_(t=j..i) g_it, positions - 1)``; ``q_i . e[p_ij]``, linear between
    the trained vectors of neighbouring whole positions, is added to the score. Causal attention only.

    Args:
        head_dim: width of a head.
        positions: trained vectors, shared by the heads.
    """

    kind: Literal["cope"] = "cope"
    head_dim: Width
    positions: Annotated[int, Field(ge=2, le=2**16)] = 64
    cites: ClassVar[tuple[str, ...]] = ("golovneva2024",)
    enters: ClassVar[Enters] = "score"
    relative: ClassVar[bool] = False
    content_dependent: ClassVar[bool] = True


class Forgetting(EncodingBase):
    """Data-dependent decay: the sum of ``log f_t`` over ``t = j+1 … i`` added to the score of query i and key j.

    ``log f_t = log sigmoid(w x_t + b)`` (Lin et al. 2025) or ``-softplus(w x_t)`` (Veisi et al. 2025) for each head:
    the same up to the sign of the weights, and a bias. It needs no other positions. Causal attention only.

    Args:
        dim: width of the tokens that the gates read.
        num_heads: gates: as many as the heads of the keys.
        form: ``log_sigmoid`` or ``softplus``.
        bias: whether the gates have one; the default is that of the form's authors.
    """

    kind: Literal["forgetting"] = "forgetting"
    dim: Width
    num_heads: Width
    form: Literal["log_sigmoid", "softplus"] = "log_sigmoid"
    bias: bool = Field(default_factory=lambda fields: fields["form"] == "log_sigmoid")
    cites: ClassVar[tuple[str, ...]] = ("lin2025", "veisi2025")
    enters: ClassVar[Enters] = "query_key"
    relative: ClassVar[bool] = False
    content_dependent: ClassVar[bool] = True


class SelectiveRotary(EncodingBase):
    """A rotary whose angles are sums over the tokens so far of increments read from each token (Movahedi et al. 2025).

    ``phi_t = sum_(s <= t) conv(W_2 W_1 x_s / |x_s|)`` for each head and pair, the norm taken over each head's share of
    ``x``, the convolution causal and for each channel apart; pair ``i`` turns by ``base^(-2i/head_dim) phi``. Pairs are
    ``(i, i + head_dim / 2)``. Read in the authors' code at its defaults (low rank, no gate, no bias). Causal attention
    only.

    Args:
        dim: width of the tokens that the increments are read from.
        head_dim: width of a head, even.
        num_heads: heads, of queries and keys alike.
        rank: width between the two projections.
        window: tokens that the convolution sees.
        base: of the geometric schedule.
    """

    kind: Literal["selective_rotary"] = "selective_rotary"
    dim: Width
    head_dim: Width
    num_heads: Width
    rank: Width = 16
    window: Annotated[int, Field(ge=1, le=64)] = 4
    base: Annotated[float, Field(gt=1)] = 500000.0
    cites: ClassVar[tuple[str, ...]] = ("movahedi2025",)
    enters: ClassVar[Enters] = "query_key"
    relative: ClassVar[bool] = False
    content_dependent: ClassVar[bool] = True

    @model_validator(mode="after")
    def _whole(self) -> SelectiveRotary:
        if self.head_dim % 2:
            raise SpecError("a rotation turns pairs: head_dim is even", self.head_dim)
        if self.dim % self.num_heads:
            raise SpecError("each head reads an equal share of dim", f"dim={self.dim}, num_heads={self.num_heads}")
        return self
