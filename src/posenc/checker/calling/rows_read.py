"""Which rows of its table a torch module reads: a trained bias shows its buckets, whatever its numbers are."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray


@contextlib.contextmanager
def rows_read(library: str) -> Iterator[list[NDArray[np.int64]]]:
    """While it lasts, the ids handed to torch's tables are kept; those beyond a table read its nearest row.

    Yields:
        the ids of every call, in order.
    """
    kept: list[NDArray[np.int64]] = []
    if library != "torch":
        yield kept
        return
    import torch

    def hook(module: Any, given: tuple[Any, ...]) -> Any:
        if type(module) is not torch.nn.Embedding or len(given) != 1 or not isinstance(given[0], torch.Tensor):
            return None
        kept.append(given[0].detach().cpu().numpy().astype(np.int64))
        return (given[0].clamp(0, module.num_embeddings - 1),)

    handle = torch.nn.modules.module.register_module_forward_pre_hook(hook)
    try:
        yield kept
    finally:
        handle.remove()


def of_shape(kept: list[NDArray[np.int64]], n_q: int, n_k: int) -> NDArray[np.int64] | None:
    """The only ids with one for each query and key; None where there are none or several."""
    fitting = [ids.reshape(n_q, n_k) for ids in kept if ids.shape[-2:] == (n_q, n_k) and ids.size == n_q * n_k]
    return fitting[0] if len(fitting) == 1 else None
