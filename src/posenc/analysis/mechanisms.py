"""Mechanisms side by side (A9): parameters, cost and what is guaranteed, computed for one size of model."""

from __future__ import annotations

from collections.abc import Callable

from posenc.records.analysis import SideBySide

ROWS: tuple[tuple[str, str, Callable[[int, int, int, int], tuple[int, str]], str, str, str], ...] = (
    (
        "sinusoidal, added",
        "input",
        lambda d, h, n, layers: (0, f"{d} additions for each token, once"),
        "a fixed shift is one linear map; every row has length sqrt(d/2); rows exist at any position",
        "the score is not relative (four terms); slow pairs show unseen angles beyond training",
        "small models, baselines, continuous inputs such as time",
    ),
    (
        "learned table, added",
        "input",
        lambda d, h, n, layers: (n * d, f"{d} additions for each token, once"),
        "nothing but that rows 0..n-1 exist",
        "no row past the table; late rows are trained little; length costs parameters",
        "fixed short lengths, images of one size",
    ),
    (
        "rotary",
        "query and key",
        lambda d, h, n, layers: (
            0,
            f"{3 * d * 2 * layers} multiply-adds for each token over {layers} layers (q and k)",
        ),
        "the score depends on m - n only (exact arithmetic); vectors keep their length",
        "slow pairs show unseen angles beyond training; no decay is guaranteed; precision of positions matters",
        "decoders; context can be stretched by scaling frequencies",
    ),
    (
        "ALiBi",
        "score",
        lambda d, h, n, layers: (
            0,
            f"{h * layers} additions for each query-key pair over {layers} layers, or 2 channels",
        ),
        "the bias is linear in the distance, hence monotone and relative at any length",
        "far tokens are all but invisible to steep heads",
        "training short and running long on local text",
    ),
    (
        "T5 buckets",
        "score",
        lambda d, h, n, layers: (32 * h, f"{h * layers} additions for each query-key pair over {layers} layers"),
        "relative; beyond the last bucket all distances look alike",
        "a bias cannot be folded into q and k; long distances are not told apart",
        "encoders and encoder-decoders",
    ),
    (
        "none (causal)",
        "nowhere",
        lambda d, h, n, layers: (0, "nothing"),
        "one layer is blind to the order of the prefix; two are not (claim 19)",
        "bidirectional attention sees no order at all",
        "some layers of a decoder, beside layers with positions",
    ),
)


def side_by_side(dim: int = 512, heads: int = 8, length: int = 2048, layers: int = 6) -> tuple[SideBySide, ...]:
    """The comparison table for a model of the given size.

    >>> side_by_side()[1].parameters
    1048576
    """
    rows = []
    for name, enters, count, guaranteed, drawbacks, use in ROWS:
        parameters, cost = count(dim, heads, length, layers)
        rows.append(
            SideBySide(
                encoding=name,
                enters=enters,
                parameters=parameters,
                cost=cost,
                guaranteed=guaranteed,
                drawbacks=drawbacks,
                use_when=use,
            )
        )
    return tuple(rows)
