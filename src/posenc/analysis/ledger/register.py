"""All claims in order: words from the data, verdicts from the functions."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from posenc.analysis.ledger import distance, rotation
from posenc.analysis.ledger.ground import Ground
from posenc.analysis.ledger.verdict import Found
from posenc.records.analysis import Claim, Ledger

CLAIMS: dict[int, Callable[[Ground], Found]] = {
    1: rotation.paired_is_rotation,
    2: rotation.pair_is_relative,
    3: rotation.shift_is_linear,
    4: rotation.norm_is_constant,
    5: distance.never_collide,
    6: distance.monotone,
    7: distance.tends_to_zero,
    8: distance.even_scales,
    9: distance.base_is_free,
    10: rotation.additive_is_relative,
    11: rotation.rotary_is_relative,
    12: distance.longest_wavelength,
    13: distance.extrapolates_by_period,
    14: rotation.learned_cannot_extrapolate,
    15: distance.local_and_global,
    16: distance.rotary_is_better,
    17: rotation.only_solution,
    18: rotation.concatenation_contains_addition,
    19: rotation.order_is_invisible,
    20: rotation.relative_explicitly,
    21: distance.captures_seasons,
    22: distance.fourier_basis,
    23: distance.fades,
}


def ledger(ground: Ground | None = None) -> Ledger:
    """Examine every claim on the given ground (the paper's sinusoid of width 512 unless given).

    >>> ledger().claims[0].verdict
    'exact'
    """
    ground = ground or Ground()
    words = {int(entry["number"]): entry for entry in _words()}
    return Ledger(subject=ground.name, claims=tuple(_claim(words[n], f(ground)) for n, f in CLAIMS.items()))


def _words() -> list[dict[str, Any]]:
    text = files("posenc.analysis.ledger").joinpath("claims.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["claim"]  # type: ignore[no-any-return]


def _claim(words: dict[str, Any], found: Found) -> Claim:
    return Claim(
        number=words["number"],
        claim=words["claim"],
        claim_zh=words["claim_zh"],
        verdict=found.verdict,
        evidence=found.evidence,
        evidence_zh=found.evidence_zh,
        numbers=tuple(found.numbers.items()),
        source=words["source"],
    )
