"""llama.cpp's rope through ggml's C interface, which the shared library of ``xllamacpp`` exports.

ggml aborts the process where its own checks fail, so shapes and types are checked here first. Signatures:
``ggml/include/ggml.h`` of ggml-org/llama.cpp (``ggml_rope_ext``, ``ggml_init_params``, ``GGML_ROPE_TYPE_*``).
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

NORMAL, NEOX = 0, 2
"""Pairs ``(2i, 2i + 1)`` and ``(i, i + n_dims / 2)``."""
F32, I32 = 0, 26
"""``enum ggml_type``."""
ROOM = 1 << 20
"""Bytes beyond tensors and graph: ggml's work buffer for one thread."""


class InitParams(ctypes.Structure):
    """``struct ggml_init_params``."""

    _fields_ = (("mem_size", ctypes.c_size_t), ("mem_buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool))


def installed() -> bool:
    """Whether the library is there."""
    return importlib.util.find_spec("xllamacpp") is not None


@cache
def library() -> Any:
    """The shared library with the signatures that are used here."""
    found = importlib.util.find_spec("xllamacpp")
    if found is None or found.origin is None:
        raise ImportError("xllamacpp is not installed (make engines)")
    lib = ctypes.CDLL(str(next(Path(found.origin).parent.glob("xllamacpp*.so"))))
    pointer, number, real = ctypes.c_void_p, ctypes.c_int, ctypes.c_float
    for name, result, arguments in (
        ("ggml_cpu_init", None, ()),
        ("ggml_init", pointer, (InitParams,)),
        ("ggml_free", None, (pointer,)),
        ("ggml_type_size", ctypes.c_size_t, (number,)),
        ("ggml_type_name", ctypes.c_char_p, (number,)),
        ("ggml_tensor_overhead", ctypes.c_size_t, ()),
        ("ggml_graph_overhead", ctypes.c_size_t, ()),
        ("ggml_new_tensor_1d", pointer, (pointer, number, ctypes.c_int64)),
        ("ggml_new_tensor_3d", pointer, (pointer, number, *[ctypes.c_int64] * 3)),
        ("ggml_nbytes", ctypes.c_size_t, (pointer,)),
        ("ggml_get_data", pointer, (pointer,)),
        ("ggml_rope_ext", pointer, (*[pointer] * 4, *[number] * 3, *[real] * 6)),
        ("ggml_new_graph", pointer, (pointer,)),
        ("ggml_build_forward_expand", None, (pointer, pointer)),
        ("ggml_graph_compute_with_ctx", number, (pointer, pointer, number)),
    ):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    lib.ggml_cpu_init()
    names = [lib.ggml_type_name(kind) for kind in (F32, I32)]
    if names != [b"f32", b"i32"] or [lib.ggml_type_size(kind) for kind in (F32, I32)] != [4, 4]:
        raise ImportError(f"this library numbers its types otherwise: {names}")
    return lib


def rope(
    x: np.ndarray,
    positions: np.ndarray,
    *,
    n_dims: int,
    mode: int = NEOX,
    freq_base: float = 10000.0,
    freq_factors: Sequence[float] | None = None,
    freq_scale: float = 1.0,
    n_ctx_orig: int = 0,
    ext_factor: float = 0.0,
    attn_factor: float = 1.0,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
) -> np.ndarray:
    """``ggml_rope_ext`` on the CPU.

    Args:
        x: float32 ``(tokens, heads, head_dim)``; ggml's dimensions are the same in reverse.
        positions: int32 ``(tokens,)``.
        n_dims: channels that are rotated, the first of a head.
        mode: :data:`NORMAL` or :data:`NEOX`.
        freq_factors: float32 ``(n_dims / 2,)``; frequencies are divided by them.
        freq_scale, n_ctx_orig, ext_factor, attn_factor, beta_fast, beta_slow: of YaRN; ``freq_scale`` alone is linear.
    """
    lib = library()
    x, positions = np.ascontiguousarray(x), np.ascontiguousarray(positions)
    if x.ndim != 3 or x.dtype != np.float32 or positions.shape != x.shape[:1] or positions.dtype != np.int32:
        raise ValueError(f"x is float32 (tokens, heads, head_dim), positions int32 (tokens,): {x.shape}, {positions}")
    if n_dims % 2 or not 0 < n_dims <= x.shape[2] or mode not in (NORMAL, NEOX) or not x.size:
        raise ValueError(f"n_dims {n_dims}, mode {mode}, x {x.shape}")
    factors = None if freq_factors is None else np.ascontiguousarray(freq_factors, dtype=np.float32)
    if factors is not None and factors.shape != (n_dims // 2,):
        raise ValueError(f"{n_dims // 2} factors, not {factors.shape}")
    data = 2 * x.nbytes + positions.nbytes + (0 if factors is None else factors.nbytes)
    size = 8 * (lib.ggml_tensor_overhead() + 64) + data + lib.ggml_graph_overhead() + ROOM
    context = lib.ggml_init(InitParams(size, None, False))
    if not context:
        raise MemoryError(f"ggml found no {size} bytes")
    try:
        a = lib.ggml_new_tensor_3d(context, F32, *reversed(x.shape))
        b = lib.ggml_new_tensor_1d(context, I32, len(positions))
        c = None if factors is None else lib.ggml_new_tensor_1d(context, F32, len(factors))
        for tensor, array in ((a, x), (b, positions), (c, factors)):
            if array is not None:
                if lib.ggml_nbytes(tensor) != array.nbytes:
                    raise ValueError("a tensor of another size")
                ctypes.memmove(lib.ggml_get_data(tensor), array.ctypes.data, array.nbytes)
        turned = lib.ggml_rope_ext(
            context, a, b, c, n_dims, mode, n_ctx_orig,
            freq_base, freq_scale, ext_factor, attn_factor, beta_fast, beta_slow,
        )  # fmt: skip
        graph = lib.ggml_new_graph(context)
        lib.ggml_build_forward_expand(graph, turned)
        if lib.ggml_graph_compute_with_ctx(context, graph, 1) != 0 or lib.ggml_nbytes(turned) != x.nbytes:
            raise RuntimeError("ggml did not compute the graph")
        result = np.empty_like(x)
        ctypes.memmove(result.ctypes.data, lib.ggml_get_data(turned), x.nbytes)
        return result
    finally:
        lib.ggml_free(context)
