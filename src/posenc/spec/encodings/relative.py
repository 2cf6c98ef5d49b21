"""Relative encodings that meet the content: vectors of the distance used with queries, keys and values."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from posenc.errors import SpecError
from posenc.spec.encodings.base import EncodingBase, Enters
from posenc.spec.encodings.biases import check_plain
from posenc.spec.encodings.tables import Sinusoidal
from posenc.spec.value import Width

Limit = Annotated[int, Field(gt=0, le=2**20)]


class Shaw(EncodingBase):
    """Trained vectors for the clipped distance, with queries and in the values (Shaw et al. 2018, equations 3 and 4).

    ``e_ij = q_i . (k_j + a^K_c) / sqrt(d)`` and ``z_i = sum_j alpha_ij (v_j + a^V_c)``, where ``c = clip(j - i, -limit,
    limit)``; the vectors are shared by the heads.

    Args:
        head_dim: width of a head.
        limit: distances beyond it count as the limit.
        keys: whether ``a^K`` exists.
        values: whether ``a^V`` exists.
    """

    kind: Literal["shaw"] = "shaw"
    head_dim: Width
    limit: Limit = 16
    keys: bool = True
    values: bool = True
    cites: ClassVar[tuple[str, ...]] = ("shaw2018",)
    enters: ClassVar[Enters] = "score"
    relative: ClassVar[bool] = True

    @model_validator(mode="after")
    def _somewhere(self) -> Shaw:
        _check_use(self.keys, self.values)
        return self


class RelativeSinusoid(EncodingBase):
    """The sinusoid ``r_(i-j)`` as a vector with the queries, ``q_i . r_(i-j) / sqrt(d)``, or in the values.

    Nothing is trained; ``i - j`` and ``j - i`` are told apart.

    Args:
        sinusoid: ``r``, as wide as a head; a fixed one over one axis.
        limit: distances beyond it count as the limit, on either side.
        keys: whether it is used with the queries.
        values: whether it is added to the values.
    """

    kind: Literal["relative_sinusoid"] = "relative_sinusoid"
    sinusoid: Sinusoidal
    limit: Limit | None = None
    keys: bool = True
    values: bool = False
    cites: ClassVar[tuple[str, ...]] = ("vaswani2017", "shaw2018")
    enters: ClassVar[Enters] = "score"
    relative: ClassVar[bool] = True

    @model_validator(mode="after")
    def _plain(self) -> RelativeSinusoid:
        check_plain(self.sinusoid)
        _check_use(self.keys, self.values)
        return self

    @property
    def head_dim(self) -> int:
        """Width of a head."""
        return self.sinusoid.dim


class TransformerXL(EncodingBase):
    """Transformer-XL: ``(q_i + u) . k_j + (q_i + v) . W_R R_(i-j)``, over ``sqrt(d)`` (Dai et al. 2019, section 3.3).

    ``u``, ``v`` (for each head) and ``W_R`` are trained.

    Args:
        head_dim: width of a head.
        num_heads: heads.
        sinusoid: ``R``; of the model's width, all sines before all cosines, unless given.
        limit: distances beyond it count as the limit (``clamp_len``).
    """

    kind: Literal["transformer_xl"] = "transformer_xl"
    head_dim: Width
    num_heads: Width
    sinusoid: Sinusoidal = Field(
        default_factory=lambda fields: Sinusoidal(
            min(fields["head_dim"] * fields["num_heads"], 2**20), order="sin|cos", odd="zero"
        )
    )
    limit: Limit | None = None
    cites: ClassVar[tuple[str, ...]] = ("dai2019",)
    enters: ClassVar[Enters] = "score"
    relative: ClassVar[bool] = True

    @model_validator(mode="after")
    def _plain(self) -> TransformerXL:
        check_plain(self.sinusoid)
        return self


class Disentangled(EncodingBase):
    """DeBERTa: content to position and position to content beside the content's own score (He et al. 2020, section 3).

    ``(q_i . k_j + q_i . W_K P_d(i,j) + k_j . W_Q P_d(i,j)) / sqrt(terms head_dim)`` with ``d(i,j) = clip(i - j + span,
    0, 2 span - 1)``, ``terms`` 3 with both. The table ``P`` and the projections are trained. The last term is that of
    the authors' code and of every published model; their equation 4 has ``d(j,i)`` there.

    Args:
        head_dim: width of a head.
        num_heads: heads.
        dim: width of the table's rows.
        span: distances that have a row, on either side.
        max_distance: where the logarithmic buckets of DeBERTa v2 and v3 end; ``span`` is then their
            ``position_buckets``, half of which are exact. None for none.
        content_to_position, position_to_content: the two terms.
        norm: normalise the rows first (v2 and v3: ``layer_norm``).
        as_printed: ``d(j,i)`` in the last term, as equation 4 has it.
    """

    kind: Literal["disentangled"] = "disentangled"
    head_dim: Width
    num_heads: Width
    dim: Width = Field(default_factory=lambda fields: min(fields["head_dim"] * fields["num_heads"], 2**20))
    span: Limit = 512
    max_distance: Limit | None = None
    content_to_position: bool = True
    position_to_content: bool = True
    norm: bool = False
    as_printed: bool = False
    cites: ClassVar[tuple[str, ...]] = ("he2020",)
    enters: ClassVar[Enters] = "score"
    relative: ClassVar[bool] = True

    @property
    def terms(self) -> int:
        """How many terms the score has, the content's own among them."""
        return 1 + self.content_to_position + self.position_to_content

    @model_validator(mode="after")
    def _buckets_fit(self) -> Disentangled:
        if self.terms == 1:
            raise SpecError("a disentangled score has at least one term with positions", "none")
        if self.max_distance is not None and (self.span < 4 or self.span % 2):
            raise SpecError("logarithmic buckets need an even span of at least 4", self.span)
        if self.max_distance is not None and self.max_distance <= self.span // 2 + 1:
            raise SpecError(
                f"max_distance exceeds the {self.span // 2} distances that have a bucket each", self.max_distance
            )
        return self


def _check_use(keys: bool, values: bool) -> None:
    if not (keys or values):
        raise SpecError("a relative vector is used with the queries, in the values, or both", "neither")
