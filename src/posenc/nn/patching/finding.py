"""The submodules of a model that return cosines and sines, found by what they hold and take, not by their names.

transformers 5: a rotary submodule holds inverse frequencies (``inv_freq``, or one buffer for each layer type,
``full_attention_inv_freq``) or a table (``embed_positions``: GPT-J, CodeGen), and
``forward(x, position_ids[, layer_type])`` returns ``(cos, sin)``, ``(sin, cos)`` or one complex tensor.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import nn

TABLE = "embed_positions"
FREQUENCIES = "inv_freq"


@dataclass(frozen=True)
class Found:
    """A rotary submodule.

    Args:
        path: its first name in the model.
        module: itself.
        config: its own config, or that of the nearest module around it.
        slots: the layer types that it tells apart; ``(None,)`` where it does not.
    """

    path: str
    module: nn.Module
    config: Any
    slots: tuple[str | None, ...]


def rotary_submodules(model: nn.Module) -> list[Found]:
    """Every submodule that returns cosines and sines for positions, in the model's order."""
    found = []
    for path, module in model.named_modules():
        slots = _slots(module)
        if slots and "position_ids" in inspect.signature(module.forward).parameters:
            found.append(Found(path, module, _config(model, path), slots))
    return found


def holders(model: nn.Module, module: nn.Module) -> Iterator[tuple[nn.Module, str]]:
    """Every place of the model that holds this submodule, as parent and name; a shared one has several."""
    for parent in model.modules():
        for name, child in list(parent._modules.items()):
            if child is module:
                yield parent, name


def _slots(module: nn.Module) -> tuple[str | None, ...]:
    names = [name for name, _ in module.named_buffers(recurse=False)]
    if TABLE in names or FREQUENCIES in names:
        return (None,)
    ending = f"_{FREQUENCIES}"
    types = [name.removesuffix(ending) for name in names if name.endswith(ending)]
    return tuple(t for t in types if not t.endswith(("original", "long")))


def _config(model: nn.Module, path: str) -> Any:
    """The config of the submodule or of the nearest module around it."""
    parts = path.split(".") if path else []
    for depth in range(len(parts), -1, -1):
        config = getattr(model.get_submodule(".".join(parts[:depth])), "config", None)
        if hasattr(config, "to_dict"):
            return config
    return None
