"""Modules whose numbers follow from a frozen value: not buffers, so nothing can cast, reset or load over them.

A buffer is cast by ``.half()``, emptied by ``to_empty()``, left on the meta device by ``load_state_dict(assign=True)``
and broadcast by data parallelism. Numbers that follow from a value are none of the module's state: they are derived in
float64 when the module is made, once more for each device it comes to, and again after a copy or a load.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import torch
from torch import Tensor, nn

Key = tuple[str, int | None]
CPU = torch.device("cpu")


class Derived(nn.Module):
    """Base of modules with derived numbers; subclasses define :meth:`derive` and call :meth:`derive_now` when made.

    A module shows its numbers by ``numbers(device)``; they are plain tensors in float64 or int64 (float32 on devices
    without float64), the same under every cast.
    """

    def derive(self) -> dict[str, Any]:
        """NumPy arrays by name, computed from the frozen value alone."""
        raise TypeError(f"{type(self).__name__} does not define derive")

    def derive_now(self) -> None:
        """Fill in the numbers on the CPU; for the constructor."""
        self._known: dict[Key, dict[str, Tensor]] = {}
        self._keep(CPU, self._fresh())

    def numbers(self, device: torch.device) -> dict[str, Tensor]:
        """The derived numbers on a device; kept for the next call unless a compiler or exporter is looking."""
        found = self._known.get((device.type, device.index))
        if found is not None:
            return found
        known = self._known.get(("cpu", None))
        if device.type == "meta":
            return {name: t.to("meta") for name, t in (known or self._fresh()).items()}
        if torch.compiler.is_compiling():
            return {name: moved(t, device) for name, t in (known or {}).items()}
        with torch.inference_mode(False):
            found = {name: moved(t, device) for name, t in (known or self._fresh()).items()}
        self._keep(device, found)
        return found

    def _fresh(self) -> dict[str, Tensor]:
        with torch.inference_mode(False):
            return {name: torch.from_numpy(array) for name, array in self.derive().items()}

    def _keep(self, device: torch.device, found: dict[str, Tensor]) -> None:
        if all(type(t) is Tensor and not wrapped(t) for t in found.values()):  # no fake tensor of a tracer
            self._known[device.type, device.index] = found

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Follow the module to a device before a compiler needs the numbers there."""
        result = super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        with suppress(Exception):  # fn may be anything; failing here only means deriving at first use
            device = fn(torch.zeros((), device=CPU)).device
            if device.type != "meta":
                self.numbers(device)
        return result

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state["_known"] = {}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._keep(CPU, self._fresh())


def moved(t: Tensor, device: torch.device) -> Tensor:
    """A number on a device; float32 where the device has no float64."""
    if device.type == "mps" and t.dtype == torch.float64:
        return t.to(device, torch.float32)
    return t.to(device)


def unrounded(device: torch.device) -> AbstractContextManager[Any]:
    """No autocast inside: its half-precision products would round positions away."""
    return nullcontext() if device.type == "meta" else torch.autocast(device.type, enabled=False)


def wrapped(t: Tensor) -> bool:
    """Whether a function transform (vmap, grad) has its hands on a tensor."""
    probe = getattr(getattr(torch._C, "_functorch", None), "is_functorch_wrapped_tensor", None)
    return bool(probe(t)) if probe is not None else False


def may_look(t: Tensor) -> bool:
    """Whether the values of a tensor may decide what happens: eagerly, on the CPU, outside tracing and transforms."""
    if torch.compiler.is_compiling() or t.device.type != "cpu":
        return False
    return type(t) in (Tensor, nn.Parameter) and not wrapped(t)
