"""DeBERTa's disentangled attention: content to position and position to content."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from posenc.errors import ShapeError
from posenc.formulas.relative import disentangled_rows
from posenc.nn.building import builds
from posenc.nn.interfaces import Positions
from posenc.nn.relative import check_width, needed
from posenc.nn.scores import AddedScore, ScoreMod, distances, lookup, picked, value_of, whole, wide
from posenc.spec import Disentangled, Value


class DisentangledScores(AddedScore):
    """``(q_i . K_d(i,j) + k_j . Q_d(i,j)) / sqrt(terms head_dim)`` beside the score (He et al. 2020, section 3).

    The content's own score is divided by ``sqrt(terms head_dim)``, too: attention multiplies its scale by
    ``logit_scale``, ``1 / sqrt(terms)``.

    Args:
        value: a :class:`posenc.spec.Disentangled`, its notation, or the width of a head; its fields by name.
        scale: the softmax scale before ``logit_scale``; ``1 / sqrt(head_dim)`` unless given.
        projections: modules ``(query, key)`` that project the table's rows; attention's own where a model shares them
            (DeBERTa v2 and v3: ``share_att_key``). They are used, not owned. Projections of their own unless given.
        device, dtype: of what is trained.

    >>> deberta = DisentangledScores(4, num_heads=3, span=8)
    >>> q = torch.ones(1, 3, 5, 4)
    >>> deberta.bias(q, q, torch.arange(5), torch.arange(5)).shape, round(deberta.logit_scale, 4)
    (torch.Size([1, 3, 5, 5]), 0.5774)
    """

    kind: ClassVar[type[Value]] = Disentangled
    value: Disentangled

    def __init__(
        self,
        value: Any = None,
        *,
        scale: float | None = None,
        projections: tuple[nn.Module, nn.Module] | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
        **fields: Any,
    ) -> None:
        super().__init__()
        self.value = value_of(Disentangled, value, fields)
        v = self.value
        self.logit_scale = 1 / math.sqrt(v.terms)
        self.scale = 1 / math.sqrt(v.head_dim) if scale is None else scale
        self.derive_now()
        places: dict[str, Any] = {"device": device, "dtype": dtype}
        self.table = nn.Parameter(torch.empty(2 * v.span, v.dim, **places))
        self.normalised = nn.LayerNorm(v.dim, eps=1e-7, **places) if v.norm else nn.Identity()
        self._shared = projections  # in a tuple, so that it is not one of this module's own
        own = projections is None
        self.query = nn.Linear(v.dim, v.num_heads * v.head_dim, **places) if own and v.position_to_content else None
        self.key = (
            nn.Linear(v.dim, v.num_heads * v.head_dim, bias=False, **places) if own and v.content_to_position else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Table and weights normal with standard deviation 0.02."""
        nn.init.normal_(self.table, std=0.02)
        for layer in (self.query, self.key):
            if layer is not None:
                nn.init.normal_(layer.weight, std=0.02)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)

    def derive(self) -> dict[str, Any]:
        """The row of each distance as far as they differ."""
        far = self.farthest
        return {"rows": disentangled_rows(self.value, np.arange(-far, far + 1))}

    @property
    def farthest(self) -> int:
        """Distances from here on share a row."""
        return self.value.max_distance or self.value.span

    def index(self, distance: Tensor) -> Tensor:
        """The table's row of each distance ``i - j``."""
        far = self.farthest
        return self.numbers(distance.device)["rows"][whole(distance, "a row for each distance").clamp(-far, far) + far]

    def projected(self, which: str, dtype: torch.dtype) -> Tensor:
        """The rows through the query's or the key's projection, ``(heads, rows, head_dim)``."""
        layer = getattr(self, which) if self._shared is None else self._shared[which == "key"]
        rows: Tensor = layer(self.normalised(self.table))
        if rows.shape[-1] != self.value.num_heads * self.value.head_dim:
            raise ShapeError("projections give num_heads * head_dim channels", tuple(rows.shape))
        return rows.to(dtype).view(-1, self.value.num_heads, self.value.head_dim).transpose(0, 1)

    def by_row(self, x: Tensor, which: str) -> Tensor:
        """``x`` with every projected row, ``(batch, heads, tokens, rows)``, scaled."""
        check_width(x, self.value.head_dim)
        if x.shape[1] != self.value.num_heads:
            raise ShapeError(f"q and k have {self.value.num_heads} heads", tuple(x.shape))
        dtype = wide(x.dtype)
        return self.scale * self.logit_scale * (x.to(dtype) @ self.projected(which, dtype).transpose(-1, -2))

    def bias(self, q: Tensor, k: Tensor, q_at: Positions | Tensor, k_at: Positions | Tensor) -> Tensor:
        """The two terms."""
        step, found = distances(q_at, k_at), []
        if self.value.content_to_position:
            found.append(picked(self.by_row(q, "key"), self.index(step)))
        if self.value.position_to_content:
            rows = self.index(-step if self.value.as_printed else step).transpose(-1, -2)
            found.append(picked(self.by_row(k, "query"), rows).transpose(-1, -2))
        return found[0] if len(found) == 1 else found[0] + found[1]

    def score_mod(
        self,
        q_at: Positions | Tensor | None = None,
        k_at: Positions | Tensor | None = None,
        *,
        q: Tensor | None = None,
        k: Tensor | None = None,
    ) -> ScoreMod:
        """For ``flex_attention``.

        Args:
            q_at, k_at: positions of queries and keys; their indices unless given.
            q, k: what attention gets; its ``scale`` is ``logit_scale / sqrt(head_dim)``.
        """
        to_position = self.by_row(needed(q), "key") if self.value.content_to_position else None
        to_content = self.by_row(needed(k), "query") if self.value.position_to_content else None
        query, key = lookup(q_at), lookup(k_at)

        def modify(score: Tensor, batch: Tensor, head: Tensor, q_index: Tensor, k_index: Tensor) -> Tensor:
            step, found = query(batch, head, q_index) - key(batch, head, k_index), score
            if to_position is not None:
                found = found + to_position[batch, head, q_index, self.index(step)]
            if to_content is not None:
                back = -step if self.value.as_printed else step
                found = found + to_content[batch, head, k_index, self.index(back)]
            return found.to(score.dtype)

        return modify


builds("disentangled")(DisentangledScores.from_value)
