"""Subjects that take pictures: patches are made of them, and a table of positions is added, as in vision transformers.

An empty picture has equal patches, so that rows differ by position alone (and by the tokens put before them).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt
from typing import Any

import numpy as np

from posenc.checker.boxes import Rows
from posenc.checker.calling.bound import Bound, result_dtype
from posenc.checker.calling.caller import parts, why
from posenc.checker.calling.tokens import positions_alone
from posenc.errors import PosencError, SubjectError
from posenc.spec import Learned


def picture_box(bound: Bound, wanted: Learned) -> tuple[Rows, str]:
    """A box for a torch module that takes pictures ``(batch, channels, height, width)``.

    Raises:
        SubjectError: it cuts no picture into patches, or has not one row for each patch of a picture.
    """
    failures: list[str] = []
    for channels, height, width in _sizes(bound.caller.function, wanted):
        try:
            with positions_alone(bound.library.name):
                result = bound.call(x=bound.library.array(np.zeros((1, channels, height, width))))
            found = parts(result)[0]
        except PosencError as error:
            failures.append(why(error))
            continue
        if found.ndim < 3 or found.shape[0] != 1 or found.shape[-1] != wanted.dim:
            failures.append(f"a picture ({channels}, {height}, {width}) gives {found.shape}")
            continue
        rows = found.reshape(-1, wanted.dim)

        def read(at: Any, rows: np.ndarray = rows) -> np.ndarray:
            if at.max() >= len(rows):
                raise SubjectError(f"rows run from 0 to {len(rows) - 1}", float(at.max()))
            return np.asarray(rows[at.astype(int)])

        box = Rows(
            wanted.dim, read, free=False, dtype=result_dtype(result), largest=len(rows) - 1, calls={"bound": bound}
        )
        seen = f"{len(rows)} rows of width {wanted.dim} for an empty picture ({channels}, {height}, {width})"
        return box, bound.describe(seen)
    raise SubjectError(
        "pictures of patches are taken", "; ".join(dict.fromkeys(failures[:2])) or "no patches are made of pictures"
    )


def _sizes(function: Any, wanted: Learned) -> Iterator[tuple[int, int, int]]:
    """Channels, height and width of pictures: with as many patches as rows are wanted, then with as many as a table of
    the module has rows, then those the module names."""
    modules = list(function.modules()) if callable(getattr(function, "modules", None)) else []
    patch, channels = _patch(modules)
    if patch is None:
        return
    if len(wanted.shape) == 2:
        yield channels, wanted.shape[0] * patch[0], wanted.shape[1] * patch[1]
    tables = [held.numel() // wanted.dim for held in function.parameters() if held.shape[-1:] == (wanted.dim,)]
    for rows in dict.fromkeys([*([wanted.rows] if len(wanted.shape) == 1 else []), *tables]):
        for before in range(3):
            side = isqrt(max(rows - before, 0))
            if side > 1 and side * side == rows - before:
                yield channels, side * patch[0], side * patch[1]
    for module in modules:
        for name in ("image_size", "img_size", "input_size"):
            size = _pair(getattr(module, name, None))
            if size is not None:
                yield channels, *size


def _patch(modules: list[Any]) -> tuple[tuple[int, int] | None, int]:
    """Height and width of a patch, and how many channels a picture has; None where nothing says it."""
    channels = 3
    stated: tuple[int, int] | None = None
    for module in modules:
        size, stride = _pair(getattr(module, "kernel_size", None)), _pair(getattr(module, "stride", None))
        if size is not None and size == stride and hasattr(module, "in_channels"):
            return size, int(module.in_channels)
        stated = stated or _pair(getattr(module, "patch_size", None))
        named = next(
            (getattr(module, n) for n in ("num_channels", "in_channels", "in_chans", "channels") if hasattr(module, n)),
            None,
        )
        channels = named if isinstance(named, int) else channels
    return stated, channels


def _pair(value: Any) -> tuple[int, int] | None:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value, value
    if isinstance(value, tuple | list) and len(value) == 2 and all(isinstance(v, int) and v > 0 for v in value):
        return value[0], value[1]
    return None
