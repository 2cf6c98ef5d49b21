"""Axes: which coordinate (time, height, width) turns which pair. Without axes there is one coordinate."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from posenc.spec.value import Value, Width

Pairs = Annotated[tuple[Width, ...], Field(min_length=1, max_length=16)]
Coordinates = Literal["index", "unit"]
"""``index``: row and column numbers. ``unit``: centres of the cells on a grid stretched over [-1, 1] (DINOv3)."""


class Split(Value):
    """Axis ``j`` turns ``pairs[j]`` consecutive pairs.

    Args:
        pairs: number of pairs of each axis, in channel order.
        own_schedule: each axis starts a schedule of its own over its own width (axial, FLUX); otherwise one schedule
            runs through all pairs and the axes cut it into sections (M-RoPE, Qwen2-VL).
        coordinates: what a coordinate is.
    """

    kind: Literal["split"] = "split"
    pairs: Pairs
    own_schedule: bool = True
    coordinates: Coordinates = "index"

    @property
    def cites(self) -> tuple[str, ...]:  # type: ignore[override]
        """Sections of one schedule are M-RoPE's."""
        return () if self.own_schedule else ("wang2024qwen2vl",)


class Interleave(Value):
    """Pair ``i`` belongs to axis ``i % n`` while that axis has pairs left, else to axis 0 (Qwen3-VL's M-RoPE)."""

    kind: Literal["interleave"] = "interleave"
    pairs: Pairs
    coordinates: Coordinates = "index"
    cites: ClassVar[tuple[str, ...]] = ("bai2025qwen3vl",)


class Mixed(Value):
    """Every pair turns with all axes: ``angle = sum_a theta[head, a, i] * position_a``, a direction per pair and head.

    The first half of the pairs point along a random direction of the head, the second half at right angles to it;
    each half carries its own schedule (RoPE-Mixed, Heo et al. 2024, the trained parameters' start).
    """

    kind: Literal["mixed"] = "mixed"
    heads: Width
    axes: Annotated[int, Field(ge=2, le=2)] = 2
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    coordinates: Coordinates = "index"
    cites: ClassVar[tuple[str, ...]] = ("heo2024",)


Axes = Annotated[Split | Interleave | Mixed, Field(discriminator="kind")]
