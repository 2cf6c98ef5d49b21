"""A rotation one pair at a time: a complex number times exp(i angle)."""

import cmath


def turned(x, position, thetas, pairs, gain=1.0):
    """The head ``x`` (a list) with the channels ``pairs[i]`` turned by ``position * thetas[i]``."""
    out = list(x)
    for (a, b), theta in zip(pairs, thetas, strict=True):
        z = complex(x[a], x[b]) * cmath.exp(1j * position * theta) * gain
        out[a], out[b] = z.real, z.imag
    return out


def adjacent(dim, first=0):
    """RoFormer's pairs."""
    return [(first + c, first + c + 1) for c in range(0, dim, 2)]


def halves(dim, first=0):
    """GPT-NeoX's pairs."""
    return [(first + c, first + c + dim // 2) for c in range(dim // 2)]
