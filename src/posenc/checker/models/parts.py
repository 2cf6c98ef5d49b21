"""The parts of a model that carry positions: rotary submodules, functions that apply them, tables, bucket functions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from posenc.checker.boxes import Array, Bias, Box, Buckets, CosSin, Rows
from posenc.checker.calling.caller import Caller, Misshapen, parts
from posenc.checker.calling.library import library
from posenc.errors import PosencError, SubjectError


@dataclass(frozen=True)
class Part:
    """A part of a model.

    Args:
        where: its path in the model.
        box: a box around it.
        kind: ``rotary``, ``table``, ``buckets``.
        slot: the layer type it was asked for.
        module: itself.
    """

    where: str
    box: Box
    kind: str
    slot: str | None = None
    module: Any = None


def position_parts(model: Any) -> Iterator[Part]:
    """Every part that carries positions, in the model's order."""
    yield from _rotary(model)
    yield from _buckets(model)
    yield from _alibi(model)
    yield from _tables(model)


def _rotary(model: Any) -> Iterator[Part]:
    from posenc.nn.patching.finding import rotary_submodules

    for found in rotary_submodules(model):
        for slot in found.slots:
            box = rotary_box(found.module, slot, int(getattr(found.config, "hidden_size", 96) or 96))
            if box is not None:
                where = found.path if slot is None else f"{found.path} for {slot}"
                yield Part(where, box, "rotary", slot, found.module)


def rotary_box(module: Any, slot: str | None, width: int) -> CosSin | None:
    """A box around a submodule ``(x, position_ids[, layer_type]) -> cos, sin``; None if no form of positions works."""
    speaks = library("torch")
    caller = Caller(module, speaks)

    def ask(at: Array, form: str) -> list[np.ndarray]:
        if at.ndim == 2:  # positions of their own for each axis
            shaped = speaks.whole(at[:, None])
        else:
            axes = {"1t": (1,), "31t": (3, 1), "41t": (4, 1)}[form]
            shaped = speaks.whole(np.broadcast_to(at, (*axes, len(at))))
        given: dict[str, Any] = {"#0": speaks.array(np.zeros((1, at.shape[-1], width))), "#1": shaped}
        if slot is not None:
            given["layer_type"] = slot
        return parts(caller(given))

    def read(found: list[np.ndarray], n: int) -> tuple[Array, Array]:
        flat = [v.reshape([m for m in v.shape[:-2] if m != 1] + [n, v.shape[-1]]) if v.ndim >= 2 else v for v in found]
        flat = [v[0] if v.ndim == 3 else v for v in flat]
        if len(flat) == 1 and flat[0].dtype.kind == "c" and flat[0].shape[0] == n:
            return flat[0].real, flat[0].imag
        if len(flat) == 2 and flat[0].shape == flat[1].shape and flat[0].shape[0] == n:
            a, b = flat
            return (b, a) if np.abs(a[0]).max() < 1e-6 < np.abs(b[0]).max() else (a, b)
        raise Misshapen("cosines and sines for each position", [v.shape for v in found])

    for form in ("1t", "31t", "41t"):
        try:
            read(ask(np.arange(7.0), form), 7)
        except (PosencError, ValueError):
            continue
        calls: dict[str, Any] = {"form": form}
        if form != "1t":
            calls["axes"] = lambda at, form=form: read(ask(at, form), at.shape[-1])
        return CosSin(lambda at, form=form: read(ask(at, form), len(at)), calls=calls)  # type: ignore[misc]
    return None


def _buckets(model: Any) -> Iterator[Part]:
    """T5's bucket function, once for each pair of settings."""
    seen = set()
    for path, module in model.named_modules():
        function = getattr(module, "_relative_position_bucket", None)
        n, distance = (
            getattr(module, "relative_attention_num_buckets", None),
            getattr(module, "relative_attention_max_distance", None),
        )
        if not callable(function) or not getattr(module, "has_relative_attention_bias", True) or n is None:
            continue
        both = not getattr(module, "is_decoder", False)
        if (both, n, distance) in seen:
            continue
        seen.add((both, n, distance))

        def buckets(relative: Any, f: Any = function, m: Any = module, both: bool = both) -> Any:
            import torch

            with torch.no_grad():
                try:
                    out = f(
                        torch.from_numpy(np.asarray(relative))[None],
                        bidirectional=both,
                        num_buckets=m.relative_attention_num_buckets,
                        max_distance=m.relative_attention_max_distance,
                    )
                except TypeError:
                    out = f(torch.from_numpy(np.asarray(relative))[None])
            return out[0].numpy()

        yield Part(path, Buckets(buckets), "buckets", "encoder" if both else "decoder", module)


def _alibi(model: Any) -> Iterator[Part]:
    """Functions of the model's own file that build ALiBi, from a mask and heads (BLOOM) or heads and a length (MPT)."""
    import torch

    home = sys.modules.get(type(model).__module__)
    config = model.config
    heads = int(
        getattr(config, "num_attention_heads", 0) or getattr(config, "n_head", 0) or getattr(config, "n_heads", 0) or 0
    )
    for name, function in sorted(vars(home).items()) if home is not None and heads else ():
        if "alibi" not in name or not name.startswith("build") or not callable(function):
            continue

        def bias(n_q: int, n_k: int, build: Any = function) -> Array:
            with torch.no_grad():
                try:
                    out = build(torch.ones(1, n_k), heads, torch.float32)
                except (TypeError, AttributeError, ValueError):
                    out = build(heads, n_k)
            line = out.double().numpy().reshape(heads, 1, n_k)
            return np.repeat(line, n_q, axis=1)

        yield Part(name, Bias(bias), "alibi")


NAMES = ("position_embed", "embed_positions", "pos_embed", "wpe", "positional", "position_enc")


def _tables(model: Any) -> Iterator[Part]:
    """Embedding modules and parameters whose names speak of positions."""
    for path, module in model.named_modules():
        last = path.rsplit(".", 1)[-1].lower()
        weight: Any = getattr(module, "weight", getattr(module, "weights", None))
        if any(name in last for name in NAMES) and getattr(weight, "ndim", 0) == 2:
            values = weight.detach().double().cpu().numpy()
            yield Part(path, _rows(values), "table", module=module)
    for path, value in model.named_parameters():
        last = path.rsplit(".", 1)[-1].lower()
        if any(name in last for name in NAMES) and value.ndim == 3 and value.shape[0] == 1:
            yield Part(path, _rows(value.detach().double().cpu().numpy()[0]), "table")


def _rows(values: Array) -> Rows:
    last = len(values) - 1

    def rows(at: Array) -> Array:
        if (at > last).any():
            raise SubjectError(f"rows run from 0 to {last}", float(at.max()))
        return np.asarray(values[at.astype(int)])

    return Rows(values.shape[1], rows, largest=last, calls={"table": values})


def apply_functions(model: Any) -> Iterator[tuple[str, Any]]:
    """Functions of the model's own file that apply cosines and sines to queries and keys."""
    home = sys.modules.get(type(model).__module__)
    for name, value in sorted(vars(home).items()) if home is not None else ():
        if (
            name.startswith("apply_")
            and ("rotary" in name or "rope" in name)
            and callable(value)
            and getattr(value, "__module__", "") == type(model).__module__
        ):
            yield name, value
