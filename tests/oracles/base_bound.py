"""The criterion for a base, as it is written: one cosine after the other."""

from math import cos, fsum

import numpy as np
from mpmath import mp, mpf


def lowest(context, head_dim, base):
    """The smallest sum over D = 1..context and its distance, by direct cosines."""
    thetas = [base ** (-2 * i / head_dim) for i in range(head_dim // 2)]
    return min((fsum(cos(distance * theta) for theta in thetas), distance) for distance in range(1, context + 1))


def lowest_of_many(context, head_dim, bases):
    """The smallest sum for each base, float64, without distances."""
    distances = np.arange(1, context + 1)[:, None]
    exponent = -np.arange(head_dim // 2) * 2 / head_dim
    return np.array([np.cos(distances * float(b) ** exponent).sum(1).min() for b in bases])


def exact(distance, head_dim, log_base):
    """The mean of cosines at one distance with 50 digits."""
    with mp.workdps(max(50, mp.dps)):
        pairs = head_dim // 2
        terms = (mp.cos(distance * mp.exp(-mpf(log_base) * i / pairs)) for i in range(pairs))
        return sum(terms) / pairs
