"""Claims about turning: 1-4, 10, 11, 14, 17-20."""

from __future__ import annotations

import numpy as np

from posenc.analysis.counting import counted
from posenc.analysis.ledger.ground import Ground
from posenc.analysis.ledger.verdict import Found, tiny
from posenc.analysis.permutation import permutation_facts
from posenc.analysis.precision import Dtype, rounded
from posenc.analysis.symmetry import shift_matrix, toeplitz_defect
from posenc.errors import ShapeError
from posenc.formulas.learned import learned_rows
from posenc.spec import Learned

TINY = 1e-9
"""Float64 angles at the positions used here are right to this."""
SHIFT = 7
LOW: tuple[Dtype, ...] = ("float32", "bfloat16")
POSITIONS = np.arange(211)


def paired_is_rotation(g: Ground) -> Found:
    """1: every pair keeps length 1, and a step turns all positions by the same angle."""
    rows = g.table(POSITIONS, g.theta).reshape(len(POSITIONS), -1, 2)
    length = float(np.abs(np.sqrt((rows**2).sum(2)) - 1).max())
    phase = np.unwrap(np.arctan2(rows[..., 0], rows[..., 1]), axis=0)
    turn = float(np.ptp(np.angle(np.exp(1j * (np.diff(phase, axis=0) - g.theta))), axis=0).max())
    exact = max(length, turn) < TINY
    return Found(
        "exact" if exact else "counterexample",
        f"Each pair has length 1 to {tiny(length)} and turns by theta at every step to {tiny(turn)}.",
        f"每一对的长度为 1（误差 {tiny(length)}），每步转过 theta（误差 {tiny(turn)}）。",
        {"length error": length, "turn error": turn},
    )


def pair_is_relative(g: Ground) -> Found:
    """2: K of every pair is constant along diagonals; a lone sine (odd width) is not."""
    rows = g.table(POSITIONS, g.theta)
    pairs, n = rows.reshape(len(rows), -1, 2), len(rows)
    defect = max(float(np.ptp((pairs[k:] * pairs[: n - k]).sum(2), axis=0).max()) for k in range(n))
    odd = g.table(np.arange(2000), _paper(7, 4))[:, :7]
    lone = toeplitz_defect(odd @ odd.T)
    return Found(
        "exact" if defect < TINY else "counterexample",
        f"Largest spread along a diagonal {tiny(defect)} for pairs; {lone:.2f} for d = 7, whose last channel is a lone sine.",
        f"成对分量沿对角线的最大差为 {tiny(defect)}；d = 7 时末尾是单独的正弦，差为 {lone:.2f}。",
        {"defect of pairs": defect, "defect at d = 7, N = 2000": lone},
    )


def shift_is_linear(g: Ground) -> Found:
    """3: ``PE(m + k) = M_k PE(m)`` with one M_k for all m."""
    before, after = g.table(POSITIONS, g.theta), g.table(POSITIONS + SHIFT, g.theta)
    error = float(np.abs(before @ shift_matrix(g.theta, SHIFT).T - after).max())
    return Found(
        "exact" if error < TINY else "counterexample",
        f"M_{SHIFT} maps {len(POSITIONS)} rows onto their successors with an error of {tiny(error)}.",
        f"M_{SHIFT} 把 {len(POSITIONS)} 行映到各自的后继，误差 {tiny(error)}。",
        {"shift error": error},
    )


def norm_is_constant(g: Ground) -> Found:
    """4: the norm is ``sqrt(d/2)`` for paired channels."""
    norms = np.sqrt((g.table(POSITIONS, g.theta) ** 2).sum(1))
    error = float(np.abs(norms - np.sqrt(g.dim / 2)).max())
    odd = np.sqrt((g.table(np.arange(2000), _paper(7, 4))[:, :7] ** 2).sum(1))
    return Found(
        "exact" if error < TINY else "counterexample",
        f"sqrt(d/2) = {np.sqrt(g.dim / 2):.4f} to {tiny(error)}; at d = 7 it runs from {odd.min():.3f} to {odd.max():.3f}.",
        f"sqrt(d/2) = {np.sqrt(g.dim / 2):.4f}，误差 {tiny(error)}；d = 7 时在 {odd.min():.3f} 到 {odd.max():.3f} 之间。",
        {"norm error": error, "smallest at d = 7": float(odd.min()), "largest at d = 7": float(odd.max())},
    )


def additive_is_relative(g: Ground) -> Found:
    """10: with random projections the scores of content + position are not constant along diagonals."""
    rng = np.random.default_rng(10)
    rows = g.table(np.arange(41), g.theta)
    d = rows.shape[1]
    a = rng.standard_normal((d, d)) / d
    defect = toeplitz_spread(rows @ a @ rows.T)
    aligned = np.kron(np.diag(rng.standard_normal(d // 2)), np.eye(2)) + np.kron(
        np.diag(rng.standard_normal(d // 2)), [[0.0, 1.0], [-1.0, 0.0]]
    )
    exact = toeplitz_spread(rows @ aligned @ rows.T)
    return Found(
        "counterexample" if defect > 1e-3 else "exact",
        f"Position term alone, random projections: spread {defect:.2f} along a diagonal; {tiny(exact)} only when the product "
        "of the projections is a I + b J on each pair. Three more terms carry content.",
        f"随机投影下，仅位置项沿对角线的差就有 {defect:.2f}；只有投影之积在每对上为 a I + b J 时才为 {tiny(exact)}。另有三项含内容。",
        {"spread": defect, "spread for a I + b J": exact},
    )


def toeplitz_spread(scores: np.ndarray) -> float:
    """Largest max - min along any diagonal, above or below the main one."""
    n = len(scores)
    return max(float(np.ptp(np.diagonal(scores, k))) for k in range(1 - n, n))


def rotary_is_relative(g: Ground) -> Found:
    """11: scores of rotated q and k at distance D over many positions; exact reals, float32, bfloat16 tables."""
    rng = np.random.default_rng(11)
    d, distance = 2 * len(g.theta), 64
    q, k = rng.standard_normal((2, d))
    at = np.linspace(0, 8191, 257).astype(int)
    exact = np.ptp((g.rotate(q, at + distance, g.theta) * g.rotate(k, at, g.theta)).sum(1)) / np.sqrt(d)
    low = []
    for dtype in LOW:
        left, right = (rounded(g.rotate(v, p, g.theta), dtype) for v, p in ((q, at + distance), (k, at)))
        low.append(float(np.ptp((left * right).sum(1)) / np.sqrt(d)))
    return Found(
        "exact" if exact < 1e-7 else "counterexample",
        f"Spread over positions to 8191 at distance {distance}: {tiny(exact)} in float64, {tiny(low[0])} with float32 and "
        f"{tiny(low[1])} with bfloat16 channels. Not across a change of frequencies (cached keys, length rules).",
        f"距离 {distance}、位置至 8191 时的差：float64 为 {tiny(exact)}，float32 为 {tiny(low[0])}，bfloat16 为 {tiny(low[1])}。"
        "频率改变时（缓存的键、随长度变化的规则）不成立。",
        {"float64": float(exact), "float32": low[0], "bfloat16": low[1]},
    )


def learned_cannot_extrapolate(g: Ground) -> Found:
    """14: a lookup past the last row has no value."""
    rows = g.trained or 512
    table = Learned(2, shape=(rows,))
    last = int(learned_rows(table, [rows - 1])[0])
    try:
        past = learned_rows(table, [rows]).size == 0
    except ShapeError:
        past = last == rows - 1
    return Found(
        "exact" if past else "counterexample",
        f"Row {rows} of a table of {rows} rows does not exist. Rows that exist but were never trained, and rows made by "
        "resampling, are other statements.",
        f"{rows} 行的表没有第 {rows} 行。存在但未训练的行、以及插值得到的行，是另外的命题。",
        {"rows": float(rows)},
    )


def only_solution(g: Ground) -> Found:
    """17: any orthogonal change of coordinates has the same kernel."""
    rows = g.table(np.arange(97), g.theta)
    other = rows
    for mirror in np.random.default_rng(17).standard_normal((8, rows.shape[1])):  # reflections make a rotation
        other = other - 2 * (other @ mirror)[:, None] * mirror / (mirror @ mirror)
    kernel = float(np.abs(rows @ rows.T - other @ other.T).max())
    differ = float(np.abs(rows - other).max())
    return Found(
        "counterexample" if kernel < TINY < differ else "exact",
        f"A random rotation of the coordinates changes entries by up to {differ:.2f} and K by {tiny(kernel)}. "
        "Whether it is the best needs a criterion and training.",
        f"把坐标随机旋转，分量最多改变 {differ:.2f}，而 K 只改变 {tiny(kernel)}。是否最优，需要准则与训练。",
        {"entries": differ, "kernel": kernel},
    )


def concatenation_contains_addition(g: Ground) -> Found:
    """18: ``[x, p] [I; I] = x + p``."""
    rng = np.random.default_rng(18)
    x, p = rng.standard_normal((2, 13, 8))
    error = float(np.abs(np.concatenate([x, p], 1) @ np.vstack([np.eye(8), np.eye(8)]) - (x + p)).max())
    w = 0.3
    a, b = x + w * p, x / w + p
    scaled = float(
        np.abs(a / np.linalg.norm(a, axis=1, keepdims=True) - b / np.linalg.norm(b, axis=1, keepdims=True)).max()
    )
    rows, add, rotate, bias = counted()
    return Found(
        "exact" if max(error, scaled) < 1e-12 else "counterexample",
        f"[x, p][I; I] = x + p to {tiny(error)}; x + w p and x/w + p agree after normalising to {tiny(scaled)}. "
        f"Adding is not the most used: of {rows} models in the catalogue {add} add, {rotate} rotate, {bias} bias the score. "
        "Which trains better needs training.",
        f"[x, p][I; I] = x + p，误差 {tiny(error)}；归一化后 x + w p 与 x/w + p 相同，误差 {tiny(scaled)}。"
        f"相加并非最常用：目录的 {rows} 个模型中，{add} 个相加，{rotate} 个旋转，{bias} 个给得分加偏置。哪种更好训练，需要实验。",
        {"error": error, "error after normalising": scaled, "add": add, "rotate": rotate, "bias": bias, "rows": rows},
    )


def order_is_invisible(g: Ground) -> Found:
    """19: permuted tokens give permuted rows; one causal layer leaves the last row blind, two do not."""
    facts = permutation_facts({})
    values = [facts.equivariance.value, facts.one_causal_layer.value, facts.two_causal_layers.value]
    rows, one, two = (float(v or 0.0) for v in values)
    return Found(
        "exact" if rows < 1e-12 and one < 1e-12 < two else "counterexample",
        f"Rows permute with the tokens to {tiny(rows)}. The last row of one causal layer changes by {tiny(one)} when its prefix "
        f"is permuted, of two layers by {two:.2f}.",
        f"行随词一起置换，误差 {tiny(rows)}。置换前缀时，一层因果注意力的末行改变 {tiny(one)}，两层改变 {two:.2f}。",
        {"equivariance": rows, "one causal layer": one, "two causal layers": two},
    )


def relative_explicitly(g: Ground) -> Found:
    """20: only as M_k; scores of additive encodings are not relative."""
    shift, score = shift_is_linear(g), additive_is_relative(g)
    return Found(
        "holds within stated bounds" if shift.verdict == "exact" else "counterexample",
        f"As the linear map M_k, with an error of {tiny(shift.numbers['shift error'])}; the additive score is not relative "
        f"(spread {score.numbers['spread']:.2f}). Whether it is easily learned needs training.",
        f"仅以线性映射 M_k 的形式成立（误差 {tiny(shift.numbers['shift error'])}）；加性得分并不是相对的"
        f"（差 {score.numbers['spread']:.2f}）。是否容易学到，需要训练。",
        {**shift.numbers, **score.numbers},
    )


def _paper(dim: int, pairs: int) -> np.ndarray:
    from posenc.formulas.spectrum import scheduled
    from posenc.spec import Geometric

    return scheduled(Geometric(), pairs, dim)
