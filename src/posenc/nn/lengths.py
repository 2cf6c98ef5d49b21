"""Which frequencies a row gets when they depend on its length: decided by a declared length, never by hidden state.

Engines differ in whose length counts. transformers takes the largest position of the batch, so a row's numbers change
with its neighbours and a cache's with every token; vLLM fixes the choice when it starts; llama.cpp takes the size of
the allocated cache. By default each row has its own declared length, constant for its cache's life: only then is a row
alone the same as in a batch, and token by token the same as in one pass.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from posenc.errors import ShapeError, SpecError
from posenc.formulas.scalings import Fixed, Power, Select, length_rule, ntk_exponents
from posenc.formulas.spectrum import Array, unscaled_remainder
from posenc.nn.derived import may_look
from posenc.nn.interfaces import Positions
from posenc.nn.turns import turns_at, turns_of
from posenc.spec import Mixed, Rotary

LengthFrom = Literal["row", "batch", "allocated", "fixed"]


class Lengths:
    """The frequencies of a rotary as tensors, and the choice between them.

    Args:
        value: the encoding.
        length_from: ``row``: each row's declared length. ``batch``: the largest of them, or of the positions plus one
            where none is declared (transformers). ``allocated``: one number for all rows, here or with the positions.
            ``fixed``: ``length``, once and for all. Without effect on encodings that do not depend on a length.
        length: for ``allocated`` and ``fixed``.

    Raises:
        SpecError: an unknown choice, or a length that is missing or not asked for.
    """

    def __init__(self, value: Rotary, length_from: LengthFrom = "row", length: int | None = None) -> None:
        if length_from not in get_args(LengthFrom):
            raise SpecError(f"length_from is one of {', '.join(get_args(LengthFrom))}", length_from)
        if length is not None and (type(length) is not int or length < 1):
            raise SpecError("a declared length is a whole number of at least 1", length)
        if length is not None and length_from not in ("fixed", "allocated"):
            raise SpecError(
                'a length belongs to length_from="fixed" or "allocated"',
                f"length={length} with {length_from}",
                "Declare a row's length with its positions: Positions(ids, length).",
            )
        if length is None and length_from == "fixed" and value.needs_length:
            raise SpecError('length_from="fixed" needs length=', str(value))
        self.value, self.length_from, self.length = value, length_from, length
        rule = self.rule
        self.select_at = rule.threshold if isinstance(rule, Select) else None
        self.power = (rule.factor, rule.original) if isinstance(rule, Power) else None
        self.by_hand = isinstance(rule, Power) and bool(rule.after)
        first = rule.at(None)
        self.axes, self.logit_scale = first.axes, first.logit_scale
        self.grows = bool(first.growth.any())
        self.gain = first.gain

    @property
    def rule(self) -> Fixed | Select | Power:
        """The formula's rule; a fixed or allocated length has decided it."""
        rule = length_rule(self.value)
        return rule if self.length is None else Fixed(rule.at(self.length))

    @property
    def depends(self) -> bool:
        """Whether positions must say how long their rows are."""
        return self.select_at is not None or self.power is not None

    def derive(self) -> dict[str, Array]:
        """``theta`` and ``turns`` ``(choices, axes, 1, heads | 1, 1, pairs)``, ``gain`` ``(choices,)``, ``growth``."""
        rule = self.rule
        found = [rule.short, rule.long] if isinstance(rule, Select) else [rule.at(None)]
        if isinstance(rule, Power):
            found = [rule.frequencies]
        exact = not self.value.scaling and not isinstance(self.value.axes, Mixed)
        rest = unscaled_remainder(self.value)[None] if exact else None
        turns = turns_of([f.theta for f in found], rest)
        return {
            "theta": _spread(found[0].theta, [f.theta for f in found]),
            "turns": _spread(found[0].theta, turns),
            "gain": _float64([f.gain for f in found]),
            "growth": _float64(found[0].growth),
            "exponents": _float64(_exponents(rule)),
        }

    def chosen(self, at: Positions, numbers: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor | float]:
        """``turns`` and ``theta`` ``(axes, batch | 1, heads | 1, tokens | 1, pairs)``, and the gain, for these rows."""
        turns, theta = numbers["turns"], numbers["theta"]
        if not self.depends:
            return turns[0], theta[0], self.gain
        length = self.declared(at)[:, None, :, None]  # (batch | 1, 1, tokens | 1, 1)
        if self.select_at is not None:
            far = length > self.select_at
            gain = torch.where(far, numbers["gain"][1], numbers["gain"][0])
            return torch.where(far, turns[1], turns[0]), torch.where(far, theta[1], theta[0]), gain
        if self.by_hand:
            return self._looked_up(length, theta.device)
        factor, original = self.power or (1.0, 1)
        longest = length.to(theta.dtype).clamp(min=original)
        stretch = factor * longest / original - (factor - 1)
        theta = theta[0] * (stretch.log() * numbers["exponents"]).exp()  # stretch^exponent
        return turns_at(theta), theta, self.gain

    def declared(self, at: Positions) -> Tensor:
        """The length that counts, ``(batch | 1, tokens | 1)``.

        Raises:
            ShapeError: none is declared, or not in the shape of rows.
        """
        length = at.length
        if length is None:
            if self.length_from == "batch":
                return (at.ids.detach().amax().floor().long() + 1).reshape(1, 1)
            raise ShapeError(
                f"{_depending(self.value)} depends on the length of a row",
                "positions without a length",
                'Declare it: Positions(ids, length), constant for a cache\'s life; or length_from="batch" or "fixed".',
            )
        if length.is_floating_point() or length.dtype == torch.bool or length.ndim > 2:
            raise ShapeError("length is (batch,) integers", f"{tuple(length.shape)} in {length.dtype}")
        length = length.reshape(-1, 1) if length.ndim < 2 else length
        if self.length_from == "batch":
            return length.amax().reshape(1, 1)
        if self.length_from == "allocated" and length.numel() != 1:
            raise ShapeError("an allocated length is one number for all rows", tuple(length.shape))
        tokens, batch = at.ids.shape[-1], at.ids.shape[-3]
        if length.shape[1] not in (1, tokens) or (1 != length.shape[0] != batch and batch != 1):
            raise ShapeError(f"length is ({batch},), one for each row of positions", tuple(length.shape))
        return length

    def _looked_up(self, length: Tensor, device: torch.device) -> tuple[Tensor, Tensor, Tensor | float]:
        """A chain that goes on after the rule is computed by the formula itself, one distinct length at a time."""
        if not may_look(length):
            raise SpecError(
                "a chain that goes on after a rule for lengths is computed eagerly on the CPU", str(self.value)
            )
        distinct, which = torch.unique(length, return_inverse=True)
        found = [self.rule.at(int(n)) for n in distinct]
        theta = torch.from_numpy(_spread(found[0].theta, [f.theta for f in found]))
        turns = torch.from_numpy(_spread(found[0].theta, turns_of([f.theta for f in found])))
        gain = torch.tensor([f.gain for f in found], dtype=torch.float64)[which]
        pick = which.reshape(length.shape[0], length.shape[2])
        return _by_row(turns, pick), _by_row(theta, pick), gain.reshape(length.shape)

    def __getstate__(self) -> tuple[Any, ...]:
        return self.value, self.length_from, self.length

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.__init__(*state)  # type: ignore[misc]


def _spread(shape: Array, values: Any) -> Any:
    """``(choices, axes, 1, heads | 1, 1, pairs)`` from theta's own ``([heads], axes, pairs)`` for each choice."""
    array = np.asarray(values)
    array = array[:, None] if shape.ndim == 2 else array  # (choices, heads | 1, axes, pairs)
    return np.ascontiguousarray(np.moveaxis(array, 2, 1)[:, :, None, :, None, :])


def _by_row(values: Tensor, pick: Tensor) -> Tensor:
    """``(axes, batch, heads | 1, tokens | 1, pairs)``: each row's (and token's) own choice."""
    found = values[pick]  # (batch, tokens | 1, axes, 1, heads | 1, 1, pairs)
    return found.squeeze(5).squeeze(3).permute(2, 0, 3, 1, 4)


def _exponents(rule: Any) -> Any:
    if not isinstance(rule, Power):
        return [0.0]
    return ntk_exponents(int(rule.frequencies.dim or 0), rule.frequencies.pairs)


def _float64(values: Any) -> Array:
    return np.array(values, dtype=np.float64)


def _depending(value: Rotary) -> str:
    return next((s.kind for s in value.scaling if getattr(s, "needs_length", False)), "a scaling")
