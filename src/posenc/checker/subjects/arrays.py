"""Arrays out of files: ``.npy``, ``.npz``, tensors of safetensors and GGUF files; pickles are refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from posenc.errors import FormatError, PosencError, SubjectError

LARGEST = 2**27
PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".bin", ".ckpt", ".joblib")
CONVERT = (
    "Convert it where you trust it: safetensors.torch.save_file({k: v.contiguous() for k, v in "
    "torch.load(path, weights_only=True).items()}, 'out.safetensors'), or numpy.save."
)
POSITION_PARTS = ("freqs", "rope", "positional_embedding", "pe", "position_enc")
"""Last parts of names that speak of positions, beside those of stored models."""
OTHER_WEIGHTS = (
    (
        r"(attn|self_attn|attention|self)[._](q|k)(_proj)?|w[qk]|(query|key)",
        "a projection of queries or keys",
        "posenc check {file} measures which channels a model's stored rows pair.",
    ),
    (r"(attn|self_attn|attention|self)[._](v|o|out|output)(_proj)?|w[vo]|value", "a projection of attention", ""),
    (r"ffn_\w+|(gate|up|down)_proj|fc[12]|c_fc|w[123]|dense", "a layer of the feed-forward part", ""),
    (r"token_embd|embed_tokens|word_embeddings|tok_embeddings|wte|lm_head|output", "a table of the vocabulary", ""),
    (r"\w*norm\w*|ln_\w+", "a normalisation", ""),
)
"""Names of weights that hold no positions: a pattern of the part before ``.weight``, what it is, and what to do."""


def is_array_file(path: Path) -> bool:
    """Whether a path is a file of arrays (or a pickle, which is refused later)."""
    return path.suffix.lower() in (".npy", ".npz", ".safetensors", ".gguf", *PICKLES)


def load_arrays(path: Path, tensor: str | None = None) -> dict[str, np.ndarray]:
    """The arrays of a file by name, those about positions if there are many; ``tensor`` names one.

    Raises:
        FormatError: it is a pickle, no such file, or holds no array of that name.
    """
    if not path.exists():
        raise FormatError("no such file", str(path))
    if path.suffix.lower() in PICKLES or _is_pickle(path):
        raise FormatError("pickled files are not opened: they can run code", path.name, CONVERT)
    kind = path.suffix.lower()
    if kind == ".npy":
        return {path.stem: _numpy(path)}
    if kind == ".npz":
        return _archive(path, tensor)
    if kind == ".gguf":
        from posenc.formats.weights import GgufFile

        file: Any = GgufFile(path)
        names = list(file.header.tensors)
    else:
        from posenc.formats.safetensors_header import read_header
        from posenc.formats.weights import SafetensorsFiles

        file = SafetensorsFiles(path)
        names = [stored.name for stored in read_header(path)]
    chosen = _chosen(names, tensor, path)
    for name in chosen:
        _refuse_other_weights(name, path)
    return {name: typed(file.rows(name), _dtype(file, path, name)) for name in chosen}


def _refuse_other_weights(name: str, path: Path) -> None:
    """Any trained matrix looks like a learned table: what its own name denies is not called one.

    Raises:
        FormatError: the name is that of another weight.
    """
    stem = name.removesuffix(".weight").removesuffix(".bias")
    if "." not in name:
        return
    for pattern, what, mend in OTHER_WEIGHTS:
        if re.search(rf"(^|\.)({pattern})$", stem):
            raise FormatError(
                "an array about positions is examined: frequencies, a table, a bias",
                f"{name}, by its name {what}",
                mend.format(file=path.name) or "Save it as .npy under another name where it is one.",
            )


class Typed(np.ndarray):
    """An array that remembers in which type its file holds it."""

    stored: str = "float32"


def typed(values: np.ndarray, dtype: str) -> np.ndarray:
    """Values with the name of the type they were stored in."""
    found = np.asarray(values).view(Typed)
    found.stored = dtype
    return found


def stored_dtype(values: np.ndarray) -> str:
    """The type an array was stored in."""
    return values.stored if isinstance(values, Typed) else str(values.dtype)


def _dtype(file: Any, path: Path, name: str) -> str:
    if path.suffix.lower() == ".gguf":
        return {0: "float32", 1: "float16", 30: "bfloat16"}.get(file.header.tensors[name].kind, "quantised")
    from posenc.formats.safetensors_header import read_header

    code = next(stored.dtype for stored in read_header(path) if stored.name == name)
    return {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}.get(code, code)


def _chosen(names: list[str], tensor: str | None, path: Path) -> list[str]:
    if tensor is not None:
        if tensor not in names:
            near = [n for n in names if tensor.lower() in n.lower()][:6]
            raise FormatError(f"{path.name} holds {tensor}", near or sorted(names)[:6])
        return [tensor]
    dump = [
        n
        for n in names
        if n.rsplit(".", 1)[-1] in ("q_before", "q_after", "k_before", "k_after", "positions", "cos", "sin")
    ]
    if dump:
        return dump
    if len(names) == 1:
        return names
    from posenc.formats.safetensors_header import POSITION

    spoken = [n for n in names if POSITION.search(n) or any(part in POSITION_PARTS for part in n.lower().split("."))]
    about = [n for n in spoken if not n.endswith("position_ids")]
    if len(about) != 1:
        raise FormatError(
            f"{path.name} holds one array about positions, or its name is given as {path.name}#NAME",
            (about or sorted(names))[:6],
        )
    return about


def _numpy(path: Path) -> np.ndarray:
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
        if found.size > LARGEST:
            raise FormatError(f"an array has at most {LARGEST} entries", found.shape)
        if found.dtype.kind not in "iufc" and str(found.dtype) != "bfloat16" and found.dtype.kind != "V":
            raise FormatError("an array holds numbers", found.dtype)
        return np.array(found)
    except PosencError:
        raise
    except Exception as error:
        raise FormatError("the file holds one plain array", f"{path.name}: {str(error)[:120]}", _mend(error)) from None


def _archive(path: Path, tensor: str | None) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            names = [tensor] if tensor is not None else archive.files
            if len(names) > 64:
                raise FormatError("an .npz holds at most 64 arrays", len(names))
            missing = [n for n in names if n not in archive.files]
            if missing:
                raise FormatError(f"{path.name} holds {missing[0]}", archive.files[:6])
            return {name: np.asarray(archive[name]) for name in names}
    except PosencError:
        raise
    except Exception as error:
        raise FormatError("the file holds plain arrays", f"{path.name}: {str(error)[:120]}", _mend(error)) from None


def _mend(error: Exception) -> str:
    """What to do about a file that NumPy refuses."""
    if any(word in str(error).lower() for word in ("pickle", "python objects", "object array")):
        return (
            "Pickled objects can run code: save plain numbers with "
            "numpy.save(path, numpy.asarray(values, dtype=float))."
        )
    return "Save it with numpy.save."


def _is_pickle(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(4)
    except OSError:
        return False
    return (
        head[:1] == b"\x80"
        and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")
        and path.suffix.lower() not in (".npy", ".npz", ".safetensors", ".gguf")
    )


def check_numbers(values: np.ndarray, name: str) -> np.ndarray:
    """An array as float64 (complex128).

    Raises:
        SubjectError: it is empty or holds no numbers.
    """
    if values.size == 0 or values.ndim == 0:
        raise SubjectError(f"{name} holds numbers", values.shape)
    return np.asarray(values, dtype=np.complex128 if values.dtype.kind == "c" else np.float64)
