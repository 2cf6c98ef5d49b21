"""A selective rotary: angles are sums of increments that are read from the tokens."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from posenc.errors import ShapeError
from posenc.formulas.contextual import SMALL
from posenc.formulas.spectrum import scheduled
from posenc.nn.building import builds
from posenc.nn.channels import widest
from posenc.nn.contextual import check_tokens, linear, restarted
from posenc.nn.derived import Derived
from posenc.nn.interfaces import ContentEncoding, Positions, QueryKeyEncoding
from posenc.nn.relative import check_width
from posenc.nn.rotary_functions import Layout, turn
from posenc.nn.scores import value_of, wide
from posenc.spec import Geometric, SelectiveRotary


class SelectiveCarry(NamedTuple):
    """What tokens to come need of those before: the last increments, their documents, and the sums."""

    read: Tensor
    document: Tensor | None
    sums: Tensor


class SelectivePositions(Derived, ContentEncoding):
    """A rotary by sums of increments read from the tokens (Movahedi et al. 2025), with documents kept apart.

    Positions have one axis for each pair of channels; :attr:`applied` turns queries and keys by them.

    Args:
        value: a :class:`posenc.spec.SelectiveRotary`, its notation, or the width of the tokens; its fields by name.
        device, dtype: of what is trained.

    >>> selective = SelectivePositions(6, head_dim=4, num_heads=3)
    >>> at, carry = selective(torch.randn(2, 5, 6), Positions(torch.arange(5)))
    >>> at.ids.shape
    torch.Size([2, 2, 3, 5])
    """

    causal_only: ClassVar[bool] = True
    value: SelectiveRotary

    def __init__(
        self, value: Any = None, *, device: Any = None, dtype: torch.dtype | None = None, **fields: Any
    ) -> None:
        super().__init__()
        self.value = value_of(SelectiveRotary, value, fields)
        v = self.value
        places: dict[str, Any] = {"device": device, "dtype": dtype}
        self.derive_now()
        channels = v.num_heads * v.head_dim // 2
        self.down = nn.Linear(v.dim, v.rank, bias=False, **places)
        self.up = nn.Linear(v.rank, channels, bias=False, **places)
        self.kernel = nn.Parameter(torch.empty(channels, v.window, **places))
        self.applied = SelectiveTurn(v)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Layers as PyTorch starts them; the kernel uniform within ``1 / sqrt(window)``, as a convolution's."""
        self.down.reset_parameters()
        self.up.reset_parameters()
        nn.init.uniform_(self.kernel, -(self.value.window**-0.5), self.value.window**-0.5)

    def derive(self) -> dict[str, Any]:
        """Nothing: the frequencies are those of :attr:`applied`."""
        return {}

    def forward(self, x: Tensor, at: Positions, carry: Any = None) -> tuple[Positions, Any]:
        """Sums of increments ``(pairs, batch, heads, tokens)``, and a :class:`SelectiveCarry`.

        Args:
            x: ``(batch, tokens, dim)``.
            at: positions, of which the document counts.
            carry: of the tokens before.
        """
        check_tokens(x, self.value.dim)
        v, tokens = self.value, x.shape[1]
        shares = x.to(wide(x.dtype)).reshape(*x.shape[:2], v.num_heads, -1)
        unit = shares * (shares.square().sum(-1, keepdim=True) + SMALL).rsqrt()
        read = linear(self.up, linear(self.down, unit.flatten(-2))).transpose(1, 2)  # (batch, channels, tokens)
        before = read.new_zeros((*read.shape[:2], v.window - 1)) if carry is None else carry.read
        row = torch.cat((before, read), -1)
        document = None if at.document is None else _documents(at.document, carry, v.window - 1)
        steps = torch.zeros_like(read)
        for lag in range(v.window):
            part = row[..., v.window - 1 - lag : v.window - 1 - lag + tokens]
            if document is not None:  # a token reads no token of another document
                there = document[:, v.window - 1 - lag : v.window - 1 - lag + tokens]
                part = part * (there == document[:, v.window - 1 :]).unsqueeze(1)
            steps = steps + part * self.kernel[:, v.window - 1 - lag, None].to(part.dtype)
        sums = restarted(steps.to(widest(x.device)), at.document, None if carry is None else carry.sums)
        kept = None if document is None else document[:, tokens:]
        found = sums.view(sums.shape[0], v.num_heads, -1, tokens).movedim(2, 0)
        return at._replace(ids=found), SelectiveCarry(row[..., tokens:], kept, sums[..., -1:])

    def extra_repr(self) -> str:
        """The value in notation."""
        return str(self.value)


class SelectiveTurn(Derived, QueryKeyEncoding):
    """Turns pair ``i`` of queries and keys by ``theta_i`` times position ``i``; pairs ``(i, i + head_dim / 2)``."""

    value: SelectiveRotary

    def __init__(self, value: SelectiveRotary) -> None:
        super().__init__()
        self.value = value
        self.derive_now()

    def derive(self) -> dict[str, Any]:
        """Frequencies."""
        v = self.value
        return {"theta": scheduled(Geometric(base=v.base), v.head_dim // 2, v.head_dim).copy()}

    def prepare(self, at: Positions | Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines ``(batch, heads, tokens, pairs)`` of positions ``(pairs, batch, heads, tokens)``."""
        ids = at.ids if isinstance(at, Positions) else at
        angle = ids.movedim(0, -1) * self.numbers(ids.device)["theta"]
        return angle.cos(), angle.sin()

    def forward(
        self, q: Tensor, k: Tensor, ready: Any, out: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Queries and keys, turned; both have the encoding's heads."""
        for x in (q, k):
            check_width(x, self.value.head_dim)
            if x.shape[1] != self.value.num_heads:
                raise ShapeError(f"q and k have {self.value.num_heads} heads", tuple(x.shape))
        layout = Layout(0, self.value.head_dim // 2, False)
        to, also = (None, None) if out is None else out
        cos, sin = (part.to(wide(q.dtype)) for part in ready)
        return turn(q, cos, sin, layout, to), turn(k, cos, sin, layout, also)


def _documents(document: Tensor, carry: Any, before: int) -> Tensor:
    """Documents of the tokens and of those that the convolution still sees."""
    if carry is None or carry.document is None:
        old = document[:, :1].expand(-1, before)  # their increments are 0
    else:
        old = carry.document.expand(document.shape[0], -1)
    return torch.cat((old, document), -1)


@builds("selective_rotary")
def build_selective(value: SelectiveRotary, **options: Any) -> SelectivePositions:
    """The module of a selective rotary."""
    return SelectivePositions(value, **options)
