"""The parts of a model that carry positions: rotary submodules, functions that apply them, tables, bucket functions."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from posenc.checker.boxes import Array, Bias, Box, Buckets, CosSin, Rows, Vector
from posenc.checker.calling.caller import Caller, Misshapen, parts
from posenc.checker.calling.library import library
from posenc.errors import PosencError, SubjectError


@dataclass(frozen=True)
class Part:
    """A part of a model.

    Args:
        where: its path in the model.
        box: a box around it.
        kind: ``rotary``, ``table``, ``buckets``, ``alibi``, ``relative`` (a table by distance or bucket),
            ``frequencies`` (those of a module that takes other than positions, such as a grid).
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
    yield from _relative(model)


def unasked(model: Any, parts: list[Part]) -> list[str]:
    """Paths of modules that speak of positions by the name of their class, or of what they hold, and that no part is
    around."""
    covered = [part.where.split(" for ")[0] for part in parts]
    return [
        path or "the model itself"
        for path, module in model.named_modules()
        if _speaks_of_positions(path, module)
        and not any(c == path or c.startswith(f"{path}.") or path.startswith(f"{c}.") for c in covered)
    ]


POSITIONAL = re.compile(
    r"Rotary|Ro(pe|PE)|Relative|RelPos|PosEmb|Position(al)?(Conv|Emb|Enc|Bias|Learned|Sine)|SinePos"
)
HELD = re.compile(r"(^|_)(pos|position|positional|rel|relative|row|column|coords|rope|rotary)(_|$)|^attention_biases")


def _speaks_of_positions(path: str, module: Any) -> bool:
    import torch

    own = vars(module)
    tensors = own["_parameters"] | own["_buffers"] | own
    held = [path.rpartition(".")[2], *(name for name in vars(type(module)) if not name.startswith("interpolate"))]
    held += [name for name, value in tensors.items() if isinstance(value, torch.Tensor)]
    return bool(POSITIONAL.search(type(module).__name__)) or any(map(HELD.search, held))


def _rotary(model: Any) -> Iterator[Part]:
    from posenc.nn.patching.finding import rotary_submodules

    asked = []
    for found in rotary_submodules(model):
        for slot in found.slots:
            box = rotary_box(found.module, slot, int(getattr(found.config, "hidden_size", 96) or 96))
            if box is not None:
                where = found.path if slot is None else f"{found.path} for {slot}"
                asked.append(found.module)
                yield Part(where, box, "rotary", slot, found.module)
    for path, module in model.named_modules():
        values = dict(module.named_buffers(recurse=False)).get("inv_freq")
        if values is not None and values.numel() > 1 and not any(module is other for other in asked):
            yield Part(path, Vector(values.detach().double().flatten().cpu().numpy()), "frequencies", module=module)


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
    for name, function in sorted(vars(home).items()) if home is not None else ():
        if "alibi" not in name or not name.startswith("build") or not callable(function):
            continue
        settings = (getattr(model.config, name, None) for name in ("num_attention_heads", "n_head", "n_heads"))
        heads = next((value for value in settings if isinstance(value, int)), 0)
        if not heads:
            continue

        def bias(n_q: int, n_k: int, build: Any = function, heads: int = heads) -> Array:
            with torch.no_grad():
                try:
                    out = build(torch.ones(1, n_k, dtype=torch.long), heads, torch.float32)
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


RELATIVE = (
    "rel_pos",
    "rel_embed",
    "relative_position_bias_table",
    "relative_attention_bias",
    "relative_key",
    "distance_embedding",
)


def _relative(model: Any) -> Iterator[Part]:
    """Tables of one row for each distance or bucket."""
    for path, value in model.named_parameters():
        names = path.lower().removesuffix(".weight").rsplit(".", 1)
        if value.ndim == 2 and any(name in names[-1] for name in RELATIVE) and "proj" not in names[-1]:
            yield Part(path.removesuffix(".weight"), _rows(value.detach().double().cpu().numpy()), "relative")


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


def functions_called(model: Any) -> set[str] | None:
    """Which of :func:`apply_functions` a pass over a few tokens calls; None if the model does not take tokens alone."""
    import torch

    home = sys.modules[type(model).__module__]
    called: set[str] = set()

    def listening(name: str, function: Any) -> Any:
        def listened(*args: Any, **kwargs: Any) -> Any:
            called.add(name)
            return function(*args, **kwargs)

        return listened

    functions = dict(apply_functions(model))
    try:
        for name, function in functions.items():
            setattr(home, name, listening(name, function))
        with torch.no_grad():
            model(input_ids=torch.arange(6, 13)[None])
    except Exception:  # any model may need more than tokens
        return None
    finally:
        for name, function in functions.items():
            setattr(home, name, function)
    return called or None
