"""What readers of additive and relative encodings share: bounded counts, image grids, and stacks of equal layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from posenc.errors import FormatError
from posenc.formats.huggingface.keys import REQUIRED, Keys
from posenc.records import Part
from posenc.spec import Encoding, LayerKind, ModelPositions

MAX_LAYERS = 2**16
Default = tuple[str, Any]
"""A key and what the transformers class assumes when it is missing; REQUIRED if it assumes nothing."""


@dataclass(frozen=True)
class Config:
    """A config together with the transformers class whose defaults stand in for missing keys."""

    keys: Keys
    owner: str

    @property
    def why(self) -> str:
        return f"transformers {self.owner} default"

    def count(self, *names: str, default: Any = REQUIRED, least: int = 1, most: int = 2**48) -> Any:
        """A whole number within bounds; None stays None.

        Raises:
            FormatError: missing without a default, not whole, or out of bounds.
        """
        value = self.keys.integer(*names, default=default, why=self.why)
        if value is not None and not least <= value <= most:
            raise FormatError(f"{self.keys.at(names[0])} is between {least} and {most}", value)
        return value

    def layers(self, *names: str, default: Any = REQUIRED) -> int:
        """A number of layers; bounded, since one entry is made for each."""
        return int(self.count(*names, default=default, most=MAX_LAYERS))

    def flag(self, name: str, default: bool) -> bool:
        return bool(self.keys.flag(name, default=default, why=self.why))

    def pair(self, name: str, default: Any = REQUIRED) -> tuple[int, int]:
        """A height and a width; one number stands for both.

        Raises:
            FormatError: neither a whole number above 0 nor two of them.
        """
        value = self.keys.raw(name)
        if isinstance(value, list | tuple):
            sides = self.keys.numbers(name, integer=True)
        elif value is None and isinstance(default, tuple):
            self.keys.assume(name, list(default), self.why)
            sides = default
        else:
            sides = (self.count(name, default=default),) * 2
        if len(sides) != 2 or min(sides) < 1:
            raise FormatError(f"{self.keys.at(name)} is a positive size or a height and a width", value)
        return sides[0], sides[1]

    def grid(self, image: Any, patch: Any) -> tuple[int, int]:
        """Rows and columns of patches, ``image_size // patch_size`` each way, from the two keys' defaults."""
        size, step = self.pair("image_size", default=image), self.pair("patch_size", default=patch)
        rows, columns = size[0] // step[0], size[1] // step[1]
        if not rows or not columns:
            raise FormatError(
                f"{self.keys.at('patch_size')} is no larger than {self.keys.at('image_size')}", f"{step} in {size}"
            )
        return rows, columns

    def head_dim(self, width: int, heads: int) -> int:
        """Channels of a head: ``width // heads``.

        Raises:
            FormatError: the width cannot be divided among the heads.
        """
        if width % heads:
            raise FormatError(f"{self.keys.path or 'the config'}: the heads divide the width", f"{width} / {heads}")
        return width // heads


def stack(
    name: str,
    layers: int,
    *inside: Encoding,
    at_input: tuple[Encoding, ...] = (),
    served: int | None = None,
) -> Part:
    """A stack whose layers are all alike: ``at_input`` enters once, ``inside`` in every layer."""
    return Part(
        name=name,
        positions=ModelPositions(
            input=at_input, kinds=(LayerKind(name="all", encodings=inside),), layers=(0,) * layers, served=served
        ),
    )


def square(side_squared: int, what: str) -> tuple[int, int]:
    """The sides of a square grid with this many cells.

    Raises:
        FormatError: the number is no square.

    >>> square(2304, "num_position_embeddings")
    (48, 48)
    """
    from math import isqrt

    side = isqrt(side_squared)
    if side * side != side_squared:
        raise FormatError(f"{what} is a square number", side_squared)
    return side, side
