"""Find the C library beside this file, check that it is the one this version speaks to, and say why it is not used.

``POSENC_NATIVE`` decides: ``0`` never, ``portable``, ``avx2``, ``avx512``, ``avx512bf16`` or ``neon`` just these
instructions.
"""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path
from typing import NamedTuple

ABI = 1
LEVELS = ("portable", "neon", "avx2", "avx512", "avx512bf16")
"""Vector instructions in the numbers of the C side."""
NAME = "libposenc.so"
"""The file's name, whatever the platform calls its libraries; it is loaded by path."""

INT, INT64, DOUBLE, POINTER = ctypes.c_int, ctypes.c_int64, ctypes.c_double, ctypes.c_void_p


class Side(ctypes.Structure):
    """``posenc_side`` of posenc.h."""

    _fields_ = (
        ("x", POINTER),
        ("out", POINTER),
        ("heads", INT64),
        ("x_stride", INT64 * 3),
        ("out_stride", INT64 * 3),
    )


class Rotation(ctypes.Structure):
    """``posenc_rotation`` of posenc.h."""

    _fields_ = (
        ("dtype", INT64),
        ("sides", INT64),
        ("side", Side * 2),
        *((name, INT64) for name in ("batch", "tokens", "width", "first", "pairs", "step", "partner")),
        ("cos", POINTER),
        ("sin", POINTER),
        ("table_stride", INT64 * 3),
        ("ids", POINTER),
        ("id_stride", INT64 * 2),
        ("rows", INT64),
        ("inverse", INT64),
        ("streaming", INT64),
    )


class Lows(ctypes.Structure):
    """``posenc_lows`` of posenc.h."""

    _fields_ = (
        ("theta", POINTER),
        ("pairs", INT64),
        ("starts", POINTER),
        *((name, INT64) for name in ("ranges", "length", "last", "per_distance")),
        ("offset", DOUBLE),
        ("limit", DOUBLE),
        ("most", INT64),
        ("found", INT64),
        *((name, POINTER) for name in ("scores", "distances", "work")),
        ("room", INT64),
    )


SIGNATURES = {
    "posenc_abi": ([], INT),
    "posenc_level": ([], INT),
    "posenc_best_level": ([], INT),
    "posenc_use_level": ([INT], INT),
    "posenc_message": ([INT], ctypes.c_char_p),
    "posenc_check": ([ctypes.POINTER(Rotation)], INT),
    "posenc_rotate": ([ctypes.POINTER(Rotation)], INT),
    "posenc_cos_sin": ([POINTER, INT64, POINTER, INT64, DOUBLE, POINTER, POINTER], INT),
    "posenc_add_angles": ([POINTER] * 4 + [INT64] * 3 + [POINTER] * 2, INT),
    "posenc_cosine_sums": ([POINTER, INT64, POINTER, POINTER, INT64, POINTER, POINTER], INT),
    "posenc_exclude": (
        [POINTER, INT64, DOUBLE, DOUBLE, POINTER, INT64, DOUBLE, DOUBLE, INT64, POINTER, POINTER],
        INT,
    ),
    "posenc_lowest_work": ([INT64, INT64], INT64),
    "posenc_lowest": ([ctypes.POINTER(Lows)], INT),
    "posenc_register": ([ctypes.POINTER(POINTER), INT64], INT),
}


class Library(NamedTuple):
    """What was found.

    Args:
        handle: the loaded library, or None.
        reason: why there is none; empty when there is.
        path: the file that was looked for.
    """

    handle: ctypes.CDLL | None
    reason: str
    path: Path

    @property
    def level(self) -> str:
        """The vector instructions in use; empty without a library."""
        return "" if self.handle is None else LEVELS[self.handle.posenc_level()]

    @property
    def best_level(self) -> str:
        """The best vector instructions that processor and library have; empty without a library."""
        return "" if self.handle is None else LEVELS[self.handle.posenc_best_level()]


def state(path: Path, asked: str | None) -> Library:
    """Load the library of a path, as ``POSENC_NATIVE`` asks.

    >>> state(Path("nowhere.so"), "0").reason
    'POSENC_NATIVE=0 turns it off'
    """
    wanted = (asked or "").strip().lower()
    if wanted in ("0", "off", "no", "false"):
        return Library(None, f"POSENC_NATIVE={asked} turns it off", path)
    if not path.is_file():
        return Library(None, "it was not built: this installation found no C compiler", path)
    try:
        handle = ctypes.CDLL(str(path))
        for name, (arguments, result) in SIGNATURES.items():
            function = getattr(handle, name)
            function.argtypes, function.restype = arguments, result
        version = int(handle.posenc_abi())
    except (OSError, AttributeError) as error:
        return Library(None, f"it does not load ({str(error).splitlines()[0]})", path)
    if version != ABI:
        return Library(None, f"it speaks version {version} of its interface, not {ABI}: install posenc again", path)
    if wanted in LEVELS and handle.posenc_use_level(LEVELS.index(wanted)):
        return Library(None, f"POSENC_NATIVE={asked}, which this processor or this build does not have", path)
    if wanted not in ("", "1", "on", "yes", "true", *LEVELS):
        return Library(None, f"POSENC_NATIVE={asked} is none of 0, 1, {', '.join(LEVELS)}", path)
    return Library(handle, "", path)


@functools.cache
def find() -> Library:
    """The library of this installation; looked for once per process.

    >>> found = find()
    >>> (found.handle is None) == bool(found.reason)
    True
    """
    return state(Path(__file__).with_name(NAME), os.environ.get("POSENC_NATIVE"))
