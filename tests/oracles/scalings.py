"""Scaled frequencies one pair at a time, with 40 digits, as the papers and the authors' code state them."""

from mpmath import mp, mpf


def rope(i, d, b):
    return mpf(b) ** (-mpf(2 * i) / d)


def interpolated(i, d, b, s):
    return rope(i, d, b) / mpf(s)


def ntk(i, d, b, s):
    return rope(i, d, mpf(b) * mpf(s) ** (mpf(d) / (d - 2)))


def dynamic(i, d, b, s, original, length):
    longest = max(length, original)
    grown = mpf(s) * longest / original - (mpf(s) - 1)
    return ntk(i, d, b, grown)


def ends(d, b, original, fast, slow, truncate=True):
    """First and last pair of a ramp: the pairs that turn ``fast`` and ``slow`` times in ``original`` positions."""
    low, high = (d * mp.log(original / (mpf(r) * 2 * mp.pi)) / (2 * mp.log(b)) for r in (fast, slow))
    if truncate:
        low, high = mp.floor(low), mp.ceil(high)
    low, high = max(low, 0), min(high, d - 1)
    return low, (high + mpf("0.001") if low == high else high)


def slope(i, low, high):
    return min(max((i - low) / (high - low), mpf(0)), mpf(1))


def yarn(i, d, b, s, original, fast=32, slow=1, truncate=True):
    share = slope(mpf(i), *ends(d, b, original, fast, slow, truncate))
    return interpolated(i, d, b, s) * share + rope(i, d, b) * (1 - share)


def by_parts(i, d, b, s, original):
    first = slope(mpf(i), *ends(d, b, original, 1.25, 0.75))
    second = slope(mpf(i), *ends(d, b, original, 16, 2))
    mixed = ntk(i, d, b, s) * (1 - first) + interpolated(i, d, b, s) * first
    return mixed * second + rope(i, d, b) * (1 - second)


def llama3(i, d, b, s, low, high, original):
    theta = rope(i, d, b)
    wavelength = 2 * mp.pi / theta
    if wavelength < mpf(original) / high:
        return theta
    if wavelength > mpf(original) / low:
        return theta / s
    smooth = (original / wavelength - low) / (mpf(high) - low)
    return (1 - smooth) * theta / s + smooth * theta


def resonance(i, d, b):
    return 2 * mp.pi / mp.nint(2 * mp.pi / rope(i, d, b))
