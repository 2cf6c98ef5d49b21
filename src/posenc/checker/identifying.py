"""``posenc identify``: which encoding a subject follows."""

from __future__ import annotations

from typing import Any

from posenc.checker.checking import check
from posenc.records.finding import CheckReport


def identify(subject: Any, **options: Any) -> CheckReport:
    """What a subject is: the encoding it follows with residual and confidence, or what was recovered.

    Args:
        subject: as for :func:`check`.
        options: as for :func:`check`.

    >>> import numpy as np
    >>> identify(5e5 ** (-np.arange(0, 8, 2) / 8)).identified[0].notation
    'rotary(8, base=500000)'
    """
    return check(subject, None, **options)
