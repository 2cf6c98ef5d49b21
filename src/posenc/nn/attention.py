"""Multi-head attention that takes any position encoding, or several: readable, and fused where it can be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from posenc.errors import ShapeError, SpecError
from posenc.nn.building import build
from posenc.nn.channels import Channels
from posenc.nn.interfaces import ContentEncoding, Positions, QueryKeyEncoding, ScoreEncoding
from posenc.nn.scores import AddedScore, wide
from posenc.nn.visibility import joined, placed, visible
from posenc.spec import Value, parse


class Cache(NamedTuple):
    """What later tokens need of earlier ones; an argument and a result, never a state.

    Args:
        k, v: keys with their encodings, and values, ``(batch, kv_heads, tokens, width)``.
        at: positions of these tokens.
        carries: of the content encodings, in order.

    >>> _, cache = Attention(12, 3)(torch.ones(2, 5, 12))
    >>> cache.k.shape
    torch.Size([2, 3, 5, 4])
    """

    k: Tensor
    v: Tensor
    at: Positions
    carries: tuple[Any, ...] = ()


class Attention(nn.Module):
    """Self-attention with any encodings of queries, keys, scores and content.

    Encodings that only change queries and keys run on PyTorch's fused attention without a mask where nothing is hidden
    but the future; biases run on it as a mask; what needs the scores or the weights is computed in the open.

    Args:
        dim: width of the tokens.
        num_heads: heads of the queries.
        encodings: values, modules, or one line of notation (``"rotary(64) + alibi(12)"``); none is no position.
        kv_heads: heads of keys and values; each serves ``num_heads / kv_heads`` query heads in a row.
        head_dim: width of a head; ``dim / num_heads`` unless given.
        causal: whether tokens see no later ones.
        window: tokens that a token sees, itself and those before.
        chunk: tokens see only their own chunk of this many positions (Llama 4).
        scale: the softmax scale; ``1 / sqrt(head_dim)`` unless given (T5: 1).
        bias: whether the four projections have one.
        dropout: probability of dropping a weight while training.
        channels: let biases enter as channels where that is exact, instead of as matrices.
        device, dtype: of what is trained.

    Raises:
        SpecError: an encoding enters at the input, needs causal attention, or numbers do not divide.

    >>> attend = Attention(12, 3, "rotary(4)", kv_heads=1)
    >>> x = torch.randn(2, 5, 12)
    >>> whole, _ = attend(x)
    >>> first, cache = attend(x[:, :3])
    >>> rest, cache = attend(x[:, 3:], cache=cache)
    >>> bool((torch.cat((first, rest), 1) - whole).abs().max() < 1e-5)
    True
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        encodings: Any = (),
        *,
        kv_heads: int | None = None,
        head_dim: int | None = None,
        causal: bool = True,
        window: int | None = None,
        chunk: int | None = None,
        scale: float | None = None,
        bias: bool = False,
        dropout: float = 0.0,
        channels: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        kv_heads = num_heads if kv_heads is None else kv_heads
        if num_heads < 1 or kv_heads < 1 or num_heads % kv_heads:
            raise SpecError("num_heads is a multiple of kv_heads", f"{num_heads} and {kv_heads}")
        if head_dim is None and dim % num_heads:
            raise SpecError("num_heads divides dim, or head_dim is given", f"dim={dim}, num_heads={num_heads}")
        for name, number in (("window", window), ("chunk", chunk)):
            if number is not None and number < 1:
                raise SpecError(f"a {name} is at least 1", number)
        self.dim, self.num_heads, self.kv_heads = dim, num_heads, kv_heads
        self.head_dim = dim // num_heads if head_dim is None else head_dim
        self.causal, self.window, self.chunk, self.dropout = causal, window, chunk, dropout
        places: dict[str, Any] = {"device": device, "dtype": dtype}
        modules = [_module(e, scale, channels, places) for e in _listed(encodings)]
        self.query_key = nn.ModuleList(m for m in modules if isinstance(m, QueryKeyEncoding))
        self.score = nn.ModuleList(m for m in modules if isinstance(m, ScoreEncoding))
        self.content = nn.ModuleList(m for m in modules if isinstance(m, ContentEncoding))
        if not causal and any(getattr(m, "causal_only", False) for m in modules):
            raise SpecError("positions made from the content need causal attention", [str(m.value) for m in modules])
        self.added = all(isinstance(m, AddedScore) and not m.in_values for m in self.score)
        own = 1 / math.sqrt(self.head_dim) if scale is None else scale
        self.scale = own * math.prod(getattr(m, "logit_scale", 1.0) for m in modules)
        self.q = nn.Linear(dim, num_heads * self.head_dim, bias=bias, **places)
        self.k = nn.Linear(dim, kv_heads * self.head_dim, bias=bias, **places)
        self.v = nn.Linear(dim, kv_heads * self.head_dim, bias=bias, **places)
        self.out = nn.Linear(num_heads * self.head_dim, dim, bias=bias, **places)

    def prepare(self, at: Positions | Tensor) -> tuple[Any, ...]:
        """What layers with equal encodings share, once per model forward; for ``ready``."""
        return tuple(e.prepare(at) for e in _all(self.query_key))

    def forward(
        self,
        x: Tensor,
        at: Positions | Tensor | None = None,
        cache: Cache | None = None,
        *,
        mask: Tensor | None = None,
        ready: tuple[Any, ...] | None = None,
    ) -> tuple[Tensor, Cache]:
        """The result for these tokens, and the cache for the next ones.

        Args:
            x: ``(batch, tokens, dim)``.
            at: positions of these tokens; by default they go on from the cache, or count each row's own from 0.
            cache: of the tokens before.
            mask: ``(batch, tokens)`` of these tokens, 0 for padding.
            ready: what :meth:`prepare` returned for these positions, if layers share it.

        Returns:
            ``(batch, tokens, dim)`` and a :class:`Cache`.

        Raises:
            ShapeError: shapes do not fit.
            SpecError: a cache without causal attention.
        """
        if x.ndim != 3 or x.shape[-1] != self.dim:
            raise ShapeError(f"tokens are (batch, tokens, {self.dim})", tuple(x.shape))
        if cache is not None and not self.causal:
            raise SpecError("a cache needs causal attention: earlier tokens do not see later ones", "causal=False")
        before = None if cache is None else cache.at
        q_at = placed(x.shape[1], at, mask, before, x.device)
        q, k, v = (layer(x).unflatten(-1, (-1, self.head_dim)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        q, k, carries = self._encoded(x, q, k, q_at, cache, ready)
        if cache is not None:
            k, v = torch.cat((cache.k, k), 2), torch.cat((cache.v, v), 2)
        k_at = joined(before, q_at)
        result = self._attend(q, k, v, q_at, k_at, whole=cache is None)
        return self.out(result.transpose(1, 2).flatten(-2)), Cache(k, v, k_at, carries)

    def _encoded(
        self, x: Tensor, q: Tensor, k: Tensor, at: Positions, cache: Cache | None, ready: tuple[Any, ...] | None
    ) -> tuple[Tensor, Tensor, tuple[Any, ...]]:
        """Queries and keys with every encoding that enters there: turned and scaled first, then widened."""
        ready = self.prepare(at) if ready is None else ready
        if len(ready) != len(self.query_key):
            raise ShapeError(f"ready holds one item for each of {len(self.query_key)} encodings", len(ready))
        steps, carries = list(zip(_all(self.query_key), ready, strict=True)), []
        for i, encoding in enumerate(_all(self.content)):
            where, carry = encoding(x, at, None if cache is None else cache.carries[i])
            steps.append((encoding.applied, encoding.applied.prepare(where)))
            carries.append(carry)
        for encoding, prepared in steps:
            if not isinstance(encoding, Channels):
                q, k = encoding(q, k, prepared)
        extra = [e.channels(q, k, p, e.scale or self.scale) for e, p in steps if isinstance(e, Channels)]
        if extra:
            q, k = (torch.cat((*more, own), -1) for own, more in zip((q, k), zip(*extra, strict=True), strict=True))
        return q, k, tuple(carries)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, q_at: Positions, k_at: Positions, *, whole: bool) -> Tensor:
        """Weights times values, ``(batch, heads, tokens, head_dim)``."""
        plain = self.window is None and self.chunk is None and q_at.document is None
        first = self.causal and plain and whole and not len(self.score)  # only the future is hidden
        seen = None if first else visible(q_at, k_at, causal=self.causal, window=self.window, chunk=self.chunk)
        if not len(self.score):
            return self._fused(q, k, v, seen, first)
        k_all = k.repeat_interleave(self.num_heads // self.kv_heads, 1)
        own_q, own_k = q[..., -self.head_dim :], k_all[..., -self.head_dim :]  # channels of biases come first
        if self.added:
            bias: Tensor = sum(e.bias(own_q, own_k, q_at, k_at) for e in _all(self.score))
            if seen is not None:
                bias = bias.masked_fill(~seen, -torch.inf)
            return self._fused(q, k, v, bias, False)
        scores = self.scale * (q.to(wide(q.dtype)) @ k_all.to(wide(q.dtype)).transpose(-1, -2))
        if seen is not None:
            scores = scores.masked_fill(~seen, -torch.inf)
        for encoding in _all(self.score):
            scores = encoding(scores, own_q, own_k, q_at, k_at)
        weights = functional.dropout(scores.softmax(-1), self.dropout, self.training)
        result = weights @ v.repeat_interleave(self.num_heads // self.kv_heads, 1).to(weights.dtype)
        for encoding in _all(self.score):
            if getattr(encoding, "in_values", False):
                result = result + encoding.values(weights, q_at, k_at)
        return result.to(v.dtype)

    def _fused(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """PyTorch's attention; values as wide as keys, which its fast path on the CPU asks for."""
        width = v.shape[-1]
        result = functional.scaled_dot_product_attention(
            q,
            k,
            functional.pad(v, (0, k.shape[-1] - width)),
            attn_mask=mask,
            is_causal=causal,
            scale=self.scale,
            dropout_p=self.dropout if self.training else 0.0,
            enable_gqa=self.num_heads != self.kv_heads,
        )
        return result[..., :width]

    def extra_repr(self) -> str:
        text = f"{self.dim}, {self.num_heads} heads of {self.head_dim}"
        if self.kv_heads != self.num_heads:
            text += f", {self.kv_heads} of keys and values"
        text += ", causal" if self.causal else ", both directions"
        text += "".join(f", {n} {getattr(self, n)}" for n in ("window", "chunk") if getattr(self, n) is not None)
        return text


def _all(modules: nn.ModuleList) -> list[Any]:
    """Modules with what they define."""
    return list(modules)


def _listed(encodings: Any) -> Sequence[Any]:
    """Values and modules, from one, several, or notation."""
    if isinstance(encodings, str):
        return parse(encodings)
    if isinstance(encodings, Value | nn.Module) and not isinstance(encodings, nn.ModuleList):
        return (encodings,)
    return [each for e in encodings for each in (parse(e) if isinstance(e, str) else (e,))]


def _module(encoding: Any, scale: float | None, channels: bool, places: dict[str, Any]) -> nn.Module:
    """The module of a value; a module as it is."""
    if not isinstance(encoding, nn.Module):
        if getattr(encoding, "enters", None) == "input":
            raise SpecError(
                "attention takes encodings of queries, keys, scores and content",
                str(encoding),
                "Put it before the first layer.",
            )
        encoding = build(encoding, **options_for(encoding, scale, channels, places))
    if not isinstance(encoding, QueryKeyEncoding | ScoreEncoding | ContentEncoding):
        raise SpecError("attention takes encodings of queries, keys, scores and content", type(encoding).__name__)
    return encoding


SCALED = ("shaw", "relative_sinusoid", "transformer_xl", "disentangled")
UNTRAINED = ("rotary", "query_scale", "relative_sinusoid")


def options_for(value: Any, scale: float | None, channels: bool, places: dict[str, Any]) -> dict[str, Any]:
    """What a value's module is built with inside attention."""
    kind, options = getattr(value, "kind", None), {}
    if kind in SCALED and scale is not None:
        options["scale"] = scale
    as_channels = channels and kind in ("alibi", "sandwich", "sinusoidal_bias")
    if as_channels and not getattr(value, "symmetric", False) and getattr(value, "limit", None) is None:
        options["channels"] = True
        return options if kind == "alibi" else {**options, **places}
    return options if kind in UNTRAINED else {**options, **places}
