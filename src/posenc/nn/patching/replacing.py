"""The submodule that stands where a model's own rotary stood."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from posenc.errors import ShapeError, SpecError
from posenc.nn.interfaces import Positions
from posenc.nn.patching.observing import Form
from posenc.nn.rotary import RotaryEmbedding

CARRIED = ("config", "layer_types", "mrope_section")
"""Attributes of a rotary submodule that transformers' models read from outside."""
ALL = "all"


class PatchedRotary(nn.Module):
    """Cosines and sines of an encoding, in the form that the model around it expects.

    Angles are exact (:mod:`posenc.nn.turns`) and rounded once to float32, then to the model's dtype; no cast of the
    model touches the frequencies. The model's own submodule is kept aside, unregistered and uncalled.

    Args:
        original: the submodule that it replaces.
        config: what that was made from.
        rotaries: one for each layer type; under ``None`` where there is one for all.
        forms: what the original returned, by layer type.
        pairs_only: return one float32 column for each pair, ``(batch, 1, tokens, pairs)``, for the fast level.
    """

    def __init__(
        self,
        original: nn.Module,
        config: Any,
        rotaries: dict[str | None, RotaryEmbedding],
        forms: dict[str | None, Form],
        *,
        pairs_only: bool = False,
    ) -> None:
        super().__init__()
        self.rotaries = nn.ModuleDict({slot or ALL: rotary for slot, rotary in rotaries.items()})
        self.forms = {slot or ALL: form for slot, form in forms.items()}
        self.pairs_only = pairs_only
        self.lengths: Tensor | None = None
        self._aside = (original, config)  # in a tuple, so that it is no child: casts pass it by
        for name in CARRIED:
            if hasattr(original, name):
                setattr(self, name, getattr(original, name))
        self.train(original.training)

    @property
    def original(self) -> nn.Module:
        """The submodule that was replaced, as it was."""
        return self._aside[0]

    def original_on(self, device: torch.device | None) -> nn.Module:
        """The submodule that was replaced, on a device; one that was never more than a plan (meta) is made anew."""
        original, config = self._aside
        places = {b.device for b in original.buffers()}
        if device is None or device.type == "meta" or places == {device}:
            return original
        if torch.device("meta") in places:
            with device:
                return type(original)(config)
        return original.to(device)

    def rotary(self, layer_type: str | None = None) -> RotaryEmbedding:
        """The rotary of a layer type."""
        known: Any = self.rotaries
        name = ALL if layer_type is None or ALL in known else layer_type
        if name not in known:
            raise SpecError(f"the layer type is one of {', '.join(known)}", layer_type)
        return known[name]  # type: ignore[no-any-return]

    def forward(self, x: Tensor, position_ids: Tensor | None = None, layer_type: str | None = None) -> Any:
        """Cosines and sines; signature and result of the submodule that was replaced.

        Args:
            x: hidden states ``(batch, tokens, width)``, for their dtype.
            position_ids: ``(batch, tokens)``, or ``(axes, batch, tokens)``; 0, 1, 2… if None.
            layer_type: for models that tell their layers apart.
        """
        rotary = self.rotary(layer_type)
        ids = torch.arange(x.shape[-2], device=x.device)[None] if position_ids is None else position_ids
        if rotary.axes > 1 and ids.ndim == 2:
            ids = ids.expand(rotary.axes, *ids.shape)
        if ids.ndim != 2 + (rotary.axes > 1):
            raise ShapeError(f"position_ids are (batch, tokens) for {rotary.axes} axes", tuple(ids.shape))
        wide = torch.float64 if x.dtype == torch.float64 else torch.float32
        cos, sin = rotary.prepare(Positions(ids, self._lengths(rotary, ids)), dtype=wide)[:2]
        if self.pairs_only:
            return cos, sin
        return self.forms[ALL if ALL in self.forms else str(layer_type)].lay_out(cos[:, 0], sin[:, 0], x.dtype)

    def _lengths(self, rotary: RotaryEmbedding, ids: Tensor) -> Tensor | None:
        """What the rows declare; with ``length_from="row"`` otherwise each row's largest position so far plus one."""
        if not rotary.lengths.depends:
            return None
        if self.lengths is not None:
            return self.lengths.to(ids.device)
        if rotary.lengths.length_from != "row":
            return None
        largest = ids.amax(-1) if rotary.axes == 1 else ids.amax((0, -1))
        return largest.floor().long() + 1

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Whatever the replaced submodule saves (ESM: ``inv_freq``) is saved all the same: files fit both ways."""
        super()._save_to_state_dict(destination, prefix, keep_vars)
        self.original._save_to_state_dict(destination, prefix, keep_vars)

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, meta: Any, strict: bool, missing: Any, unexpected: Any, errors: Any
    ) -> None:
        found: list[str] = []
        rest = (meta, strict, missing, found, errors)
        super()._load_from_state_dict(state_dict, prefix, *rest)
        known = {prefix + name for name in self.original.state_dict()}
        unexpected.extend(name for name in found if name not in known)
        rest = (meta, strict, missing, [], errors)  # the original knows nothing of our children
        self.original._load_from_state_dict(state_dict, prefix, *rest)

    def extra_repr(self) -> str:
        columns = "pairs only" if self.pairs_only else ", ".join(sorted({f.columns for f in self.forms.values()}))
        return f"in place of {type(self.original).__name__}, columns: {columns}"
