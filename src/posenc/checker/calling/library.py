"""Arrays of the library a subject speaks: NumPy, torch, JAX, MLX; made from NumPy and turned back."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from posenc.errors import SubjectError


@dataclass(frozen=True)
class Library:
    """A library of arrays.

    Args:
        name: ``numpy``, ``torch``, ``jax``, ``mlx``.
        to: NumPy array and dtype name (None keeps integers, ``float32`` otherwise) to the library's array.
        dtype: the type that floating arrays get.
    """

    name: str
    to: Callable[[np.ndarray, str], Any]
    dtype: str = "float32"

    def array(self, values: Any, dtype: str | None = None) -> Any:
        """A floating array in the subject's dtype (or another)."""
        return self.to(np.array(values, dtype=np.float64, order="C"), dtype or self.dtype)

    def whole(self, values: Any) -> Any:
        """An integer array."""
        return self.to(np.asarray(values, dtype=np.int64), "int64")


def library(name: str, dtype: str = "float32") -> Library:
    """One of the libraries by name.

    Raises:
        SubjectError: it is not installed or not known.
    """
    if name not in _MAKERS:
        raise SubjectError(f"a library is one of {', '.join(_MAKERS)}", name)
    try:
        return Library(name, _MAKERS[name](), dtype)
    except ImportError:
        raise SubjectError(f"the subject speaks {name}, which is not installed") from None


def spoken(subject: Any) -> tuple[str, ...]:
    """The libraries a subject may speak, the likeliest first: what its class, module and globals mention."""
    found: list[str] = []
    names = {base.__module__.split(".")[0] for base in getattr(type(subject), "__mro__", ())}
    if isinstance(subject, type):
        names |= {base.__module__.split(".")[0] for base in subject.__mro__}
    home = getattr(subject, "__module__", None) or getattr(type(subject), "__module__", "")
    spaces = [
        getattr(getattr(subject, "__wrapped__", subject), "__globals__", {}),
        vars(sys.modules.get(home or "", object)) if home in sys.modules else {},
    ]
    forward = getattr(type(subject), "forward", None) or vars(type(subject)).get("__call__")
    spaces.append(getattr(forward, "__globals__", {}))
    spaces.append(getattr(getattr(subject, "__func__", None), "__globals__", {}))
    for space in spaces:
        for value in list(space.values()):
            if type(value).__name__ == "module":
                names.add(value.__name__.split(".")[0])
    for root, name in (
        ("torch", "torch"),
        ("mlx", "mlx"),
        ("jax", "jax"),
        ("equinox", "jax"),
        ("flax", "jax"),
        ("keras", "keras"),
    ):
        if root in names and name not in found:
            found.append(name)
    return (*found, "numpy")


def plain(value: Any) -> np.ndarray:
    """Any library's array as float64 (complex128, int64) NumPy.

    Raises:
        SubjectError: it is no array of numbers.
    """
    if isinstance(value, np.ndarray):
        found = value
    elif type(value).__module__.split(".")[0] == "torch":
        value = value.detach().cpu()
        if value.dtype.is_floating_point:
            value = value.double()
        found = value.resolve_conj().numpy()
    elif type(value).__module__.startswith("mlx"):
        import mlx.core as mx

        floating = mx.issubdtype(value.dtype, mx.floating)
        found = np.array(value.astype(mx.float32)) if floating else np.array(value)
    else:
        try:
            found = np.asarray(value)
        except Exception as error:
            raise SubjectError("the subject returns arrays", type(value).__name__ + f": {error}") from None
    if found.dtype.kind == "c":
        return found.astype(np.complex128)
    if found.dtype.kind in "iub":
        return found.astype(np.int64)
    try:
        return found.astype(np.float64)
    except (TypeError, ValueError):
        raise SubjectError(
            "the subject returns arrays of numbers", f"{type(value).__name__} of {found.dtype}"
        ) from None


def dtype_of(value: Any) -> str | None:
    """The name of an array's floating type; None if it has none that is known."""
    text = str(getattr(value, "dtype", "")).rsplit(".", 1)[-1].strip("'<>")
    return (
        text
        if text in ("float64", "float32", "float16", "bfloat16")
        else {"complex64": "float32", "complex128": "float64"}.get(text)
    )


def _numpy() -> Callable[[np.ndarray, str], Any]:
    def to(values: np.ndarray, dtype: str) -> np.ndarray:
        if dtype == "bfloat16":
            import ml_dtypes

            return values.astype(ml_dtypes.bfloat16)
        return values.astype(dtype)

    return to


def _torch() -> Callable[[np.ndarray, str], Any]:
    import torch

    return lambda values, dtype: torch.from_numpy(np.array(values)).to(getattr(torch, dtype))


def _jax() -> Callable[[np.ndarray, str], Any]:
    from importlib import import_module

    jnp = import_module("jax.numpy")

    def to(values: np.ndarray, dtype: str) -> Any:
        return jnp.asarray(values, dtype={"float64": "float32", "int64": "int32"}.get(dtype, dtype))

    return to


def _mlx() -> Callable[[np.ndarray, str], Any]:
    import mlx.core as mx

    def to(values: np.ndarray, dtype: str) -> Any:
        if dtype == "int64":
            return mx.array(values.astype(np.int32))
        return mx.array(values.astype(np.float32)).astype(getattr(mx, "float32" if dtype == "float64" else dtype))

    return to


def _keras() -> Callable[[np.ndarray, str], Any]:
    from importlib import import_module

    keras = import_module("keras")

    return lambda values, dtype: keras.ops.convert_to_tensor(
        values.astype(dtype if dtype != "bfloat16" else "float32"), dtype=dtype if dtype != "int64" else "int32"
    )


_MAKERS: dict[str, Callable[[], Callable[[np.ndarray, str], Any]]] = {
    "numpy": _numpy,
    "torch": _torch,
    "jax": _jax,
    "mlx": _mlx,
    "keras": _keras,
}
