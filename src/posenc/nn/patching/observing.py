"""What form a rotary submodule returns its cosines and sines in, learned by asking it for a few positions.

The submodule is copied first (its frequencies may depend on what it saw last) and runs on the CPU; one on the meta
device is made anew from its config.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from posenc.errors import SubjectError, shown
from posenc.nn.patching.finding import Found

ASKED = (0, 1, 2, 5)
ASKED_APART = ((0, 1, 2, 5), (0, 2, 5, 1), (0, 5, 1, 2))
"""Positions by axis, for encodings with several."""

Columns = Literal["half", "repeat", "single", "complex"]


@dataclass(frozen=True)
class Form:
    """How cosines and sines come out.

    Args:
        columns: pair ``i`` in columns ``i`` and ``i + pairs`` (half), ``2i`` and ``2i + 1`` (repeat), ``i`` alone
            (single), or one complex tensor.
        sine_first: ``(sin, cos)`` instead of ``(cos, sin)``.
        follows: whether their dtype is that of ``x``; otherwise it is float32.
    """

    columns: Columns
    sine_first: bool = False
    follows: bool = True

    def lay_out(self, cos: Tensor, sin: Tensor, dtype: torch.dtype) -> Any:
        """``(batch, tokens, pairs)`` each, in the form that the model expects."""
        if self.columns == "complex":
            return torch.complex(cos, sin)
        if self.follows:
            cos, sin = cos.to(dtype), sin.to(dtype)
        if self.columns == "half":
            cos, sin = torch.cat((cos, cos), -1), torch.cat((sin, sin), -1)
        elif self.columns == "repeat":
            cos, sin = cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
        return (sin, cos) if self.sine_first else (cos, sin)


@dataclass(frozen=True)
class Observed:
    """A submodule's answer for one layer type.

    Args:
        form: how it comes out.
        cos, sin: float64 ``(4, pairs)``, at the positions asked for.
        apart: the same with a position of its own for each axis; None where the submodule takes none.
        error: how far rounding alone may take its numbers from exact ones.
    """

    form: Form
    cos: Tensor
    sin: Tensor
    apart: tuple[Tensor, Tensor] | None
    error: float


def observe(found: Found, slot: str | None, pairs: int, axes: int = 1) -> Observed:
    """Ask a submodule for a few positions.

    Args:
        found: the submodule.
        slot: a layer type, or None.
        pairs: how many pairs its encoding has.
        axes: how many coordinates a position has.

    Raises:
        SubjectError: it cannot be asked, or answers in an unknown form.
    """
    try:
        module = _copied(found)
        with torch.no_grad(), torch.device("cpu"):
            plain = _ask(module, slot, torch.tensor([ASKED]), torch.float32)
            half = _ask(module, slot, torch.tensor([ASKED]), torch.bfloat16)
            apart = _ask(module, slot, torch.tensor(ASKED_APART)[:axes, None], torch.float32) if axes > 1 else None
    except Exception as error:  # the submodule is foreign code: whatever it raises is reported in one line
        raise SubjectError(
            f"the rotary submodule {found.path!r} returns cosines and sines for forward(x, position_ids)",
            f"{type(error).__name__}: {shown(str(error), 80)}",
        ) from None
    form = _form(found, plain, half, pairs)
    cos, sin = _single(plain, form, pairs)
    return Observed(form, cos, sin, None if apart is None else _single(apart, form, pairs), _rounding(module))


def _copied(found: Found) -> nn.Module:
    module = found.module
    if any(b.is_meta for b in module.buffers()):
        with torch.device("cpu"):
            return type(module)(found.config)
    kept = {id(value): value for value in vars(module).values() if hasattr(value, "to_dict")}  # configs are not copied
    return copy.deepcopy(module, kept).to("cpu")


def _ask(module: nn.Module, slot: str | None, ids: Tensor, dtype: torch.dtype) -> Any:
    x = torch.zeros(1, ids.shape[-1], 2, dtype=dtype)
    return module(x, ids) if slot is None else module(x, ids, slot)


def _form(found: Found, plain: Any, half: Any, pairs: int) -> Form:
    first = plain[0] if isinstance(plain, tuple) else plain
    width = first.shape[-1] if isinstance(first, Tensor) else None
    if isinstance(plain, Tensor) and plain.is_complex() and width == pairs:
        return Form("complex")
    if not isinstance(plain, tuple) or len(plain) != 2 or width not in (pairs, 2 * pairs) or first.ndim != 3:
        seen = f"{type(plain).__name__} of {tuple(first.shape) if isinstance(first, Tensor) else first}"
        raise SubjectError(f"the rotary submodule {found.path!r} returns cosines and sines of {pairs} pairs", seen)
    sine_first = not bool(first[0, 0].any())  # the sine of position 0 is 0, the cosine is the gain
    columns: Columns = "single"
    if width == 2 * pairs:
        columns = "half" if torch.equal(first[..., :pairs], first[..., pairs:]) else "repeat"
        if columns == "repeat" and not torch.equal(first[..., 0::2], first[..., 1::2]):
            raise SubjectError(f"the rotary submodule {found.path!r} gives both channels of a pair one angle")
    return Form(columns, sine_first, half[0].dtype == torch.bfloat16)


def _single(answer: Any, form: Form, pairs: int) -> tuple[Tensor, Tensor]:
    """One column for each pair, cosine first, float64."""
    if form.columns == "complex":
        return answer[0].real.double(), answer[0].imag.double()
    step = slice(0, None, 2) if form.columns == "repeat" else slice(0, pairs)
    first, second = (part[0, :, step].double() for part in answer)
    return (second, first) if form.sine_first else (first, second)


def _rounding(module: nn.Module) -> float:
    """A relative rounding of the frequencies turns the farthest position asked for by five times as much."""
    kinds = [b.dtype for b in module.buffers() if b.is_floating_point()]
    return 16 * max((torch.finfo(k).eps for k in kinds), default=torch.finfo(torch.float32).eps)
