"""Claims about distance, scales and seasons: 5-9, 12, 13, 15, 16, 21-23."""

from __future__ import annotations

import numpy as np

from posenc.analysis.decay import ERROR, local_maxima, main_lobe
from posenc.analysis.ledger.ground import Ground, paired_table
from posenc.analysis.ledger.rotation import pair_is_relative, paired_is_rotation, shift_is_linear
from posenc.analysis.ledger.verdict import Found, tiny
from posenc.analysis.precision import distinct_rows, rounded
from posenc.analysis.symmetry import energy_rank, numerical_rank
from posenc.formulas.ranges import first_below
from posenc.formulas.scalings import frequencies
from posenc.formulas.similarities import similarity
from posenc.formulas.spectrum import Frequencies
from posenc.spec import Rotary, Sinusoidal

REACH = 2**16


def never_collide(g: Ground) -> Found:
    """5: exact for integer positions and theta_0 = 1; not for real ones, not in finite precision."""
    real = float(np.abs(paired_table([2000 * np.pi], 10.0 ** -np.arange(4.0)) - paired_table([0.0], np.ones(4))).max())
    _, repeat = distinct_rows(np.array([1.0]), 1000, "bfloat16", "table")
    twin = next((p for p in range((repeat or 0)) if _same_row(p, repeat or 0)), -1)
    positions = int(rounded(257.0, "bfloat16"))
    wide, _ = distinct_rows(_theta(16), 8192, "bfloat16", "table")
    kappa = similarity(g.frequencies, 0, REACH + 1)
    tops = local_maxima(kappa)
    tops = tops[tops >= main_lobe(kappa)]
    best = int(tops[kappa[tops].argmax()]) if len(tops) else 0
    unit = bool(np.isclose(np.abs(g.theta).max(), 1.0, atol=1e-12))
    return Found(
        "holds within stated bounds" if unit and real < 1e-9 else "counterexample",
        f"Integer positions in exact arithmetic: true even for one clock, since 2 pi is irrational. Real positions: at "
        f"2000 pi the row of position 0 returns (d = 8, to {tiny(real)}). bfloat16 positions: 257 becomes {positions}; "
        f"bfloat16 table, d = 2: row {repeat} equals row {twin}; d = 16: {wide} of 8192 rows differ. "
        f"Near-return of {g.name} within {REACH}: kappa({best}) = {kappa[best]:.4f}.",
        f"整数位置、精确算术：成立，一个钟就够，因为 2π 是无理数。实数位置：2000π 处重现位置 0 的行（d = 8，误差 {tiny(real)}）。"
        f"bfloat16 位置：257 变成 {positions}；bfloat16 表 d = 2：第 {repeat} 行等于第 {twin} 行；d = 16：8192 行中有 {wide} 行互异。"
        f"{g.name} 在 {REACH} 内最接近的重现：kappa({best}) = {kappa[best]:.4f}。",
        {"repeat": float(repeat or -1), "twin": float(twin), "real": real, "alias": float(best)},
    )


def _same_row(p: int, q: int) -> bool:
    rows = rounded(paired_table([p, q], np.array([1.0])), "bfloat16")
    return bool((rows[0] == rows[1]).all())


def monotone(g: Ground) -> Found:
    """6: first distance at which kappa rises."""
    rise = _rise(g.frequencies)
    known = {d: _rise(frequencies(Rotary(d))) for d in (8, 64, 128, 512)}
    listed = ", ".join(f"{d}: {r}→{r + 1}" for d, r in known.items() if r is not None)
    return Found(
        "counterexample" if rise is not None else "holds within stated bounds",
        f"{g.name} first rises from D = {rise} to {(rise or 0) + 1}. Base 10000, by d: {listed}.",
        f"{g.name} 首次上升在 D = {rise} 到 {(rise or 0) + 1}。底数 10000，按 d：{listed}。",
        {"first rise": float(-1 if rise is None else rise), **{f"d={d}": float(r or -1) for d, r in known.items()}},
    )


def _rise(f: Frequencies) -> int | None:
    kappa = similarity(f, 0, 4097)
    found = np.flatnonzero(np.diff(kappa) > ERROR)
    return int(found[0]) if len(found) else None


def tends_to_zero(g: Ground) -> Found:
    """7: RMS 1/sqrt(d) and returns arbitrarily close to 1, for finitely many frequencies."""
    kappa = similarity(g.frequencies, 1, REACH + 1)
    rms = float(np.sqrt((kappa[REACH // 2 :] ** 2).mean()))
    largest = float(np.abs(kappa[REACH // 2 :]).max())
    return Found(
        "counterexample" if largest > 1e-6 else "holds within stated bounds",
        f"Finitely many frequencies: limsup 1, long-run RMS 1/sqrt(d) = {1 / np.sqrt(g.dim):.4f}; over D = {REACH // 2}.."
        f"{REACH} RMS {rms:.4f}, largest |kappa| {largest:.4f}. The continuous limit does tend to 0.",
        f"频率有限时上极限为 1，长期均方根为 1/sqrt(d) = {1 / np.sqrt(g.dim):.4f}；D = {REACH // 2}..{REACH} 上均方根 {rms:.4f}，"
        f"最大 |kappa| 为 {largest:.4f}。连续极限才趋于 0。",
        {"rms": rms, "largest": largest},
    )


def even_scales(g: Ground) -> Found:
    """8: equal ratios; the range ends at ``b^(-(d-2)/d)``."""
    theta = np.abs(g.theta[g.theta != 0])
    ratio = theta[:-1] / theta[1:]
    spread = float(np.ptp(np.log(ratio))) if len(ratio) > 1 else 0.0
    step = float(ratio.mean()) if len(ratio) else 1.0  # a single frequency has no neighbour
    base = g.frequencies.base
    end = "" if base is None else f" The last is {theta[-1]:.4g}, where 1/base is {1 / base:.4g}."
    end_zh = "" if base is None else f" 末项为 {theta[-1]:.4g}，而 1/底数 为 {1 / base:.4g}。"
    short = base is not None and theta[-1] > 1 / base * (1 + 1e-9)
    return Found(
        ("holds within stated bounds" if short else "exact") if spread < 1e-9 else "counterexample",
        f"Neighbouring frequencies have a ratio of {step:.5f}, spread of its logarithm {tiny(spread)}.{end} "
        "An arithmetic schedule puts nine tenths of its pairs into the top decade.",
        f"相邻频率之比为 {step:.5f}，其对数的极差为 {tiny(spread)}。{end_zh} 等差频率有九成落在最高的十倍区间。",
        {"spread": spread, "last": float(theta[-1])},
    )


def base_is_free(g: Ground) -> Found:
    """9: claims 1-3 hold for other bases; the base bound shows that 10000 is short for long contexts."""
    held = []
    for base in (2.0, 500.0, 1e6):
        other = Ground(f"base {base:g}", frequencies(Sinusoidal(64, base=base)), g.table, g.rotate, g.trained)
        held.append(all(f(other).verdict == "exact" for f in (paired_is_rotation, pair_is_relative, shift_is_linear)))
    bound = {d: first_below(frequencies(Rotary(d)), stop=8192) for d in (64, 128)}
    return Found(
        "refuted" if all(held) else "counterexample",
        f"Claims 1-3 hold at bases 2, 500 and 1e6. By the base bound 10000 fails from {bound[64]} positions at d = 64 and "
        f"{bound[128]} at d = 128. Which base trains best needs training.",
        f"底数为 2、500、1e6 时命题 1-3 同样成立。按底数下界，10000 在 d = 64 时从 {bound[64]}、d = 128 时从 {bound[128]} 个位置起失效。"
        "哪个底数训练效果最好，需要训练。",
        {f"d={d}": float(n or -1) for d, n in bound.items()},
    )


def longest_wavelength(g: Ground) -> Found:
    """12: ``2 pi b^((d-2)/d)`` for denominator d, ``2 pi b`` for half - 1."""
    wave = float(np.max(g.frequencies.wavelengths[np.isfinite(g.frequencies.wavelengths)]))
    base = g.frequencies.base
    said = 2 * np.pi * (base or 1e4)
    other = float(frequencies(Sinusoidal(512, shift=1.0, order="sin|cos")).wavelengths[-1])
    return Found(
        "exact" if abs(wave / said - 1) < 1e-9 else "counterexample",
        f"{g.name}: {wave:.1f} positions, where base * 2 pi is {said:.1f}. With the denominator half - 1 (d = 512) it is "
        f"{other:.1f} exactly.",
        f"{g.name}：{wave:.1f} 个位置，而底数 * 2π 为 {said:.1f}。分母取 half - 1（d = 512）时恰为 {other:.1f}。",
        {"longest": wave, "half - 1": other},
    )


def extrapolates_by_period(g: Ground) -> Found:
    """13: periods alias; many pairs never finish a turn in training."""
    trained = g.trained or 512
    slow = int((g.frequencies.wavelengths > trained).sum())
    return Found(
        "refuted" if slow else "needs training",
        f"The cause is wrong: {slow} of {g.frequencies.pairs} pairs never finish a turn within {trained} positions, so "
        "beyond it they show angles never seen; pairs that do repeat alias. Whether a model works there needs training; "
        "that the formula can be computed there is a third statement.",
        f"原因不对：{g.frequencies.pairs} 对中有 {slow} 对在 {trained} 个位置内转不满一圈，之后的角度从未见过；会重复的对则产生混叠。"
        "模型在那里是否有效需要训练；公式能算是第三个命题。",
        {"pairs": float(slow), "trained": float(trained)},
    )


def local_and_global(g: Ground) -> Found:
    """15: wavelengths are measured; what they carry is trained."""
    waves = np.sort(g.frequencies.wavelengths[np.isfinite(g.frequencies.wavelengths)])
    return Found(
        "needs training",
        f"Measured: wavelengths run from {waves[0]:.2f} to {waves[-1]:,.0f} positions. What a model puts into which pairs "
        "shows only when bands are removed from a trained one.",
        f"可测的是：波长从 {waves[0]:.2f} 到 {waves[-1]:,.0f} 个位置。模型把什么放进哪些对，要在训练好的模型里去掉频段才看得出。",
        {"shortest": float(waves[0]), "longest": float(waves[-1])},
    )


def rotary_is_better(g: Ground) -> Found:
    """16: a training result."""
    return Found(
        "needs training",
        "No formula decides it. Published: trained on 512 positions, perplexity from 512 to 3512 goes from 20.07 to 35.54 "
        "with rotary and from 19.73 to 18.40 with ALiBi (Press et al. 2021, WikiText-103).",
        "公式无法判定。已发表：在 512 个位置上训练，长度从 512 到 3512 时，旋转编码的困惑度从 20.07 升到 35.54，"
        "ALiBi 从 19.73 降到 18.40（Press 等 2021，WikiText-103）。",
    )


def captures_seasons(g: Ground) -> Found:
    """21: nearest wavelengths of a geometric schedule at d = 64 to a day and a week of hours."""
    waves = frequencies(Sinusoidal(64)).wavelengths if g.dim == 512 else g.frequencies.wavelengths
    near, cycles = [], []
    for period in (24.0, 168.0):
        wave = float(waves[np.abs(np.log(waves / period)).argmin()])
        near.append(wave)
        cycles.append(0.5 / abs(period / wave - 1) if wave != period else np.inf)
    return Found(
        "counterexample" if max(cycles) < 50 else "holds within stated bounds",
        f"Nearest to 24 and 168 (d = {2 * len(waves)}): {near[0]:.1f} and {near[1]:.0f}; half a turn off after "
        f"{cycles[0]:.0f} and {cycles[1]:.0f} cycles. Seasonal encodings hit the periods, and alone repeat at their least "
        "common multiple.",
        f"最接近 24 与 168 的波长（d = {2 * len(waves)}）：{near[0]:.1f} 与 {near[1]:.0f}；{cycles[0]:.0f} 和 {cycles[1]:.0f} 个周期后相差半圈。"
        "季节编码正好取这些周期，单独使用时按最小公倍数重复。",
        {"near a day": near[0], "near a week": near[1], "cycles, day": cycles[0], "cycles, week": cycles[1]},
    )


def fourier_basis(g: Ground) -> Found:
    """22: a basis of 512 positions would have rank 512."""
    rows = min(g.dim, 1024)
    singular = np.linalg.svd(g.table(np.arange(rows), g.theta), compute_uv=False)
    rank = numerical_rank(singular, (rows, g.dim))
    return Found(
        "refuted" if rank < rows else "holds within stated bounds",
        f"{rows} rows of {g.dim} columns have numerical rank {rank}; 99 % of the energy is in {energy_rank(singular)} "
        "directions. A Fourier basis has full rank.",
        f"{rows} 行 {g.dim} 列的表，数值秩为 {rank}；99 % 的能量在 {energy_rank(singular)} 个方向上。傅里叶基是满秩的。",
        {"rank": float(rank), "energy rank": float(energy_rank(singular))},
    )


def fades(g: Ground) -> Found:
    """23: the kernel is measured; what a model makes of it is trained."""
    kappa = similarity(g.frequencies, REACH // 2, REACH)
    return Found(
        "needs training",
        f"The kernel does not vanish: mean {kappa.mean():.4f}, RMS {np.sqrt((kappa**2).mean()):.4f} over D = {REACH // 2}.."
        f"{REACH}. Rows keep their length. Whether a model's use of it fades needs training.",
        f"核并不消失：D = {REACH // 2}..{REACH} 上均值 {kappa.mean():.4f}、均方根 {np.sqrt((kappa**2).mean()):.4f}，行长不变。"
        "模型对它的利用是否减弱，需要训练。",
        {"mean": float(kappa.mean()), "rms": float(np.sqrt((kappa**2).mean()))},
    )


def _theta(dim: int) -> np.ndarray:
    return np.asarray(frequencies(Sinusoidal(dim)).fused)
