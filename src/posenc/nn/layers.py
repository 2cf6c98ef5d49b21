"""A model's positions as modules: each kind of layer once, and which layer is of which kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from posenc.errors import SpecError
from posenc.nn.attention import options_for
from posenc.nn.building import build
from posenc.nn.interfaces import Positions, QueryKeyEncoding
from posenc.spec import ModelPositions


class KindEncodings(nn.Module):
    """The encodings of one kind of layer; empty for no position (NoPE).

    Args:
        name: what the model calls the kind.
        encodings: modules that enter at queries, keys, scores or content.
        window: tokens that a token sees, or None.
        chunk: positions of a chunk that attention stays in, or None.
    """

    def __init__(
        self, name: str, encodings: list[nn.Module], window: int | None = None, chunk: int | None = None
    ) -> None:
        super().__init__()
        self.name, self.window, self.chunk = name, window, chunk
        self.encodings = nn.ModuleList(encodings)

    def prepare(self, at: Positions | Tensor) -> tuple[Any, ...]:
        """What the kind's layers share, once per model forward; ``ready`` of :class:`posenc.nn.attention.Attention`."""
        return tuple(e.prepare(at) for e in self.encodings if isinstance(e, QueryKeyEncoding))

    def extra_repr(self) -> str:
        shown = [f"{n}={getattr(self, n)}" for n in ("window", "chunk") if getattr(self, n) is not None]
        return ", ".join([repr(self.name), *shown, *([] if len(self.encodings) else ["no position"])])


class LayerEncodings(nn.Module):
    """Every encoding of a model: ``input`` once with the embeddings, then one :class:`KindEncodings` for each layer.

    Layers of one kind share its module, so that cosines are made once and trained tables once (T5). Equal encodings of
    different kinds are one module, too, unless something in them is trained.

    Args:
        value: the model's positions.
        layers: number of layers, where the value does not say.
        channels: biases as channels where that is exact.
        each_layer: give every layer whose encodings train anything its own.
        device, dtype: of what is trained.

    Raises:
        SpecError: no number of layers is known, or no module computes an encoding.

    >>> from posenc.spec import LayerKind, ModelPositions, Rotary
    >>> kinds = (LayerKind(name="rotary", encodings=(Rotary(8),), window=4), LayerKind(name="nope"))
    >>> model = LayerEncodings(ModelPositions(kinds=kinds, layers=(0, 0, 0, 1)))
    >>> [kind.name for kind in model], model[0] is model[2]
    (['rotary', 'rotary', 'rotary', 'nope'], True)
    """

    def __init__(
        self,
        value: ModelPositions,
        *,
        layers: int | None = None,
        channels: bool = False,
        each_layer: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        pattern = value.layers or ((0,) * (layers or 0) if len(value.kinds) == 1 else ())
        if not pattern or layers not in (None, len(pattern)):
            raise SpecError("the number of layers is known", f"{len(pattern)} in the value, layers={layers}")
        self.value, places = value, {"device": device, "dtype": dtype}
        self.input = nn.ModuleList(build(e) for e in value.input)
        shared: dict[Any, nn.Module] = {}

        def made(encoding: Any) -> nn.Module:
            if encoding not in shared:
                module = build(encoding, **options_for(encoding, None, channels, places))
                if next(module.parameters(), None) is not None:
                    return module
                shared[encoding] = module
            return shared[encoding]

        def kind(index: int) -> KindEncodings:
            k = value.kinds[index]
            return KindEncodings(k.name, [made(e) for e in k.encodings], k.window, k.chunk)

        kinds = [kind(i) for i in range(len(value.kinds))]
        trained = [next(k.parameters(), None) is not None for k in kinds]
        if each_layer:
            rows = [kind(i) if trained[i] and i in pattern[:n] else kinds[i] for n, i in enumerate(pattern)]
        else:
            rows = [kinds[i] for i in pattern]
        self.kinds = nn.ModuleList(dict.fromkeys(rows))
        self.layers = tuple(next(n for n, k in enumerate(self.kinds) if k is row) for row in rows)

    def prepare(self, at: Positions | Tensor) -> tuple[tuple[Any, ...], ...]:
        """For each layer its ``ready``; each kind is prepared once.

        Args:
            at: positions, or ids alone: ``(tokens,)`` or ``(batch, tokens)``.
        """
        ready = [k.prepare(at) for k in self.kinds]  # type: ignore[operator]
        return tuple(ready[n] for n in self.layers)

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, layer: int) -> KindEncodings:
        return self.kinds[self.layers[layer]]  # type: ignore[return-value]

    def __iter__(self) -> Iterator[KindEncodings]:
        return (self[n] for n in range(len(self)))


def from_model(value: ModelPositions, **options: Any) -> LayerEncodings:
    """The encodings of each layer of a model; options of :class:`LayerEncodings`.

    >>> from posenc.spec import ModelPositions, T5Bias
    >>> t5 = from_model(ModelPositions.uniform(T5Bias(2), layers=3))
    >>> sum(p.numel() for p in t5.parameters())
    64
    """
    return LayerEncodings(value, **options)
