"""Biases one number at a time."""


def press_slopes(n):
    """The recursive rule that the authors' repository gives for any number of heads."""
    power = 1
    while power * 2 <= n:
        power *= 2
    slopes, ratio = [], 2.0 ** (-8.0 / power)
    for k in range(power):
        slopes.append(ratio ** (k + 1))
    if power < n:
        slopes += press_slopes(2 * power)[::2][: n - power]
    return slopes


def bucket(relative, buckets=32, farthest=128, both=True):
    """T5's bucket of ``j - i`` with whole numbers only: the largest k with (r/e)^n >= (M/e)^k."""
    first = 0
    if both:
        buckets //= 2
        if relative > 0:
            first = buckets
        distance = abs(relative)
    else:
        distance = -relative if relative < 0 else 0
    exact = buckets // 2
    if distance < exact:
        return first + distance
    n, k = buckets - exact, 0
    while k + 1 < n and distance**n * exact ** (k + 1) >= farthest ** (k + 1) * exact**n:
        k += 1
    return first + exact + k


def shares(n_q, n_k, offset, value):
    """``value(i, j)`` for the positions of every query and key."""
    return [[value(q + offset, k) for k in range(n_k)] for q in range(n_q)]
