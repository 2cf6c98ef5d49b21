"""Frequencies by layer against a model's layers: each layer its own base and scaling."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from posenc.checker.boxes import Vector
from posenc.checker.examining.cosines import examine_vector
from posenc.checker.expecting import Expected
from posenc.checker.gathering import Gathered
from posenc.checker.matching.geometric import fit_geometric
from posenc.checker.matching.spectrum import Wanted
from posenc.checker.subjects.arrays import stored_dtype
from posenc.errors import SubjectError
from posenc.records.finding import Evidence, FirstWrong, Recovered
from posenc.spec import Rotary

NUMBER = re.compile(r"(?:^|[^0-9])(\d+)(?:[^0-9]|$)")


def is_layered(arrays: dict[str, Any]) -> bool:
    """Whether arrays are several vectors whose names carry different numbers."""
    if len(arrays) < 2 or any(np.ndim(v) != 1 for v in arrays.values()):
        return False
    numbers = [NUMBER.search(name) for name in arrays]
    return all(numbers) and len({m.group(1) for m in numbers if m}) == len(arrays)


def examine_layers(notes: Gathered, arrays: dict[str, Any], wanted: Expected) -> None:
    """Compare each layer's vector with that layer's encoding; a vector of another kind of layer is named.

    Raises:
        SubjectError: what is wanted has no layers.
    """
    at = None if wanted.reading is None else wanted.reading.positions
    if at is None or not at.layers:
        raise SubjectError("vectors by layer are compared with a model that has layers", wanted.line)
    kinds = [[e for e in kind.encodings if isinstance(e, Rotary)] for kind in at.kinds]
    notes.ran("layers one by one")
    wrong: list[tuple[int, Any, Any]] = []
    for name, values in arrays.items():
        match = NUMBER.search(name)
        layer = int(match.group(1)) if match else 0
        if layer >= len(at.layers) or not kinds[at.layers[layer]]:
            notes.note(f"{name}: the wanted model has no rotary in layer {layer}")
            continue
        right = kinds[at.layers[layer]][0]
        vector = np.asarray(values, dtype=np.float64)
        others = [e for i, es in enumerate(kinds) if i != at.layers[layer] for e in es]
        taken = next((e for e in others if _is(vector, e)), None)
        if taken is not None and not _is(vector, right):
            wrong.append((layer, right, vector))
            continue
        tried = Gathered(where=name)
        examine_vector(tried, Vector(vector, dtype=stored_dtype(values)), right)
        notes.findings.extend(tried.findings)
    if wrong:
        layer, right, vector = wrong[0]
        fit = fit_geometric(vector)
        base = fit.base(right.rotary_dim) if fit else 0.0
        expected = float(getattr(right.schedule, "base", 0.0))
        notes.found(
            "defect",
            ("per-layer-base", "config-parsing"),
            f"{len(wrong)} layers have the frequencies of another kind of layer",
            evidence=[Evidence(name=f"base of layer {layer}", expected=expected, seen=base)],
            first=FirstWrong(pair=layer, of="layer"),
            cause="one base is used for all layers: the kind of layer was not read",
            like="perlayer",
            recovered=[Recovered(name="base", value=base, expected=expected)],
        )
        notes.recover("base", base, expected)


def _is(vector: np.ndarray, encoding: Rotary) -> bool:
    theta = Wanted(encoding).theta()
    return theta.shape == vector.shape and bool(np.allclose(theta, vector, rtol=1e-4))
