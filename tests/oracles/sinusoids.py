"""Sinusoidal tables as their sources write them, one entry at a time, with 60 digits."""

from mpmath import mp, mpf


def vaswani(position, dim, base=10000):
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(the same); section 3.5."""
    row = []
    for channel in range(dim):
        two_i = channel if channel % 2 == 0 else channel - 1
        angle = mpf(position) / mpf(base) ** (mpf(two_i) / dim)
        row.append(mp.sin(angle) if channel % 2 == 0 else mp.cos(angle))
    return row


def tensor2tensor(position, dim, longest=10000):
    """All sines, then all cosines, then a zero if the width is odd; timescales from 1 to ``longest`` inclusive."""
    timescales = dim // 2
    step = mp.log(longest) / max(timescales - 1, 1)
    scaled = [mpf(position) * mp.exp(-step * i) for i in range(timescales)]
    return [mp.sin(x) for x in scaled] + [mp.cos(x) for x in scaled] + [mpf(0)] * (dim % 2)


def diffusion(step, dim, longest=10000, flip=False, shift=1):
    """DDPM's time step embedding; Stable Diffusion exchanges the halves and has no shift."""
    half = dim // 2
    angles = [mpf(step) * mp.exp(-mp.log(longest) * i / (half - shift)) for i in range(half)]
    sines, cosines = [mp.sin(a) for a in angles], [mp.cos(a) for a in angles]
    return cosines + sines if flip else sines + cosines


def mae(row, column, dim):
    """MAE's patch at (row, column): half the width for the column, half for the row, each sines then cosines."""
    out = []
    for coordinate in (column, row):
        omegas = [mpf(1) / mpf(10000) ** (mpf(i) / (dim // 4)) for i in range(dim // 4)]
        out += [mp.sin(coordinate * w) for w in omegas] + [mp.cos(coordinate * w) for w in omegas]
    return out
