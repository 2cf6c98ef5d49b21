"""Figures as files: SVG as it is, PNG without a browser."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from posenc.errors import PosencError
from posenc.rendering.files import replaced

if TYPE_CHECKING:
    from posenc.rendering.figures.canvas import Figure


def png(svg: str, scale: float = 2.0) -> bytes:
    """A drawing as PNG.

    Raises:
        PosencError: vl-convert-python is not installed.
    """
    try:
        import vl_convert
    except ModuleNotFoundError:
        raise PosencError(
            "a PNG needs vl-convert-python", remedy="Install it with: pip install 'posenc[report]'"
        ) from None
    return bytes(vl_convert.svg_to_png(svg, scale=scale))


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write one figure; the ending decides.

    Raises:
        PosencError: another ending than ``.svg`` or ``.png``, or the file cannot be written.
    """
    ending = Path(path).suffix.lower()
    if ending == ".svg":
        replaced(path, figure.svg().encode())
    elif ending == ".png":
        replaced(path, figure.png())
    else:
        raise PosencError("a figure is saved as .svg or .png", str(path))


def save_all(figures: Iterable[tuple[str, Figure]], folder: str | os.PathLike[str]) -> list[Path]:
    """Write every figure as SVG and as PNG into a folder, which is made if it is missing.

    Args:
        figures: file names without ending, and the figures.

    Raises:
        PosencError: a file cannot be written.
    """
    to = Path(folder)
    try:
        to.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PosencError("figures are written to a folder", f"{to}: {error.strerror}") from None
    made = []
    for name, figure in figures:
        for ending in (".svg", ".png"):
            made.append(to / f"{name}{ending}")
            save(figure, made[-1])
    return made
