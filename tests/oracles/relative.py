"""Relative encodings one score at a time, from the papers, with the standard library alone."""

import math


def psi(x, c):
    return math.log(c * abs(x) + 1)


def fire(i, j, c, threshold, eps, w1, b1, w2, b2):
    """Li et al. 2023, equation 7, and its network unit by unit."""
    x = psi(i - j, c) / (psi(max(threshold, i), c) + eps)
    return b2 + sum(v * max(0.0, w * x + b) for w, b, v in zip(w1, b1, w2, strict=True))


def row(distance, dim, base=10000.0, order="interleaved"):
    """A sinusoidal row at any distance, negative ones too."""
    sines = [math.sin(distance / base ** (2 * i / dim)) for i in range(dim // 2)]
    cosines = [math.cos(distance / base ** (2 * i / dim)) for i in range(dim // 2)]
    return sines + cosines if order == "sin|cos" else [v for pair in zip(sines, cosines, strict=True) for v in pair]


def dot(a, b):
    return sum(float(x) * float(y) for x, y in zip(a, b, strict=True))


def clip(n, limit):
    return max(-limit, min(limit, n))


def softmax(scores):
    top = max(scores)
    weights = [math.exp(s - top) for s in scores]
    return [w / sum(weights) for w in weights]


def attend(score, vector, queries, keys, width):
    """Causal attention of one head: ``score(i, j)`` and the value ``vector(i, j)`` for every pair."""
    out = []
    for i in range(queries):
        seen = [j for j in range(keys) if j <= i + keys - queries]
        weights = softmax([score(i, j) for j in seen])
        values = [vector(i, j) for j in seen]
        out.append([sum(w * v[c] for w, v in zip(weights, values, strict=True)) for c in range(width)])
    return out


def cope(logits, q, vectors, positions):
    """Golovneva et al. 2024: gates, counts from key j to the query, and a term between two trained vectors."""
    out = []
    for i, line in enumerate(logits):
        added = []
        for j, logit in enumerate(line):
            if logit == -math.inf:
                added.append(-math.inf)
                continue
            count = sum(1 / (1 + math.exp(-line[t])) for t in range(j, len(line)) if line[t] != -math.inf)
            count = min(count, positions - 1)
            low, high = math.floor(count), math.ceil(count)
            terms = [dot(q[i], [v[at] for v in vectors]) for at in (low, high)]
            added.append(logit + terms[0] * (1 - (count - low)) + terms[1] * (count - low))
        out.append(added)
    return out


def forgotten(gates, i, j):
    """The product of forget gates between a key and a query, as a logarithm (Lin et al. 2025, equation 4)."""
    return math.log(math.prod(1 / (1 + math.exp(-gates[t])) for t in range(j + 1, i + 1)))
