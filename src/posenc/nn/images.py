"""Images (E10): grids of patches and the tables vision models add; :func:`posenc.nn.positions.grid` gives the ids.

An image whose sides the patch size does not divide is refused, or padded on purpose; never cut silently.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from torch import Tensor
from torch.nn import functional

from posenc.errors import ShapeError, SpecError
from posenc.nn.inputs import SinusoidalEncoding
from posenc.nn.learned import LearnedTable
from posenc.spec import Geometric, Learned, Sinusoidal, Split


class PatchGrid(NamedTuple):
    """Patches of an image, and the pixels that padding adds at the bottom and on the right.

    >>> from posenc.nn import grid
    >>> grid(PatchGrid(2, 3)[:2]).ids.shape
    torch.Size([2, 1, 1, 6])
    """

    rows: int
    columns: int
    pad_bottom: int = 0
    pad_right: int = 0


def patch_grid(
    height: int, width: int, patch: int | tuple[int, int], on_remainder: Literal["error", "pad"] = "error"
) -> PatchGrid:
    """How many patches an image has.

    Args:
        height, width: of the image, in pixels.
        patch: side of a patch, or its height and width.
        on_remainder: what to do with a side that the patch does not divide: refuse, or pad at the bottom and right.

    Raises:
        ShapeError: a side that the patch does not divide, or no pixels.
        SpecError: ``on_remainder`` is neither.

    >>> patch_grid(224, 160, 16)
    PatchGrid(rows=14, columns=10, pad_bottom=0, pad_right=0)
    >>> patch_grid(225, 160, 16, on_remainder="pad")
    PatchGrid(rows=15, columns=10, pad_bottom=15, pad_right=0)
    """
    if on_remainder not in ("error", "pad"):
        raise SpecError("on_remainder is error or pad", on_remainder)
    sides = (patch, patch) if isinstance(patch, int) else tuple(patch)
    if len(sides) != 2 or min(*sides, height, width) < 1:
        raise ShapeError("an image and its patches have at least one pixel along each side", (height, width, patch))
    pads = [-size % side for size, side in zip((height, width), sides, strict=True)]
    if any(pads) and on_remainder == "error":
        raise ShapeError(
            f"patches of {sides[0]} x {sides[1]} pixels divide the image's sides",
            f"an image of {height} x {width}, {height % sides[0]} and {width % sides[1]} pixels over",
            "Resize it, or pad it on purpose with on_remainder='pad'.",
        )
    rows, columns = ((size + pad) // side for size, pad, side in zip((height, width), pads, sides, strict=True))
    return PatchGrid(rows, columns, *pads)


def pad_to_patches(
    images: Tensor, patch: int | tuple[int, int], on_remainder: Literal["error", "pad"] = "error", fill: float = 0.0
) -> tuple[Tensor, PatchGrid]:
    """Images ``(..., height, width)`` whose sides the patch divides, and their grid.

    Args:
        images: pixels.
        patch, on_remainder: as for :func:`patch_grid`.
        fill: value of added pixels.

    Returns:
        Images ``(..., height, width)`` with the added pixels, and the grid.

    Raises:
        ShapeError: no images, or sides that :func:`patch_grid` refuses.

    >>> import torch
    >>> images, grid = pad_to_patches(torch.ones(3, 5, 8), 4, on_remainder="pad")
    >>> tuple(images.shape), grid.pad_bottom
    ((3, 8, 8), 3)
    """
    if images.ndim < 2:
        raise ShapeError("images are (..., height, width)", tuple(images.shape))
    grid = patch_grid(images.shape[-2], images.shape[-1], patch, on_remainder)
    if grid.pad_bottom or grid.pad_right:
        images = functional.pad(images, (0, grid.pad_right, 0, grid.pad_bottom), value=fill)
    return images, grid


def vit_table(dim: int, rows: int, columns: int, *, prefix: int = 1, **options: Any) -> LearnedTable:
    """ViT: a trained table of one row for each class token and patch (Dosovitskiy et al. 2021).

    Its shape is the grid, so that :meth:`posenc.nn.learned.LearnedTable.resample` can stretch it; called without
    positions it takes all patches row by row.

    >>> vit_table(8, 3, 5).value.rows
    16
    """
    return LearnedTable(Learned(dim, shape=(rows, columns), prefix=prefix), **options)


def row_major_sinusoid(dim: int, *, prefix: int = 1, **options: Any) -> SinusoidalEncoding:
    """The 1-D sinusoid over patches in row-major order: a baseline.

    The last patch of a row and the first of the next are neighbours to it, although they lie on opposite sides of the
    image; and how far a patch is from the one below depends on the number of columns. Patches are
    ``(batch, prefix + rows * columns, dim)``.

    >>> import torch
    >>> row_major_sinusoid(8)(torch.zeros(1, 1 + 2 * 3, 8))[0, 0].tolist() == [0.0] * 8  # the class token
    True
    """
    return SinusoidalEncoding(Sinusoidal(dim, prefix=prefix), **options)


def mae_sinusoid(dim: int, *, prefix: int = 1, **options: Any) -> SinusoidalEncoding:
    """MAE's 2-D sinusoid: ``[sin x, cos x, sin y, cos y]``, ``theta_i = 10000^(-4i / dim)`` (facebookresearch/mae
    ``util/pos_embed.py``). Positions come columns first: ``grid((rows, columns), columns_first=True)``; patches are
    ``(batch, prefix + rows * columns, dim)``.

    Raises:
        SpecError: ``dim`` is no multiple of 4.

    >>> from posenc.nn import grid
    >>> second = mae_sinusoid(8).vectors(grid((1, 2), columns_first=True))[0, 2]  # after the class token
    >>> [round(v, 3) for v in second.tolist()]
    [0.841, 0.01, 0.54, 1.0, 0.0, 0.0, 1.0, 1.0]
    """
    return _two_axes(dim, 0.0, prefix, options)


def simple_vit_sinusoid(dim: int, *, prefix: int = 0, **options: Any) -> SinusoidalEncoding:
    """SimpleViT's 2-D sinusoid: as MAE's, with ``theta_i = 10000^(-i / (dim / 4 - 1))`` (google-research/big_vision
    ``models/vit.py``). Positions come columns first; patches are ``(batch, prefix + rows * columns, dim)``.

    Raises:
        SpecError: ``dim`` is no multiple of 4.

    >>> from posenc.nn import grid
    >>> second = simple_vit_sinusoid(8).vectors(grid((1, 2), columns_first=True))[0, 1]
    >>> [round(v, 4) for v in second.tolist()]
    [0.8415, 0.0001, 0.5403, 1.0, 0.0, 0.0, 1.0, 1.0]
    """
    return _two_axes(dim, 1.0, prefix, options)


def _two_axes(dim: int, shift: float, prefix: int, options: dict[str, Any]) -> SinusoidalEncoding:
    if dim % 4:
        raise SpecError("a sinusoid over rows and columns has a width divisible by 4", dim)
    axes = Split(pairs=(dim // 4, dim // 4))
    value = Sinusoidal(dim, schedule=Geometric(shift=shift), order="sin|cos", axes=axes, prefix=prefix)
    return SinusoidalEncoding(value, **options)
