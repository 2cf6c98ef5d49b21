"""Sinusoids at the input: fixed (E1) and with trained frequencies (E4). Tables that are trained are in ``learned``."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from posenc.formulas.spectrum import unscaled, unscaled_remainder
from posenc.formulas.tables import COSINE, ZERO, channel_waves
from posenc.nn.derived import may_look, wrapped
from posenc.nn.learned import AdjustedSinusoid, LearnedTable
from posenc.nn.turns import cos_sin, exact_on, phases, turns_of
from posenc.nn.vectors import PositionVectors, registered
from posenc.spec import Sinusoidal, Value

MOST_KEPT = 2**24
"""Largest table, in numbers, that is kept for the next call."""


@registered
class SinusoidalEncoding(PositionVectors):
    """Sines and cosines of ``position * theta`` joined with the input (Vaswani et al. 2017, section 3.5).

    Every order, odd width and denominator of :class:`posenc.spec.Sinusoidal`; integer and real positions, so diffusion
    time steps are positions, too: ``SinusoidalEncoding(320, order="cos|sin").vectors(timesteps)``. Right to 1e9 and
    beyond. Nothing is trained or saved, and no length is the last: rows are computed, and kept while eager.

    Args:
        value: a width, a :class:`posenc.spec.Sinusoidal` or its notation; its fields may be given by name.
        options: of :class:`posenc.nn.vectors.PositionVectors` (``combine=``, ``content_scale=``, ``dropout=``…).

    Raises:
        SpecError: the value cannot exist.

    >>> pe = SinusoidalEncoding(4, base=10000.0)
    >>> pe(torch.zeros(1, 2, 4, dtype=torch.float64), torch.tensor([0, 3])).round(decimals=4).tolist()
    [[[0.0, 1.0, 0.0, 1.0], [0.1411, -0.99, 0.03, 0.9996]]]
    """

    kind: ClassVar[type[Value]] = Sinusoidal
    value: Sinusoidal

    def __init__(self, value: Any = None, **options: Any) -> None:
        super().__init__(value, **options)
        self._tables: dict[torch.device, Tensor] = {}
        if self.value.learned:
            places = {name: options[name] for name in ("device", "dtype") if name in options}
            self.log_ratio = nn.Parameter(torch.empty(self.value.pairs, **places))
            self.reset_parameters()

    @classmethod
    def from_value(cls, value: Any, **options: Any) -> Self:
        """The module of a value; trained frequencies make an :class:`AdaptiveSinusoid`."""
        return (AdaptiveSinusoid if getattr(value, "learned", False) else cls)(value, **options)  # type: ignore[return-value]

    def reset_parameters(self) -> None:
        """Trained frequencies at their start: ``theta = start * exp(log_ratio)`` with a ratio of 1."""
        if self.value.learned:
            nn.init.zeros_(self.log_ratio)

    def derive(self) -> dict[str, Any]:
        """Frequencies and turns ``(axes, 1, 1, pairs)``, and for each channel its place among sines, then cosines."""
        theta = unscaled(self.value).theta
        wave, pair = channel_waves(self.value)
        filled = wave != ZERO  # zero columns come last
        return {
            "theta": theta[:, None, None].copy(),
            "turns": turns_of(theta, unscaled_remainder(self.value))[:, None, None],
            "channel": (pair + np.where(wave == COSINE, self.value.pairs, 0))[filled],
        }

    @classmethod
    def axes_of(cls, value: Any) -> int:
        """Coordinates of a position."""
        return 1 if value.axes is None else len(value.axes.pairs)

    def theta(self, device: torch.device) -> Tensor:
        """Frequencies ``(axes, 1, 1, pairs)``, trained or not."""
        start = self.numbers(device)["theta"]
        return start * self.log_ratio.to(start.dtype).exp() if self.value.learned else start

    def rows(self, ids: Tensor, dtype: torch.dtype) -> Tensor:
        """``(batch | 1, tokens, dim)`` of ids ``(axes, batch | 1, tokens)``."""
        kept = self._kept(ids, dtype)
        return self._computed(ids, dtype) if kept is None else kept

    def _computed(self, ids: Tensor, dtype: torch.dtype) -> Tensor:
        numbers = self.numbers(ids.device)
        at = ids + self.value.offset if self.value.offset else ids
        if self.value.learned:
            theta = self.theta(ids.device)
            angle = (at.unsqueeze(-1).to(theta.dtype) * theta).sum(0)
            cos, sin = angle.cos(), angle.sin()
        else:
            phase, rest = phases(at, numbers["turns"], numbers["theta"])
            cos, sin = cos_sin(phase, rest, exact=exact_on(ids.device, dtype))
        found = torch.cat((sin, cos), -1).index_select(-1, numbers["channel"]).to(dtype)
        found = functional.pad(found, (0, self.dim - found.shape[-1]))
        if self.value.padding_row is not None:
            found = found * (at[0] != self.value.padding_row).unsqueeze(-1).to(dtype)
        return found

    def _kept(self, ids: Tensor, dtype: torch.dtype) -> Tensor | None:
        """Rows from a table that grows; None where rows are better computed."""
        plain = ids.shape[0] == 1 and not ids.is_floating_point() and dtype == torch.float32 and ids.numel() > 0
        if not plain or self.value.learned or not may_look(ids):
            return None
        low, high = (int(v) for v in torch.aminmax(ids))
        if low < 0 or (high + 1) * self.dim > MOST_KEPT:
            return None
        return functional.embedding(ids[0], self._table(high + 1, ids.device))

    def _table(self, length: int, device: torch.device) -> Tensor:
        """Rows 0 to at least ``length - 1`` in float32, kept; doubles when it grows."""
        table = self._tables.get(device)
        if table is None or len(table) < length:
            grown = min(max(length, 64 if table is None else 2 * len(table)), max(length, MOST_KEPT // self.dim))
            with torch.inference_mode(False), torch.no_grad():
                table = self._computed(torch.arange(grown, device=device)[None, None], torch.float32)[0]
            if type(table) is Tensor and not wrapped(table):
                self._tables[device] = table
        return table

    def first_vectors(self, tokens: int, device: torch.device, dtype: torch.dtype) -> Tensor:
        """Vectors of positions 0, 1, 2…; from the table where one may be kept."""
        keeps = not torch.compiler.is_compiling() and device.type != "meta" and dtype == torch.float32
        if keeps and self.axes == 1 and not self.value.learned and 0 < tokens * self.dim <= MOST_KEPT:
            rows = self._table(tokens, device)[None, :tokens]
            return rows if not self.prefix else torch.cat((self.prefix_rows(rows), rows), -2)
        return super().first_vectors(tokens, device, dtype)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_tables": {}}


class AdaptiveSinusoid(SinusoidalEncoding):
    """A sinusoid whose frequencies are trained: ``theta = start * exp(log_ratio)``, so they stay positive (E4).

    ``log_ratio`` ``(pairs,)`` starts at 0, the schedule exactly; weight decay draws the frequencies back to it. Angles
    are float64 products of position and frequency, right to 1e-7 at 1e9 as far as the frequency itself is.

    >>> AdaptiveSinusoid(8, base=100.0).value.learned
    True
    """

    def __init__(self, value: Any = None, **options: Any) -> None:
        named = {name: options.pop(name) for name in [n for n in options if n in _FIELDS]}
        made = self._value(value, named)
        super().__init__(made if made.learned else made.replace(learned=True), **options)


_FIELDS = {*Sinusoidal.model_fields, "base", "keep", "shift", "first"}

__all__ = ["AdaptiveSinusoid", "AdjustedSinusoid", "LearnedTable", "SinusoidalEncoding"]
