"""Patching and unpatching whole models: first everything is planned and checked, then everything is replaced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

import torch
from torch import Tensor, nn

from posenc.errors import PosencError, ShapeError, SpecError, SubjectError
from posenc.nn.lengths import LengthFrom
from posenc.nn.patching import applying
from posenc.nn.patching.choosing import explicit, from_config, handed_over, kinds_of, rotaries_of
from posenc.nn.patching.finding import Found, holders, rotary_submodules
from posenc.nn.patching.observing import Observed, observe
from posenc.nn.patching.replacing import PatchedRotary
from posenc.nn.rotary import RotaryEmbedding
from posenc.spec import Rotary

Model = TypeVar("Model", bound=nn.Module)
Level = Literal["stable", "fast"]


@dataclass(frozen=True)
class Planned:
    """A submodule, and for each of its layer types the encoding that will run and what the submodule answered."""

    found: Found
    slots: dict[str | None, tuple[Rotary, Observed]]


def patch(
    model: Model,
    encoding: Any = None,
    *,
    level: Level = "stable",
    length_from: LengthFrom = "batch",
    length: int | None = None,
) -> Model:
    """Let a transformers model compute its rotary by posenc: angles in float64, untouched by casts of the model.

    Args:
        model: any model of transformers 5 whose rotary submodules return cosines and sines. It is changed in place.
        encoding: what is to run: None for what each submodule's config says (checked against what the submodule
            computes); or a :class:`~posenc.spec.Rotary`, a line of notation, :class:`~posenc.spec.ModelPositions` or
            a :class:`~posenc.records.Reading` for the text layers.
        level: ``stable`` replaces the submodule that returns cosines and sines; ``fast`` also the rotation inside the
            attention layers (float32 with one rounding, any pairing), for the types and releases that it
            was tested with.
        length_from: whose length decides scalings that depend on one (LongRoPE, dynamic NTK): ``batch`` is the largest
            position of each call, as transformers has it; ``row`` the same for each row alone; ``fixed`` is ``length``,
            constant for a cache's life. :func:`declare_lengths` overrules ``batch`` and ``row``.
        length: for ``fixed``.

    Returns:
        The model. Rotary submodules of other towers whose config cannot be read stay as they are; :func:`patched` says
        which ones were replaced.

    Raises:
        SpecError: patched already, or an encoding that the model around it cannot run.
        SubjectError: no such submodule, one that computes something else than its config says, or a model type or
            release that the fast level does not know.

    >>> from transformers import LlamaConfig, LlamaModel
    >>> sizes = {"hidden_size": 16, "intermediate_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1}
    >>> model = patch(LlamaModel(LlamaConfig(vocab_size=9, **sizes)))
    >>> {name: str(module.rotary().value) for name, module in patched(model).items()}
    {'rotary_emb': 'rotary(8)'}
    >>> type(unpatch(model).rotary_emb).__name__
    'LlamaRotaryEmbedding'
    """
    if not isinstance(model, nn.Module):
        raise SubjectError("patch takes a torch module", type(model).__name__)
    if level not in get_args(Level):
        raise SpecError(f"level is one of {', '.join(get_args(Level))}", level)
    if patched(model):
        raise SpecError(
            "a model is patched once", f"{len(patched(model))} rotaries of posenc", "Call unpatch(model) first."
        )
    plan = _planned(model, encoding, level)
    made = [_replacement(p, level, length_from=length_from, length=length) for p in plan]
    layers: list[tuple[nn.Module, bool]] = []
    if level == "fast":
        types = {p.found.config.model_type for p in plan}
        applying.check_supported(types)
        pairings = {value.interleaved for p in plan for value, _ in p.slots.values()}
        if len(pairings) != 1:
            raise SpecError("the fast level has one pairing for all layers of a model", "both")
        layers = [(layer, pairings.copy().pop()) for layer in applying.attention_layers(model, types)]
    for p, replacement in zip(plan, made, strict=True):
        for parent, name in holders(model, p.found.module):
            setattr(parent, name, replacement)
    for layer, interleaved in layers:
        applying.replace_forward(layer, interleaved)
    return model


def unpatch(model: Model) -> Model:
    """Put a model's own rotary submodules back, as they were before :func:`patch`, on the device the model is on now.

    Raises:
        SpecError: the model is not patched.

    >>> from transformers import LlamaConfig, LlamaModel
    >>> sizes = {"hidden_size": 16, "intermediate_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1}
    >>> model = LlamaModel(LlamaConfig(vocab_size=9, **sizes))
    >>> own = model.rotary_emb
    >>> unpatch(patch(model)).rotary_emb is own
    True
    """
    found = patched(model)
    if not found:
        raise SpecError("only a patched model can be unpatched", type(model).__name__)
    device = next((p.device for p in model.parameters()), None)
    for replacement in found.values():
        original = replacement.original_on(device)
        for parent, name in holders(model, replacement):
            setattr(parent, name, original)
    applying.restore_forwards(model)
    return model


def patched(model: nn.Module) -> dict[str, PatchedRotary]:
    """The rotaries of posenc in a model, by path; empty for a model that is not patched.

    >>> patched(nn.Linear(2, 3))
    {}
    """
    return {name: m for name, m in model.named_modules() if isinstance(m, PatchedRotary)}


def declare_lengths(model: Model, lengths: Tensor | list[int] | int | None) -> Model:
    """Declare how long the rows will become, for scalings that depend on it; constant for a cache's life.

    Args:
        model: a patched model.
        lengths: ``(batch,)``, one for each row, or one for all; None takes the declaration back.

    Raises:
        ShapeError: no whole numbers of at least 1.
        SpecError: the model is not patched.

    >>> from transformers import LlamaConfig, LlamaModel
    >>> sizes = {"hidden_size": 16, "intermediate_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1}
    >>> scaling = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}
    >>> config = LlamaConfig(vocab_size=9, max_position_embeddings=32, rope_parameters=scaling, **sizes)
    >>> model = declare_lengths(patch(LlamaModel(config)), 100)
    >>> model.rotary_emb.lengths
    tensor([100])
    """
    found = patched(model)
    if not found:
        raise SpecError("lengths are declared to a patched model", type(model).__name__)
    declared = None if lengths is None else torch.as_tensor(lengths).reshape(-1)
    if declared is not None and (
        declared.is_floating_point() or declared.dtype == torch.bool or declared.numel() == 0 or declared.min() < 1
    ):
        raise ShapeError("declared lengths are whole numbers of at least 1", lengths)
    for module in found.values():
        module.lengths = declared
    return model


def _planned(model: nn.Module, encoding: Any, level: Level) -> list[Planned]:
    submodules = [found for found in rotary_submodules(model) if found.path]  # not the model itself
    text = _text_types(model)
    plan: list[Planned] = []
    unused: list[Found] = []
    wanted = None if encoding is None else handed_over(encoding)
    for found in submodules:
        main = getattr(found.config, "model_type", None) in text
        if wanted is not None:
            if main:
                plan.append(_explicit(found, wanted, level))
            continue
        try:
            chosen = {slot: from_config(found, slot) for slot in found.slots}
        except PosencError:
            if main:
                raise
            continue
        kept = {slot: (value, seen) for slot, (value, seen) in chosen.items() if value is not None and seen is not None}
        if len(kept) == len(chosen):
            plan.append(Planned(found, kept))
        elif main:
            unused.append(found)
    _check_unused(unused, plan)
    if not plan:
        raise SubjectError(
            "a model has submodules with inv_freq whose forward(x, position_ids) returns cosines and sines",
            type(model).__name__,
        )
    return plan


def _check_unused(unused: list[Found], plan: list[Planned]) -> None:
    """A submodule of the text that no layer uses may stay, if the others cover every layer."""
    covered = {value for planned in plan for value, _ in planned.slots.values()}
    for found in unused:
        missing = [value for value in rotaries_of(kinds_of(found), None) if value not in covered]
        if missing:
            raise SubjectError(
                f"a submodule computes what the config says of its layers: {missing[0]}",
                f"{found.path!r}, which computes something else",
                "Hand over the encoding that is to run: patch(model, encoding).",
            )


def _explicit(found: Found, wanted: Any, level: Level) -> Planned:
    values = {slot: explicit(found, slot, wanted, pairing=level == "fast") for slot in found.slots}
    return Planned(found, {slot: (value, observe(found, slot, value.pairs)) for slot, value in values.items()})


def _replacement(planned: Planned, level: Level, **options: Any) -> PatchedRotary:
    rotaries = {slot: RotaryEmbedding.from_value(value, **options) for slot, (value, _) in planned.slots.items()}
    forms = {slot: seen.form for slot, (_, seen) in planned.slots.items()}
    return PatchedRotary(planned.found.module, planned.found.config, rotaries, forms, pairs_only=level == "fast")


def _text_types(model: nn.Module) -> set[str]:
    """The model types of the stacks that an explicit encoding is for."""
    config: Any = getattr(model, "config", None)
    types = {getattr(config, "model_type", None)}
    for asked in ({}, {"decoder": True}, {"encoder": True}):
        try:
            types.add(getattr(config.get_text_config(**asked), "model_type", None))
        except Exception:  # foreign code: configs without text raise, those with several texts as well
            continue
    return {name for name in types if isinstance(name, str)}
