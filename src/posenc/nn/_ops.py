"""The fast path of rotations on the CPU: operators in C behind gates, and an autograd function over them.

Every function here returns None where the plain path must run: compiled and exported code, other devices and dtypes,
subclasses of tensors, function transforms, forward-mode derivatives, trained frequencies, a missing library. Both paths
round every product and sum alike, so their results are the same bits.

The operators have no Autograd kernel, which costs more than a decode step's rotation itself; where a gradient is
wanted, :class:`Turn` calls them instead.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch
import torch.autograd.forward_ad as forward_ad
from torch import Tensor

from posenc.native import find
from posenc.nn.rotary_functions import Layout, turn

FUNCTIONS = (
    "aoti_torch_library_init_impl",
    "aoti_torch_library_impl",
    "aoti_torch_get_data_ptr",
    "aoti_torch_get_sizes",
    "aoti_torch_get_strides",
    "aoti_torch_get_dim",
    "aoti_torch_get_dtype",
    "aoti_torch_empty_strided",
    "aoti_torch_delete_tensor_object",
    "aoti_torch_check",
    "aoti_torch_dtype_float32",
    "aoti_torch_dtype_bfloat16",
    "aoti_torch_dtype_float16",
    "aoti_torch_dtype_int64",
)
THREADS = ("torch_parallel_for", "torch_get_num_threads")
"""PyTorch's own pool of threads, from 2.10 on; without it one thread runs."""

SCHEMAS = (
    "rotate(Tensor q, Tensor k, Tensor cos, Tensor sin, int layout) -> (Tensor, Tensor)",
    "rotate_one(Tensor x, Tensor cos, Tensor sin, int layout) -> Tensor",
    "rotate_into(Tensor q, Tensor k, Tensor cos, Tensor sin, Tensor(a!) out_q, Tensor(b!) out_k, int layout) -> ()",
    "rotate_one_into(Tensor x, Tensor cos, Tensor sin, Tensor(a!) out, int layout) -> ()",
    "cos_sin(Tensor ids, Tensor turns, float gain) -> (Tensor, Tensor)",
)
HALF_AND_SINGLE = frozenset((torch.float32, torch.bfloat16, torch.float16))
SINGLE = torch.float32
BACKWARDS = 2

_compiling = torch.compiler.is_compiling
_grad_enabled = torch.is_grad_enabled
_tracing = torch._C._get_tracing_state


def _functions() -> tuple[Any, str]:
    """Addresses of PyTorch's stable C functions, or why they cannot be had."""
    peek = getattr(getattr(torch._C, "_functorch", None), "peek_interpreter_stack", None)
    if peek is None or not hasattr(forward_ad, "_current_level"):
        return None, f"PyTorch {torch.__version__} does not say whether a function transform is active"
    found = []
    shared = _torch_library()
    for name in (*FUNCTIONS, *THREADS):
        address = ctypes.cast(getattr(shared, name), ctypes.c_void_p).value if hasattr(shared, name) else None
        if address is None and name in FUNCTIONS:
            return None, f"PyTorch {torch.__version__} has no {name} in its stable C interface"
        found.append(address)
    if None in found[len(FUNCTIONS) :]:
        found[len(FUNCTIONS) :] = [None] * len(THREADS)
    return (ctypes.c_void_p * len(found))(*found), ""


def _torch_library() -> Any:
    from pathlib import Path

    folder = Path(torch.__file__).parent / "lib"
    for name in ("libtorch_cpu.so", "libtorch_cpu.dylib", "torch_cpu.dll"):
        if (folder / name).is_file():
            return ctypes.CDLL(str(folder / name))
    return None


def _register() -> tuple[Any, str]:
    """Define the operators; the library object that keeps them, or why the plain path runs."""
    native = find()
    if native.handle is None:
        return None, native.reason
    functions, reason = _functions()
    if functions is None:
        return None, reason
    library = torch.library.Library("posenc", "DEF")  # type: ignore[no-untyped-call]
    for schema in SCHEMAS:
        library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))  # type: ignore[no-untyped-call]
    error = native.handle.posenc_register(functions, len(functions))
    if error:
        return None, f"PyTorch {torch.__version__} refused the operators (code {error})"
    torch.library.register_fake("posenc::rotate", lambda q, k, cos, sin, layout: (_like(q), _like(k)), lib=library)
    torch.library.register_fake("posenc::rotate_one", lambda x, cos, sin, layout: _like(x), lib=library)
    torch.library.register_fake("posenc::rotate_into", lambda *_: None, lib=library)
    torch.library.register_fake("posenc::rotate_one_into", lambda *_: None, lib=library)
    torch.library.register_fake("posenc::cos_sin", _angles_like, lib=library)
    return library, ""


def _like(x: Tensor) -> Tensor:
    """What the kernel makes: dense, heads within tokens where the input has them so."""
    b, h, t, d = x.shape
    if t > 1 and h > 1 and x.stride(1) < x.stride(2):
        return x.new_empty((b, t, h, d)).transpose(1, 2)
    return x.new_empty((b, h, t, d))


def _angles_like(ids: Tensor, turns: Tensor, gain: float) -> tuple[Tensor, Tensor]:
    shape = (*ids.shape, turns.shape[-1])
    return ids.new_empty(shape, dtype=SINGLE), ids.new_empty(shape, dtype=SINGLE)


LIBRARY, REASON = _register()
"""The registered operators, or None and why."""
THREADED = LIBRARY is not None and all(hasattr(_torch_library(), name) for name in THREADS)
"""Whether they share PyTorch's pool of threads."""

if LIBRARY is not None:
    _rotate = torch.ops.posenc.rotate.default
    _rotate_one = torch.ops.posenc.rotate_one.default
    _rotate_into = torch.ops.posenc.rotate_into.default
    _rotate_one_into = torch.ops.posenc.rotate_one_into.default
    _cos_sin = torch.ops.posenc.cos_sin.default
    _transform = torch._C._functorch.peek_interpreter_stack


def mode_of(layout: Layout, width: int) -> int:
    """A layout and the width of a head as one number, as the operators take it: -1 where the plain path runs.

    Bit 0: pairs ``(2i, 2i + 1)``; bit 1: backwards; then 20 bits each: the first channel, the pairs, the width.

    >>> mode = mode_of(Layout(4, 2, True), 8)
    >>> mode in (-1, 8 << 42 | 2 << 22 | 4 << 2 | 1)
    True
    """
    if LIBRARY is None or max(layout.first, layout.pairs, width) >= 2**20:
        return -1
    return width << 42 | layout.pairs << 22 | layout.first << 2 | int(layout.interleaved)


def _layout(mode: int) -> Layout:
    return Layout(mode >> 2 & 0xFFFFF, mode >> 22 & 0xFFFFF, bool(mode & 1))


class Turn(torch.autograd.Function):
    """The operators with their gradient: turning back, gain included."""

    @staticmethod
    def forward(ctx: Any, mode: int, cos: Tensor, sin: Tensor, *sides: Tensor) -> Any:
        ctx.mode = mode
        ctx.save_for_backward(cos, sin)
        ctx.set_materialize_grads(False)
        return _rotate(*sides, cos, sin, mode) if len(sides) == 2 else _rotate_one(*sides, cos, sin, mode)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        cos, sin = ctx.saved_tensors
        mode = ctx.mode ^ BACKWARDS
        back: Any = None
        if len(grads) == 2 and grads[0] is not None and grads[1] is not None:
            back = two(grads[0], grads[1], (cos, sin), mode)
        return None, None, None, *(back or (_turned(g, cos, sin, mode) for g in grads))


def _turned(x: Tensor | None, cos: Tensor, sin: Tensor, mode: int) -> Tensor | None:
    if x is None:
        return None
    found = one(x, cos, sin, mode)
    return turn(x, cos, -sin if mode & BACKWARDS else sin, _layout(mode)) if found is None else found


def two(
    q: Tensor, k: Tensor, ready: Any, mode: int, out: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor] | None:
    """Queries and keys turned in one call, or None where the plain path must run.

    Args:
        q, k: ``(batch, heads, tokens, head_dim)``.
        ready: cosines and sines ``(batch | 1, heads | 1, tokens, pairs)``, the same for both.
        mode: see :func:`mode_of`.
        out: where to write; ``(q, k)`` turns in place.
    """
    if mode < 0 or type(q) is not Tensor or type(k) is not Tensor or len(ready) != 2:
        return None
    cos, sin = ready
    if q.dtype not in HALF_AND_SINGLE or not q.is_cpu or not _plain_tables(cos, sin) or _watched():
        return None
    try:
        if _grad_enabled() and (q.requires_grad or k.requires_grad or cos.requires_grad or sin.requires_grad):
            if out is not None or cos.requires_grad or sin.requires_grad:
                return None
            turned: tuple[Tensor, Tensor] = Turn.apply(mode, cos, sin, q, k)  # type: ignore[no-untyped-call]
            return turned
        if out is None:
            result: tuple[Tensor, Tensor] = _rotate(q, k, cos, sin, mode)
            return result
        to_q, to_k = out
        if not (_writable(to_q) and _writable(to_k)):
            return None
        _rotate_into(q, k, cos, sin, to_q, to_k, mode)
    except RuntimeError:  # what the kernel does not do; the plain path does it, or says what is wrong
        return None
    torch.autograd.graph.increment_version((to_q, to_k))
    return to_q, to_k


def one(x: Tensor, cos: Tensor, sin: Tensor, mode: int, out: Tensor | None = None) -> Tensor | None:
    """Queries or keys alone; arguments as in :func:`two`."""
    if mode < 0 or type(x) is not Tensor:
        return None
    if x.dtype not in HALF_AND_SINGLE or not x.is_cpu or not _plain_tables(cos, sin) or _watched():
        return None
    try:
        if _grad_enabled() and (x.requires_grad or cos.requires_grad or sin.requires_grad):
            if out is not None or cos.requires_grad or sin.requires_grad:
                return None
            turned: Tensor = Turn.apply(mode, cos, sin, x)  # type: ignore[no-untyped-call]
            return turned
        if out is None:
            result: Tensor = _rotate_one(x, cos, sin, mode)
            return result
        if not _writable(out):
            return None
        _rotate_one_into(x, cos, sin, out, mode)
    except RuntimeError:
        return None
    torch.autograd.graph.increment_version(out)
    return out


def _plain_tables(cos: Tensor, sin: Tensor) -> bool:
    return type(cos) is Tensor and type(sin) is Tensor and cos.dtype is SINGLE and cos.is_cpu and sin.is_cpu


def _writable(out: Tensor) -> bool:
    return type(out) is Tensor and out.is_cpu and not (_grad_enabled() and out.requires_grad)


def _watched() -> bool:
    """Whether something follows the operations one by one: a compiler, exporter or tracer, a function transform."""
    return _compiling() or _transform() is not None or forward_ad._current_level >= 0 or _tracing() is not None


def cos_sin(ids: Tensor, turns: Tensor, gain: float) -> tuple[Tensor, Tensor] | None:
    """float32 cosines and sines ``(batch, heads, tokens, pairs)`` of whole positions, or None.

    Args:
        ids: ``(batch, heads, tokens)`` int64.
        turns: ``(..., pairs)`` int64 in 2^-64 of a turn per position (:mod:`posenc.nn.turns`), other dimensions 1.
        gain: factor on both.
    """
    if LIBRARY is None or type(ids) is not Tensor or type(turns) is not Tensor:
        return None
    if ids.dtype is not torch.int64 or not ids.is_cpu or not turns.is_cpu or _watched():
        return None
    try:
        result: tuple[Tensor, Tensor] = _cos_sin(ids, turns, gain)
        return result
    except RuntimeError:
        return None
