"""Inspection of anything: a model becomes an Inspection, a table or a function of somebody's own an Account."""

from __future__ import annotations

from typing import Any

from posenc.analysis import inspection
from posenc.analysis.ownership import is_own
from posenc.records import Inspection
from posenc.records.account import Account


def inspect(subject: Any, *, similarity: bool = True) -> Inspection | Account:
    """Return what a position encoding is, as a record.

    Args:
        subject: anything :func:`posenc.read` takes, or what it returned; or an encoding of your own: an array
            ``(rows, width)``, a ``.npy`` file, a function of positions, ``module:name`` or ``file.py:name`` of one.
        similarity: for a model, also compute the similarity of positions against their distance, as a curve.

    Returns:
        The inspection of a model; for a table or a function an account whose ``array`` has its facts.

    Raises:
        PosencError: the subject cannot be read.

    >>> import numpy
    >>> inspect(numpy.eye(5)).array.rank.value
    5.0
    """
    if is_own(subject):
        from posenc.analysis.account import account

        return account(subject)
    return inspection.inspect(subject, similarity=similarity)
