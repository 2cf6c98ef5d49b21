"""Rotary: every kind of it as one module, prepared once per model forward and shared by the layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from posenc.errors import ShapeError, SpecError
from posenc.formulas.spectrum import Frequencies
from posenc.nn import _ops
from posenc.nn.building import builds
from posenc.nn.derived import Derived, may_look
from posenc.nn.interfaces import Positions, QueryKeyEncoding, as_positions
from posenc.nn.lengths import LengthFrom, Lengths
from posenc.nn.rotary_functions import Layout, turn
from posenc.nn.rotations import Rotation, XposRotation, check_fits, opposite
from posenc.nn.turns import check_ids, cos_sin, exact_on, over_axes, phases
from posenc.spec import Geometric, Mixed, Rotary

LARGEST_EXPONENT = 87.0
"""float32 holds e^-87 to e^88 in full precision."""


class RotaryEmbedding(Derived, QueryKeyEncoding):
    """Turns each pair of query and key channels by ``position * theta`` (Su et al. 2021, equation 34).

    Angles are exact for integer positions up to 1e9 and beyond (:mod:`posenc.nn.turns`), cosines are rounded once to
    float32, and half-precision queries are turned in float32 and rounded once. There are no buffers.

    Args:
        head_dim: channels of a head.
        base: base of the geometric schedule.
        rotary_dim: channels that are rotated; all of them unless given.
        interleaved: pairs ``(2i, 2i + 1)`` if true, ``(i, i + rotary_dim / 2)`` if false.
        scaling: one scaling or a chain of them (:mod:`posenc.spec`).
        where: whether the rotated channels come ``first`` or ``last`` in the head.
        keep: fraction of the pairs, from the fast end, that turn at all ("proportional", p-RoPE).
        axes: several coordinates (``Split``, ``Interleave``, ``Mixed``); positions then lead with the axes.
        schedule: any schedule instead of ``base`` and ``keep``.
        learned: train the frequencies. They start at the schedule's and stay positive:
            ``theta = start * exp(log_ratio)``; mixed axes train ``theta`` itself, whose signs are directions.
        xpos_scale_base: xPos (Sun et al. 2022): queries grow and keys shrink with position.
        xpos_centre: where xPos counts from; constant, so that cached keys stay right. Within
            ``88 * scale_base / 1.25`` positions of it, float32 holds the growth.
        length_from: whose declared length decides rules that depend on it, see :class:`posenc.nn.lengths.Lengths`.
        length: the length itself, for ``length_from="fixed"`` and ``"allocated"``.

    Raises:
        SpecError: the numbers make no encoding, see :class:`posenc.spec.Rotary`.

    >>> rope = RotaryEmbedding(4)
    >>> q = k = torch.ones(1, 1, 3, 4)
    >>> [round(v, 4) for v in rope(q, k, rope.prepare(torch.arange(3)))[0][0, 0, 1].tolist()]
    [-0.3012, 0.99, 1.3818, 1.0099]
    """

    value: Rotary

    def __init__(
        self,
        head_dim: int,
        base: float = 10000.0,
        *,
        rotary_dim: int | None = None,
        interleaved: bool = False,
        scaling: Any = (),
        where: Literal["first", "last"] = "first",
        keep: float = 1.0,
        axes: Any = None,
        schedule: Any = None,
        learned: bool = False,
        xpos_scale_base: float | None = None,
        xpos_centre: int = 0,
        length_from: LengthFrom = "row",
        length: int | None = None,
    ) -> None:
        if schedule is not None and (base != 10000.0 or keep != 1.0):
            raise SpecError("a rotary takes either a schedule, or base and keep", f"base={base:g}, keep={keep:g}")
        value = Rotary(
            head_dim,
            rotary_dim=head_dim if rotary_dim is None else rotary_dim,
            where=where,
            interleaved=interleaved,
            schedule=Geometric(base=float(base), keep=float(keep)) if schedule is None else schedule,
            axes=axes,
            scaling=tuple(scaling) if isinstance(scaling, Sequence) else (scaling,),
            learned=learned,
            xpos_scale_base=None if xpos_scale_base is None else float(xpos_scale_base),
        )
        self._from(value, length_from=length_from, length=length, xpos_centre=xpos_centre)

    @classmethod
    def from_value(cls, value: Rotary, **options: Any) -> RotaryEmbedding:
        """The module of a value; options: ``length_from``, ``length``, ``xpos_centre``.

        >>> from posenc.spec import parse
        >>> RotaryEmbedding.from_value(parse("rotary(8, base=5e5) >> linear(2)")[0]).value.pairs
        4
        """
        if not isinstance(value, Rotary):
            raise SpecError("a RotaryEmbedding is made from a rotary", getattr(value, "kind", type(value).__name__))
        module = cls.__new__(cls)
        module._from(value, **options)
        return module

    def _from(
        self,
        value: Rotary,
        *,
        length_from: LengthFrom = "row",
        length: int | None = None,
        xpos_centre: int = 0,
    ) -> None:
        nn.Module.__init__(self)
        if value.xpos_scale_base is not None and value.axes is not None:
            raise SpecError("xPos is defined for one axis", str(value))
        self.value = value
        self.lengths = Lengths(value, length_from, length)
        self.xpos_centre = xpos_centre
        first = value.head_dim - value.rotary_dim if value.where == "last" else 0
        self.layout = Layout(first, value.pairs, value.interleaved)
        self.mode = _ops.mode_of(self.layout, value.head_dim)
        self._quick = not (value.learned or self.lengths.depends or self.lengths.grows or self.axes > 1)
        self.derive_now()
        if value.learned:
            if isinstance(value.axes, Mixed):
                self.theta = nn.Parameter(torch.empty(value.axes.heads, self.axes, value.pairs))
            else:
                self.log_ratio = nn.Parameter(torch.empty(value.pairs))
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Trained frequencies back to the schedule's; for a module that was emptied on another device."""
        if not self.value.learned:
            return
        with torch.no_grad():
            if isinstance(self.value.axes, Mixed):
                start = torch.from_numpy(self.lengths.rule.at(None).theta.copy())
                self.theta.copy_(start.to(self.theta.device, self.theta.dtype))
            else:
                self.log_ratio.zero_()

    def derive(self) -> dict[str, Any]:
        return self.lengths.derive()

    @property
    def axes(self) -> int:
        """How many coordinates a position has."""
        return self.lengths.axes

    @property
    def logit_scale(self) -> float:
        """Factor on the softmax scale that comes with a scaling (DeepSeek's YaRN); attention multiplies its scale."""
        return self.lengths.logit_scale

    def frequencies(self, length: int | None = None) -> Frequencies:
        """The frequencies that turn now, trained ones included, for analysis."""
        found = self.lengths.rule.at(length)
        if not self.value.learned:
            return found
        if isinstance(self.value.axes, Mixed):
            return found.replace(theta=self.theta.detach().double().cpu().numpy())
        return found.replace(theta=found.theta * self.log_ratio.detach().double().cpu().exp().numpy())

    def prepare(self, at: Positions | Tensor, *, dtype: torch.dtype = torch.float32) -> Rotation | XposRotation:
        """Cosines and sines for positions, once per model forward.

        Args:
            at: positions, or ids alone: ``(tokens,)`` or ``(batch, tokens)``, led by the axes if there are several.
            dtype: of the result; float64 for checks.

        Returns:
            ``(cos, sin)``, each ``(batch | 1, heads | 1, tokens, pairs)`` with the gain; xPos has two more for keys.

        Raises:
            ShapeError: the positions have the wrong shape or type, or no length where a rule needs one.
        """
        at = as_positions(at, self.axes)
        if dtype is torch.float32 and self._quick and may_look(at.ids):
            fast = _ops.cos_sin(at.ids, self.numbers(at.ids.device)["turns"], float(self.lengths.gain))
            if fast is not None:
                return Rotation(*fast)
        phase, rest, gain = self.angles(at)
        cos, sin = cos_sin(phase, rest, exact=exact_on(at.ids.device, dtype))
        if self.lengths.grows:
            grown = self._grown(at.ids)
            up, down = grown * gain, gain / grown
            return XposRotation(*(part.to(dtype) for part in (cos * up, sin * up, cos * down, sin * down)))
        if isinstance(gain, Tensor) or gain != 1.0:
            cos, sin = cos * gain, sin * gain
        return Rotation(cos.to(dtype), sin.to(dtype))

    def angles(self, at: Positions) -> tuple[Tensor | None, Tensor | None, Tensor | float]:
        """Phases in 2^-64 turns (None: trained), radians beside them (None: whole positions), and the gain.

        Args:
            at: positions in their full shape (:func:`posenc.nn.interfaces.as_positions`).
        """
        check_ids(at.ids, may_look)
        ids = at.ids if self.axes > 1 else at.ids.unsqueeze(0)
        turns, theta, gain = self.lengths.chosen(at, self.numbers(ids.device))
        if self.value.learned:
            return None, over_axes(ids.to(theta.dtype), self._trained(theta)), gain
        return *phases(ids, turns, theta), gain

    def _trained(self, theta: Tensor) -> Tensor:
        if isinstance(self.value.axes, Mixed):
            return self.theta.to(theta.dtype).movedim(1, 0)[:, None, :, None, :]
        return theta * self.log_ratio.to(theta.dtype).exp()

    def _grown(self, ids: Tensor) -> Tensor:
        """xPos: ``exp(growth * (p - centre))``, how queries grow (Sun et al. 2022, equation 14)."""
        growth = self.numbers(ids.device)["growth"]
        steps = ids.unsqueeze(-1).to(growth.dtype) - self.xpos_centre
        if may_look(steps) and steps.numel():
            farthest = float(steps.abs().max())
            if farthest * float(growth.abs().max()) > LARGEST_EXPONENT:
                raise ShapeError(
                    "xPos grows within what float32 holds",
                    f"{farthest:g} positions from its centre {self.xpos_centre}",
                    "Choose xpos_centre amid the positions, or a larger xpos_scale_base.",
                )
        return (steps * growth).exp()

    def forward(
        self, q: Tensor, k: Tensor, ready: Any, out: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Queries and keys, turned.

        Args:
            q: ``(batch, heads, tokens, head_dim)``.
            k: the same with its own heads, which may be fewer.
            ready: what :meth:`prepare` returned for these tokens.
            out: where to write; ``out=(q, k)`` turns in place. Not with gradients.

        Returns:
            Queries and keys in their shapes and dtypes.

        Raises:
            ShapeError: shapes do not fit each other or the encoding.
        """
        done = _ops.two(q, k, ready, self.mode, out)
        if done is not None:
            return done
        out_q, out_k = (None, None) if out is None else out
        return self.rotate(q, ready, role="query", out=out_q), self.rotate(k, ready, role="key", out=out_k)

    def rotate(
        self, x: Tensor, ready: Any, *, role: Literal["query", "key"] = "query", out: Tensor | None = None
    ) -> Tensor:
        """Queries or keys alone; the role matters to xPos only."""
        cos, sin = ready[:2] if role == "query" else ready[-2:]
        done = _ops.one(x, cos, sin, self.mode, out)
        if done is not None:
            return done
        check_fits(x, ready, self.value.head_dim)
        return turn(x, cos, sin, self.layout, out)

    def inverse(
        self, q: Tensor, k: Tensor, ready: Any, out: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Undo :meth:`forward`, gain and growth included; arguments and result as there.

        >>> rope = RotaryEmbedding(4)
        >>> q, k, ready = torch.ones(1, 1, 3, 4), torch.zeros(1, 1, 3, 4), rope.prepare(torch.arange(3))
        >>> bool((rope.inverse(*rope(q, k, ready), ready)[0] - q).abs().max() < 1e-6)
        True
        """
        back = tuple(part for pair in (ready[:2], ready[-2:]) for part in opposite(*pair))
        out_q, out_k = (None, None) if out is None else out
        return (
            self.rotate(q, back, role="query", out=out_q),
            self.rotate(k, back, role="key", out=out_k),
        )

    def extra_repr(self) -> str:
        first, pairs, _ = self.layout
        ahead = f"{first} + " if first else ""
        pair = f"({ahead}2i, {ahead}2i + 1)" if self.layout.interleaved else f"({ahead}i, {ahead}i + {pairs})"
        text = f"{self.value}, pairs {pair}"
        if self.axes > 1:
            text += f", {self.axes} axes of {getattr(self.value.axes, 'coordinates', 'index')} coordinates"
        if self.lengths.depends:
            text += f", length from {self.lengths.length_from}"
        if self.lengths.length is not None:
            text += f", length {self.lengths.length}"
        if self.lengths.grows:
            text += f", centre {self.xpos_centre}"
        return text


@builds("rotary")
def build_rotary(value: Rotary, **options: Any) -> RotaryEmbedding:
    """The module of a rotary."""
    return RotaryEmbedding.from_value(value, **options)
