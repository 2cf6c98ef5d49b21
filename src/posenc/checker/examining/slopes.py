"""ALiBi's slopes: off by one, another range, another sign, the paper's sequence, cut off."""

from __future__ import annotations

import math

import numpy as np

from posenc.checker.boxes import Array, Vector
from posenc.checker.gathering import Gathered, drawn
from posenc.formulas.biases import alibi_slopes
from posenc.records.finding import Evidence, FirstWrong, Recovered
from posenc.spec import Alibi


def compare_slopes(notes: Gathered, slopes: Array, encoding: Alibi, wanted: Array | None = None) -> None:
    """Slopes of heads (bias per position back, as a penalty) with ALiBi's."""
    notes.ran("slopes")
    wanted = alibi_slopes(encoding.num_heads, encoding.max_bias) if wanted is None else wanted
    n = encoding.num_heads
    if len(slopes) != n:
        notes.found(
            "defect",
            ("bias-function", "width"),
            f"there are {len(slopes)} slopes in place of {n}",
            evidence=[Evidence(name="heads", expected=n, seen=len(slopes))],
        )
        return
    gap = np.abs(slopes - wanted) / np.abs(wanted)
    notes.measure("largest relative deviation of a slope", float(gap.max()), f"{n} heads")
    wrong = np.flatnonzero(gap > 1e-4)
    if not len(wrong):
        return
    verdict, cause, recovered, kinds = _slope_words(slopes, wanted, encoding)
    i = int(wrong[0])
    notes.found(
        verdict,
        kinds,
        f"{len(wrong)} of {n} slopes are not ALiBi's",
        evidence=[Evidence(name=f"slope of head {i}", expected=float(wanted[i]), seen=float(slopes[i]))],
        first=FirstWrong(pair=i, of="head"),
        cause=cause,
        recovered=recovered,
        like="alibi",
        drawn=[drawn("slope by head", "head", "slope", np.arange(n), np.abs(slopes), wanted, log=True)],
    )
    for each in recovered:
        notes.recover(each.name, each.value, each.expected)


def _slope_words(slopes: Array, wanted: Array, e: Alibi) -> tuple[str, str | None, list[Recovered], tuple[str, ...]]:
    n, h = e.num_heads, np.arange(e.num_heads)
    kinds: tuple[str, ...] = ("bias-function",)

    def close(other: Array) -> bool:
        return bool(
            np.abs(slopes - other).max() <= 1e-3 * np.abs(other).max() and np.allclose(slopes, other, rtol=1e-3)
        )

    plain = np.exp2(-e.max_bias * (h + 1) / n)
    if close(-wanted):
        return (
            "defect",
            "the sign is exchanged: far keys get a bonus",
            [Recovered(name="sign", value=-1, expected=1)],
            kinds,
        )
    if close(np.exp2(-e.max_bias * h / n)):
        return (
            "defect",
            "the index of heads starts at 0 in the exponent: the first slope is 1",
            [Recovered(name="first head", value=0, expected=1)],
            kinds,
        )
    if n & (n - 1) and close(plain):
        return (
            "convention",
            "one geometric sequence over all heads, as the paper's text has it; the authors' code interpolates",
            [Recovered(name="slopes", value="paper", expected="code")],
            kinds,
        )
    if n & (n - 1) and close(np.sort(wanted)[::-1]):
        return (
            "convention",
            "the authors' slopes in descending order of heads",
            [Recovered(name="order", value="sorted")],
            kinds,
        )
    if close(wanted[::-1]):
        return "convention", "the slopes in reversed order of heads", [Recovered(name="order", value="reversed")], kinds
    low = 1 << (n.bit_length() - 1)
    if n & (n - 1):
        shared, extra = alibi_slopes(low, e.max_bias), alibi_slopes(2 * low, e.max_bias)
        if close(np.concatenate([shared, extra[1::2][: n - low]])):
            return (
                "defect",
                f"the {n - low} heads beyond {low} take the second, fourth, … slope of {2 * low} heads, which others "
                "have already; the first, third, … are wanted",
                [Recovered(name="first extra slope", value=2, expected=1)],
                kinds,
            )
        if close(np.exp2(-e.max_bias * (h + 1) / low)):
            return (
                "defect",
                f"the sequence of {low} heads, the power of two below, goes on over all {n}",
                [Recovered(name="heads of the slopes", value=low, expected=n)],
                kinds,
            )
        m = 1 << n.bit_length()
        for name, count in (("above", m), ("below", m // 2)):
            cut = alibi_slopes(count, e.max_bias)
            if count >= n and close(cut[:n]):
                return (
                    "defect",
                    f"the slopes of {count} heads, the power of two {name}, cut off",
                    [Recovered(name="heads of the slopes", value=count, expected=n)],
                    kinds,
                )
        above = np.exp2(-e.max_bias * (np.arange(2 * (m // 2)) + 1) / m)
        if close(np.concatenate([alibi_slopes(m // 2, e.max_bias), above[: n - m // 2]])):
            return (
                "defect",
                "the extra heads take consecutive slopes of the power of two above, not every other one",
                [],
                kinds,
            )
    ratio = slopes / wanted
    if np.ptp(ratio) < 1e-3 * abs(ratio.mean()):
        c = float(ratio.mean())
        words = f"every slope is {c:.6g} times the wanted one"
        if math.isclose(c, 2 ** (e.max_bias / n), rel_tol=1e-3):
            words = "the index of heads starts at 0 in the exponent"
        return "defect", words, [Recovered(name="factor on every slope", value=c, expected=1.0)], kinds
    if (slopes > 0).all() and not n & (n - 1):
        logs = -np.log2(slopes) * n / (h + 1)
        if np.ptp(logs) < 1e-3 * logs.mean():
            c = float(logs.mean())
            return (
                "defect",
                f"max_bias is {c:.6g} in place of {e.max_bias:g}",
                [Recovered(name="max_bias", value=c, expected=e.max_bias)],
                kinds,
            )
    return "defect", None, [], kinds


def examine_slopes(notes: Gathered, box: Vector, encoding: Alibi) -> None:
    """Slopes alone; their sign is a matter of how they are used."""
    slopes = np.asarray(box.values, dtype=np.float64).ravel()
    if (slopes < 0).all():
        notes.note("slopes are stored negative")
        slopes = -slopes
    compare_slopes(notes, slopes, encoding)
