"""Similarity of two positions with 60 digits."""

from mpmath import mp, mpf


def kappa(distance, thetas, weights=None):
    """Mean (or weighted sum) of cosines; frequencies are taken as the exact numbers they are."""
    shares = [mpf(1) / len(thetas)] * len(thetas) if weights is None else [mpf(w) for w in weights]
    return sum((w * mp.cos(mpf(distance) * mpf(t)) for w, t in zip(shares, thetas, strict=True)), mpf(0))


def geometric(dim, base):
    """The frequencies of the paper without rounding."""
    return [mpf(base) ** (-mpf(2 * i) / dim) for i in range(dim // 2)]


def integral(distance, base):
    """The continuous limit as the integral it is."""
    steps = mp.linspace(0, 1, 25)
    return mp.quad(lambda t: mp.cos(distance * mpf(base) ** (-t)), steps)
