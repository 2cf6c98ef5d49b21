"""Which encoding a rotary submodule runs: what its config says, or what the caller hands over."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from posenc.errors import PosencError, SpecError, SubjectError
from posenc.formats.huggingface import read_config
from posenc.formulas.phases import coordinates, cos_sin
from posenc.formulas.scalings import frequencies
from posenc.nn.patching.finding import Found
from posenc.nn.patching.observing import ASKED, ASKED_APART, Observed, observe
from posenc.records import Reading
from posenc.spec import LayerKind, Mixed, ModelPositions, Rotary, parse

LAYOUT = ("head_dim", "rotary_dim", "where", "interleaved")


def kinds_of(found: Found) -> list[LayerKind]:
    """The kinds of layers that the submodule's config speaks of.

    Raises:
        FormatError, SpecError: the config cannot be read.
    """
    if found.config is None:
        raise SubjectError("a rotary submodule has a config, or stands in a module that has one", found.path)
    reading = read_config(found.config.to_dict(), name=found.path, source="model.config")
    return [kind for part in reading.parts for kind in part.positions.kinds]


def rotaries_of(kinds: list[LayerKind], slot: str | None) -> list[Rotary]:
    """The distinct rotaries of the layers of one type; of all layers where the submodule tells none apart."""
    chosen = [kind for kind in kinds if slot is None or kind.name.split(",")[0] == slot]
    return list(dict.fromkeys(e for kind in chosen for e in kind.encodings if isinstance(e, Rotary)))


def from_config(found: Found, slot: str | None) -> tuple[Rotary | None, Observed | None]:
    """What the config says that the submodule computes, compared with what it computes.

    Returns:
        The encoding and the submodule's answer; nothing where no layer uses the submodule.

    Raises:
        SubjectError: the submodule computes something else than its config says.
    """
    candidates = rotaries_of(kinds_of(found), slot)
    closest, closest_seen, smallest = None, None, np.inf
    for candidate in candidates:
        seen = observe(found, slot, candidate.pairs, frequencies(candidate).axes)
        distance = difference(candidate, seen)
        if distance < smallest:
            closest, closest_seen, smallest = candidate, seen, distance
    if closest is None or closest_seen is None or smallest <= closest_seen.error:
        return closest, closest_seen
    if len(candidates) > 1:  # bases by layer: transformers keeps a submodule of the default base that no layer calls
        return None, None
    raise SubjectError(
        f"the rotary submodule {found.path!r} computes what its config says: {closest}",
        f"cosines or sines that differ by {smallest:.2g} within {max(ASKED)} positions",
        "Hand over the encoding that is to run: patch(model, encoding).",
    )


def difference(encoding: Rotary, seen: Observed) -> float:
    """The largest difference between exact cosines and sines and those of a submodule."""
    f = frequencies(encoding, max(ASKED) + 1)
    asked = [(np.array(ASKED), (seen.cos, seen.sin))]
    if f.axes > 1:
        asked[0] = (np.repeat(np.array(ASKED)[:, None], f.axes, axis=1), (seen.cos, seen.sin))
        if seen.apart is not None:
            asked.append((np.array(ASKED_APART)[: f.axes].T, seen.apart))
    largest = 0.0
    for ids, answers in asked:
        for exact, answer in zip(cos_sin(coordinates(ids, f.axes), f.theta), answers, strict=True):
            largest = max(largest, float((torch.from_numpy(f.gain * exact) - answer).abs().max()))
    return largest


def handed_over(encoding: Any) -> Rotary | ModelPositions:
    """The caller's encoding as one rotary for all layers, or as positions with kinds of layers.

    Raises:
        SpecError: it is neither.
    """
    if isinstance(encoding, str):
        found = parse(encoding)
        encoding = found[0] if len(found) == 1 else found
    if isinstance(encoding, Reading):
        encoding = encoding.positions
    if not isinstance(encoding, Rotary | ModelPositions):
        raise SpecError(
            "patch takes a rotary, a line of notation for one, ModelPositions or a Reading",
            encoding if isinstance(encoding, tuple | str) else type(encoding).__name__,
        )
    return encoding


def explicit(found: Found, slot: str | None, wanted: Rotary | ModelPositions, *, pairing: bool) -> Rotary:
    """The caller's encoding for one layer type, checked against what the model around the submodule can run.

    Args:
        found, slot: the submodule and the layer type.
        wanted: what was handed over.
        pairing: whether the application is replaced too, so that the pairs may be others.

    Raises:
        SpecError: the model's own code would run something else.
    """
    kinds = _known_kinds(found)
    encoding = wanted if isinstance(wanted, Rotary) else _of_kind(wanted, slot, kinds)
    if encoding.xpos_scale_base is not None or isinstance(encoding.axes, Mixed):
        raise SpecError(
            "a model's own rotary turns queries and keys of all heads alike",
            str(encoding),
            "xPos and mixed axes do not.",
        )
    for own in rotaries_of(kinds, slot)[:1]:
        fixed = [name for name in LAYOUT if not (pairing and name == "interleaved")]
        if any(getattr(own, name) != getattr(encoding, name) for name in fixed):
            raise SpecError(
                f"the model's attention fixes {', '.join(fixed)}; its config reads {own}",
                str(encoding),
                "Change the frequencies alone, as in encoding.replace(schedule=...), or convert the weights.",
            )
        if frequencies(own).axes != frequencies(encoding).axes:
            raise SpecError(f"the model gives positions with {frequencies(own).axes} axes", str(encoding))
        if frequencies(own).logit_scale != frequencies(encoding).logit_scale:
            raise SpecError(
                f"the softmax scale stays the model's own; its config reads {own}",
                str(encoding),
                "Leave softmax_mscale as the config has it, or change the scale of the attention layers.",
            )
    return encoding


def _known_kinds(found: Found) -> list[LayerKind]:
    try:
        return kinds_of(found)
    except PosencError:  # the caller says what runs; an unknown config only means fewer checks
        return []


def _of_kind(wanted: ModelPositions, slot: str | None, own: list[LayerKind]) -> Rotary:
    candidates = rotaries_of(list(wanted.kinds), slot) or rotaries_of(list(wanted.kinds), None)
    if len(candidates) != 1:
        where = "this submodule serves" if slot is None else f"{slot} serves"
        raise SpecError(f"the layers that {where} have one rotary", f"{len(candidates)} of them")
    others = _others(list(wanted.kinds))
    if own and others - _others(own):
        raise SpecError(
            "patch changes rotaries; other encodings stay the model's own", ", ".join(map(str, others - _others(own)))
        )
    return candidates[0]


def _others(kinds: list[LayerKind]) -> set[Any]:
    return {e for kind in kinds for e in kind.encodings if not isinstance(e, Rotary)}
