"""Positions of text, images and videos in one sequence: time, height and width (M-RoPE).

Text advances all three together. A grid of patches starts where the text before it ended; its time, row and column
advance apart. Sources: Wang et al. 2024 (Qwen2-VL), section 2.1; Bai et al. 2025 (Qwen2.5-VL, Qwen3-VL); transformers
``models/qwen2_vl``, ``qwen2_5_vl`` and ``qwen3_vl`` (``get_rope_index``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from posenc.errors import ShapeError, SpecError
from posenc.nn.interfaces import Positions

TEXT, IMAGE, VIDEO = 0, 1, 2


class Multimodal(NamedTuple):
    """Positions, and what comes next.

    Args:
        at: ids ``(3, batch, 1, tokens)``: time, height, width; padding stands at 0.
        next: ``(batch,)`` position of the first token generated.
        delta: ``(batch,)``: ``next`` minus the number of the row's tokens (transformers' ``rope_deltas``).

    >>> multimodal(torch.zeros(1, 3, dtype=torch.long)).next.tolist()
    [3]
    """

    at: Positions
    next: Tensor
    delta: Tensor


def multimodal(
    token_types: Tensor,
    images: Any = (),
    videos: Any = (),
    *,
    merge: int = 1,
    attention_mask: Tensor | None = None,
    tokens_per_second: float | None = None,
    seconds_per_patch: Sequence[float] | float = 1.0,
    separate_frames: bool = False,
    text_after: Literal["largest", "grid"] = "largest",
) -> Multimodal:
    """Time, height and width of every token of a batch.

    Which settings a family uses: Qwen2-VL ``merge=2``; Qwen2.5-VL also ``tokens_per_second`` and the videos'
    ``seconds_per_patch``; Qwen3-VL ``merge=2, separate_frames=True`` (its time stamps are text between the frames).

    Args:
        token_types: ``(batch, tokens)``: 0 text, 1 image, 2 video.
        images: ``(images, 3)`` patches in time, height and width of each image, in order of appearance.
        videos: ``(videos, 3)`` the same for videos.
        merge: patches along height and width that share a token.
        attention_mask: ``(batch, tokens)``: 1 for tokens, 0 for padding.
        tokens_per_second: time positions of a second of video; without it a patch in time is one position.
        seconds_per_patch: seconds between patches in time, one number or one for each video.
        separate_frames: the frames of a video stand apart in the sequence, each as a grid of its own.
        text_after: where text goes on behind a grid: ``largest``: one after the largest position on any axis (the
            paper, transformers 4); ``grid``: after as many positions as the longer side of the grid has
            tokens (transformers 5), which differs as soon as time outgrows height and width.

    Raises:
        ShapeError: types, grids and tokens do not match.
        SpecError: text goes on in another way than the two.

    >>> found = multimodal(torch.tensor([[0, 1, 1, 1, 1, 0]]), images=[(1, 4, 4)], merge=2)
    >>> found.at.ids[:, 0, 0].tolist(), found.next.tolist()
    ([[0, 1, 1, 1, 1, 3], [0, 1, 1, 2, 2, 3], [0, 1, 2, 1, 2, 3]], [4])
    """
    if token_types.ndim != 2 or token_types.is_floating_point():
        raise ShapeError("token_types is (batch, tokens) of 0, 1 and 2", tuple(token_types.shape))
    if attention_mask is not None and attention_mask.shape != token_types.shape:
        raise ShapeError(f"the attention mask is {tuple(token_types.shape)}", tuple(attention_mask.shape))
    if text_after not in ("largest", "grid"):
        raise SpecError("text goes on after the largest position, or after the grid", text_after)
    if merge < 1:
        raise ShapeError("at least one patch makes a token", merge)
    seen = _grids(images, videos, seconds_per_patch, tokens_per_second, separate_frames)
    types = token_types.cpu()
    real = torch.ones_like(types, dtype=torch.bool) if attention_mask is None else attention_mask.cpu().bool()
    ids, after = torch.zeros(3, *types.shape, dtype=torch.int64), []
    for row in range(types.shape[0]):
        found, end = _row(types[row][real[row]].tolist(), seen, merge, text_after)
        ids[:, row, real[row]] = found
        after.append(end)
    for kind, rest in seen.items():
        if next(rest, None) is not None:
            raise ShapeError("every grid has its tokens", f"{'a video' if kind == VIDEO else 'an image'} without any")
    following = torch.tensor(after, device=token_types.device)
    at = Positions(ids.unsqueeze(2).to(token_types.device))
    return Multimodal(at, following, following - real.sum(1).to(token_types.device))


Grid = tuple[tuple[int, int, int], float]


def _grids(images: Any, videos: Any, seconds: Any, rate: float | None, separate: bool) -> dict[int, Iterator[Grid]]:
    """For images and videos, an iterator over shapes ``(time, height, width)`` and time positions of a patch."""
    stills, films = _triples(images, "images"), _triples(videos, "videos")
    per_patch = [float(s) for s in seconds] if isinstance(seconds, Sequence | Tensor) else [float(seconds)] * len(films)
    if len(per_patch) != len(films):
        raise ShapeError(f"seconds_per_patch has one number for each of {len(films)} videos", len(per_patch))
    steps = [1.0 if rate is None else rate * s for s in per_patch]
    moving: list[Grid] = list(zip(films, steps, strict=True))
    if separate:
        moving = [((1, h, w), step) for (t, h, w), step in moving for _ in range(t)]
    return {IMAGE: iter([(shape, 1.0) for shape in stills]), VIDEO: iter(moving)}


def _triples(grids: Any, what: str) -> list[tuple[int, int, int]]:
    rows = grids.tolist() if isinstance(grids, Tensor) else [list(g) for g in grids]
    if any(len(r) != 3 or min(r) < 1 for r in rows):
        raise ShapeError(f"{what} are (time, height, width) patches, at least one each", rows[:4])
    return [(int(t), int(h), int(w)) for t, h, w in rows]


def _row(types: list[int], seen: dict[int, Iterator[Grid]], merge: int, text_after: str) -> tuple[Tensor, int]:
    """``(3, tokens)`` of one row without padding, and where the next token stands."""
    parts, start, at = [torch.zeros(3, 0, dtype=torch.int64)], 0, 0
    for kind, run in groupby(types):
        left = len(list(run))
        if kind == TEXT:
            parts.append((torch.arange(left) + start).expand(3, left))
            start, at = start + left, at + left
            continue
        if kind not in seen:
            raise ShapeError("token types are 0 (text), 1 (image) and 2 (video)", kind)
        while left > 0:  # grids may follow each other without text between
            cells, end = _cells(kind, seen[kind], start, merge, text_after, left, at)
            parts.append(cells)
            start, at, left = end, at + cells.shape[1], left - cells.shape[1]
    return torch.cat(parts, 1), start


def _cells(
    kind: int, grids: Iterator[Grid], start: int, merge: int, text_after: str, left: int, at: int
) -> tuple[Tensor, int]:
    """``(3, tokens)`` of the next grid from ``start`` on, and where text goes on."""
    grid = next(grids, None)
    if grid is None:
        raise ShapeError("every run of patches has its grid", f"too few {'videos' if kind == VIDEO else 'images'}")
    (frames, rows, columns), step = grid
    if rows % merge or columns % merge:
        raise ShapeError(f"height and width divide by merge={merge}", (rows, columns))
    rows, columns = rows // merge, columns // merge
    if frames * rows * columns > left:
        raise ShapeError(f"a grid of {frames * rows * columns} tokens has its tokens together", f"{left} at token {at}")
    time = (torch.arange(frames) * step).long()  # rounded down after the product, as the models were trained
    cells = torch.stack(torch.meshgrid(time, torch.arange(rows), torch.arange(columns), indexing="ij")).flatten(1)
    longest = int(cells.max()) + 1 if text_after == "largest" else max(rows, columns)
    return cells + start, start + longest
