"""Tables as tutorials print them: an exponent that counts the index twice, a cosine with the next exponent."""

from __future__ import annotations

import math

import numpy as np

from posenc.checker.boxes import Array
from posenc.checker.matching.explanation import deviation
from posenc.checker.matching.spectrum import Wanted
from posenc.formulas.spectrum import scheduled
from posenc.records.finding import Recovered
from posenc.spec import Geometric, Sinusoidal


def unequal_pairs(theta: Array, encoding: Sinusoidal) -> tuple[str, tuple[str, ...], list[Recovered]] | None:
    """Columns of an interleaved table whose exponents are not those of pairs; None if no known mistake gives them.

    Column ``c`` may have the exponent ``c / d``, ``2 c / d``, or ``2 (2i + 1) / d`` where ``i`` steps by two.
    """
    geometric = encoding.schedule
    if not isinstance(geometric, Geometric) or encoding.dim < 6:
        return None
    d = encoding.dim
    single = scheduled(Geometric(base=geometric.base), d, 2.0 * d)  # exponent c / d
    double = scheduled(Geometric(base=geometric.base), d, float(d))  # exponent 2 c / d
    forms: tuple[tuple[str, Array, str, float], ...] = (
        ("c/d", single, "each channel has its own exponent, c / d: the cosine uses 2i + 1", 1.0),
        ("2c/d", double, "the index already steps by two and is doubled again; the cosine uses i + 1", 2.0),
    )
    even = np.repeat(np.arange(d)[::2], 2)[:d]
    mixed = np.where(
        np.arange(d) % 2 == 0,
        single,
        scheduled(Geometric(base=geometric.base), 2 * d, 2.0 * d)[np.minimum(even + 2, 2 * d - 1)],
    )
    forms += (("next", mixed, "the cosine has the frequency of the next pair", 1.0),)
    for _, predicted, words, power in forms:
        strong = predicted > 1e-2
        if strong.sum() >= 4 and deviation(theta[strong], predicted[strong]).max() < 2e-2:
            exact = math.log(1 / theta[2]) / math.log(geometric.base) * d / 2 if theta[2] > 0 else math.nan
            cause = words
            if power == 2.0:
                cause += f"; the sines alone are those of base {geometric.base * geometric.base:g}, the square"
            return (
                cause,
                ("exponent",),
                [Recovered(name="exponent of channel 2 over the wanted one", value=exact, expected=1.0)],
            )
    return None


def wanted_columns(encoding: Sinusoidal) -> Array:
    """``(dim,)``: the wanted frequency of each channel of an interleaved table."""
    return np.repeat(Wanted(encoding).theta(), 2)[: encoding.dim]
