"""How the register calls modules and formulas: positions, cases, and formulas that are put together from several."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from posenc import formulas
from posenc.nn import Positions

QUERIES, KEYS = 3, 7


class Case(NamedTuple):
    """What every module of a place is called with; all sizes that may differ do."""

    at: np.ndarray
    q: Tensor
    k: Tensor
    x: Tensor
    dtype: torch.dtype

    @property
    def ids(self) -> Tensor:
        """Positions as modules take them: axes first."""
        return torch.from_numpy(np.ascontiguousarray(np.moveaxis(self.at, -1, 0) if self.at.ndim > 1 else self.at))

    @property
    def q_at(self) -> np.ndarray:
        """Positions of the queries: the last ones."""
        return self.at[-QUERIES:]

    @property
    def step(self) -> np.ndarray:
        """``i - j`` ``(queries, keys)``."""
        return self.q_at[:, None] - self.at[None]


Parameters = dict[str, np.ndarray]


# where positions come from


def few(value: Any) -> np.ndarray:
    """Integers out of order that every table of the register has a row for; one column for each axis."""
    axes = len(getattr(value, "shape", None) or getattr(getattr(value, "axes", None), "pairs", None) or (0,))
    axes = getattr(value, "axes", axes) if isinstance(getattr(value, "axes", None), int) else axes
    if getattr(value, "kind", "") == "hierarchical" and not value.sizes:
        axes = len(value.levels)
    columns = np.array([[0, 3, 1, 4, 2, 5, 6], [4, 0, 2, 1, 6, 5, 3], [1, 5, 0, 3, 2, 4, 6]])
    return columns[0] if axes == 1 else columns[:axes].T


def real(value: Any) -> np.ndarray:
    """The same, between integers."""
    return few(value) * 0.375 - 0.5


def stamps(value: Any) -> np.ndarray:
    """Epoch seconds."""
    return few(value) * 7_654_321 + 951_782_399  # from the last second before 2000-02-29


def far(value: Any) -> np.ndarray:
    """Ascending positions with gaps."""
    return np.array([0, 1, 2, 5, 11, 23, 47])


def spread(value: Any) -> np.ndarray:
    """The same on every axis of a rotary, at different speeds."""
    axes = 2 if getattr(value.axes, "kind", "") == "mixed" else len(getattr(value.axes, "pairs", (0,)))
    return far(value) if axes == 1 else np.stack([far(value) * (a + 1) for a in range(axes)], -1)


# how modules are called


def vectors(module: Any, case: Case) -> Tensor:
    """Position vectors of an encoding at the input."""
    return module.vectors(case.ids, case.dtype)[0]


def turned(module: Any, case: Case) -> Tensor:
    """Queries and keys of a rotary, all tokens."""
    at = Positions(case.ids, torch.tensor([9]))
    ready = module.prepare(at, dtype=case.dtype)
    q, k = module(case.k, -case.k, ready)
    return torch.cat((q, k))


def biased(module: Any, case: Case) -> Tensor:
    """A bias."""
    return module.bias(case.q, case.k, case.ids[-QUERIES:], case.ids)[0]


def scored(module: Any, case: Case) -> Tensor:
    """A bias beside the content's own score."""
    own = module.scale * module.logit_scale * (case.q @ case.k.transpose(-1, -2))
    return (own + module.bias(case.q, case.k, case.ids[-QUERIES:], case.ids))[0]


def with_values(module: Any, case: Case) -> Tensor:
    """A bias, and what vectors in the values add, one after the other."""
    at = case.ids[-QUERIES:], case.ids
    parts = [module.bias(case.q, case.k, *at)]
    if module.value.values:
        parts.append(module.values(weights(case), *at))
    return torch.cat(parts, -1)[0]


def weights(case: Case) -> Tensor:
    """Weights of attention ``(1, heads, queries, keys)``."""
    return (case.q @ case.k.transpose(-1, -2)).softmax(-1)


# formulas that are put together from several


def rotary(value: Any, _: Parameters, case: Case, theta: np.ndarray | None = None) -> np.ndarray:
    """Queries and keys turned, frequencies trained or not."""
    f = formulas.frequencies(value, 9)
    f = f if theta is None else f.replace(theta=theta)
    k = case.k.double().numpy()
    sides = ((k, "query"), (-k, "key"))
    return np.concatenate([formulas.rotate(x, case.at, value, frequencies=f, role=r) for x, r in sides])


def rotary_of(value: Any, p: Parameters, case: Case) -> np.ndarray:
    """The same with what is trained."""
    if "theta" in p:
        return rotary(value, p, case, p["theta"])
    theta = formulas.frequencies(value, 9).theta
    return rotary(value, p, case, theta * np.exp(p["log_ratio"]) if "log_ratio" in p else None)


def sinusoid_of(value: Any, p: Parameters, case: Case) -> np.ndarray:
    """A table; with trained frequencies one sine and cosine at a time."""
    if not value.learned:
        return formulas.sinusoidal_table(value, case.at)
    theta = formulas.spectrum.unscaled(value).theta[0] * np.exp(p["log_ratio"])
    angle = case.at[:, None] * theta
    return np.stack([np.sin(angle), np.cos(angle)], -1).reshape(len(angle), -1)


def learned_of(value: Any, p: Parameters, case: Case) -> np.ndarray:
    """Rows of the table, those of the prefix first."""
    return p["weight"][np.concatenate([np.arange(value.prefix), formulas.learned_rows(value, case.at)])]


def adjusted_of(value: Any, p: Parameters, case: Case) -> np.ndarray:
    """The sinusoid and its correction."""
    return formulas.adjusted_table(value, case.at, **p)


def learnable_fourier_of(value: Any, p: Parameters, case: Case) -> np.ndarray:
    """Features through the network."""
    named = {n.replace(".weight", "").replace(".", "_"): v for n, v in p.items()}
    return formulas.learnable_fourier(value, case.at, **named)


def vectors_of(value: Any, rows: np.ndarray, added: np.ndarray, case: Case) -> np.ndarray:
    """``q . r / sqrt(d)``, and ``sum of weights * r`` where the values have it; rows ``(queries, keys, head_dim)``."""
    q = case.q[0].double().numpy()
    parts = [np.einsum("hid,ijd->hij", q, rows) / np.sqrt(value.head_dim) * value.keys]
    if value.values:
        parts.append(np.einsum("hij,ijd->hid", weights(case)[0].double().numpy(), added))
    return np.concatenate(parts, -1)


def shaw_of(value: Any, p: Parameters, case: Case) -> np.ndarray:
    """Trained vectors of the clipped distance."""
    rows = formulas.shaw_rows(value, case.step)
    none = np.zeros((2 * value.limit + 1, value.head_dim))
    return vectors_of(value, p.get("key_vectors", none)[rows], p.get("value_vectors", none)[rows], case)


def relative_sinusoid_of(value: Any, _: Parameters, case: Case) -> np.ndarray:
    """The sinusoid of the distance."""
    rows = formulas.relative_sinusoid(value.sinusoid, case.step, value.limit)
    return vectors_of(value, rows, rows, case)


def fire_of(value: Any, p: Parameters, case: Case) -> np.ndarray:
    """The network of the distance."""
    network = {"w1": p["inner.weight"][:, 0], "b1": p["inner.bias"], "w2": p["outer.weight"], "b2": p["outer.bias"]}
    scalars = {"c": p["c"].item(), "multiplier": p["multiplier"].item()}
    return formulas.fire_at(value, case.q_at[:, None], case.at[None], **network, **scalars)


def transformer_xl_of(value: Any, p: Parameters, case: Case) -> np.ndarray:
    """All four terms."""
    q, k = case.q[0].double().numpy(), case.k[0].double().numpy()
    return formulas.transformer_xl_scores(value, q, k, case.step, u=p["u"], v=p["v"], weight=p["projection.weight"])


def disentangled_of(value: Any, p: Parameters, case: Case) -> np.ndarray:
    """All three terms, the table normalised where the value says so."""
    table = p["table"]
    if value.norm:
        table = (table - table.mean(-1, keepdims=True)) / np.sqrt(table.var(-1, keepdims=True) + 1e-7)
        table = table * p["normalised.weight"] + p["normalised.bias"]
    q, k = case.q[0].double().numpy(), case.k[0].double().numpy()
    projections = {"key": p.get("key.weight"), "query": p.get("query.weight")}
    return formulas.disentangled_scores(value, q, k, case.step, table=table, **projections)


def masked(case: Case) -> Tensor:
    """Scores ``(1, heads, queries, keys)`` with the future hidden."""
    scores = case.q @ case.k.transpose(-1, -2)
    later = torch.from_numpy(case.step < 0)
    return scores.masked_fill(later, -torch.inf)


def cope_called(module: Any, case: Case) -> Tensor:
    """What is added where a key is seen, 0 elsewhere."""
    scores = masked(case)
    added = module(scores, case.q, None, None, None) - scores
    return added[0].nan_to_num(0.0)


def cope_of(value: Any, p: Parameters, case: Case) -> np.ndarray:
    """The same by the formula."""
    scores = masked(case)[0].double().numpy()
    with np.errstate(invalid="ignore"):
        added = formulas.cope_scores(value, scores, case.q[0].double().numpy(), p["vectors"]) - scores
    return np.nan_to_num(added)


def forgetting_of(value: Any, p: Parameters, case: Case) -> np.ndarray:
    """Sums of the gates' logarithms."""
    gates = case.x[0].double().numpy() @ p["gates.weight"].T + p.get("gates.bias", 0.0)
    return formulas.forgetting_positions(value, gates.T)


def placed(module: Any, case: Case) -> Tensor:
    """Positions made from the content."""
    return module(case.x, Positions(case.ids))[0].ids[0].to(case.dtype)


def selective_called(module: Any, case: Case) -> Tensor:
    """Angles ``(heads, tokens, pairs)``."""
    at, _ = module(case.x, Positions(case.ids))
    theta = module.applied.numbers(at.ids.device)["theta"]
    return (at.ids.movedim(0, -1) * theta)[0].to(case.dtype)


def selective_of(value: Any, p: Parameters, case: Case) -> np.ndarray:
    """The same by the formula."""
    x = case.x[0].double().numpy()
    return formulas.selective_phases(value, x, down=p["down.weight"], up=p["up.weight"], kernel=p["kernel"])
