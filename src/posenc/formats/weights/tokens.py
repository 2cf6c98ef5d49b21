"""A sentence to token ids: a model folder's own tokenizer, or the byte-pair vocabulary inside a GGUF file."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from posenc.errors import FormatError, ShapeError, SpecError
from posenc.formats import gguf_header

MOST_TOKENS = 512
SENTENCE_CHARACTERS = 2**16
TOKENIZER_BYTES = 2**27
PRE_TOKENIZERS = ("gpt-2", "smollm")
"""Names under ``tokenizer.ggml.pre`` whose splitting is built here (llama.cpp, llama_vocab): both split as GPT-2 does,
smollm takes every digit alone first."""
CONTROL = 3
"""The token type of start, end and padding marks."""


class Tokens(NamedTuple):
    """Ids and the texts they stand for."""

    ids: tuple[int, ...]
    texts: tuple[str, ...]


def tokenized(path: Path, sentence: str | Sequence[int]) -> Tokens:
    """Token ids of a sentence by the tokenizer of the model at ``path``, or the given ids themselves.

    Args:
        path: a model folder, a safetensors file, or a GGUF file. A ``tokenizer.json`` in the folder is used first.
        sentence: text, or token ids.

    Raises:
        FormatError: there is no tokenizer that can be used here; token ids always can.
        ShapeError: no tokens, more than :data:`MOST_TOKENS`, or ids that are no integers.
        SpecError: the ``tokenizers`` package is not installed.
    """
    if isinstance(sentence, str):
        if len(sentence) > SENTENCE_CHARACTERS:
            raise ShapeError(f"a sentence has at most {SENTENCE_CHARACTERS} characters", len(sentence))
        encoding = tokenizer(path).encode(sentence)
        ids, texts = encoding.ids, encoding.tokens
        if path.suffix == ".gguf":
            ids, texts = _with_start(path, ids, texts)
    else:
        ids = list(sentence)
        if any(isinstance(i, bool) or not isinstance(i, int) for i in ids):
            raise ShapeError("token ids are integers", ids[:8])
        texts = [str(i) for i in ids]
    if not 1 <= len(ids) <= MOST_TOKENS:
        raise ShapeError(f"a sentence has 1 to {MOST_TOKENS} tokens", len(ids))
    return Tokens(tuple(ids), tuple(texts))


def tokenizer(path: Path) -> Any:
    """The ``tokenizers.Tokenizer`` of a model, without truncation and padding; see :func:`tokenized`."""
    try:
        import tokenizers
    except ImportError:
        raise SpecError(
            "a sentence is split by the tokenizers package", "it is not installed",
            'Install it with: pip install "posenc[attention]"; or give token ids.',
        ) from None  # fmt: skip
    file = (path if path.is_dir() else path.parent) / "tokenizer.json"
    if not file.is_file():
        if path.suffix == ".gguf":
            return _from_gguf(path)
        raise FormatError(f"a tokenizer.json lies with the model ({file})", "no such file", "Give token ids instead.")
    if file.stat().st_size > TOKENIZER_BYTES:
        raise FormatError(f"a tokenizer.json has at most {TOKENIZER_BYTES} bytes", file.stat().st_size)
    try:
        made = tokenizers.Tokenizer.from_file(str(file))
    except Exception as error:  # the package raises bare Exception
        raise FormatError(f"{file} is a tokenizer", str(error)) from None
    made.no_truncation()
    made.no_padding()
    return made


def _from_gguf(path: Path) -> Any:
    """Byte-level byte pairs from the metadata (``tokenizer.ggml.*``)."""
    import tokenizers
    from tokenizers import models, pre_tokenizers

    header, texts = _vocabulary(path)
    said = header.metadata
    model, pre = said.get("tokenizer.ggml.model"), said.get("tokenizer.ggml.pre", "gpt-2")
    tokens, merges = texts.get("tokenizer.ggml.tokens", []), texts.get("tokenizer.ggml.merges", [])
    if model != "gpt2" or pre not in PRE_TOKENIZERS or not tokens or not merges:
        raise FormatError(
            f"a sentence is split by GGUF's gpt2 vocabulary with the pre-tokenizer {' or '.join(PRE_TOKENIZERS)}",
            f"{model} with {pre}", "Put the model's tokenizer.json beside the file, or give token ids.",
        )  # fmt: skip
    pairs = [(left, right) for left, _, right in (merge.partition(" ") for merge in merges)]
    if len(set(tokens)) != len(tokens) or not all(left and right for left, right in pairs):
        raise FormatError("tokens of a vocabulary differ, and a merge is two texts", f"{len(tokens)} tokens")
    try:
        made = tokenizers.Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=pairs))
    except Exception as error:  # a merge of something that is no token
        raise FormatError("the vocabulary and its merges agree", str(error)) from None
    first = [pre_tokenizers.Digits(individual_digits=True)] if pre == "smollm" else []
    made.pre_tokenizer = pre_tokenizers.Sequence([*first, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    kinds = said.get("tokenizer.ggml.token_type", ())
    special = [t for t, k in zip(tokens, kinds, strict=False) if k == CONTROL] if isinstance(kinds, tuple) else []
    made.add_special_tokens(special)
    return made


def _with_start(path: Path, ids: list[int], texts: list[str]) -> tuple[list[int], list[str]]:
    """The start token in front, where the file says that the model expects one."""
    said = gguf_header.read_header(path).metadata
    start = said.get("tokenizer.ggml.bos_token_id")
    if said.get("tokenizer.ggml.add_bos_token") is True and isinstance(start, int) and ids[:1] != [start]:
        return [start, *ids], ["<start>", *texts]
    return ids, texts


def _vocabulary(path: Path) -> tuple[gguf_header.Header, dict[str, list[str]]]:
    """The header, and the tokens and merges that it steps over."""
    found: dict[str, list[str]] = {}

    class Walk(gguf_header._Walk):
        def _skip_texts(self, count: int, key: str) -> None:
            start = self.at
            super()._skip_texts(count, key)  # holds every length against the file
            if key in ("tokenizer.ggml.tokens", "tokenizer.ggml.merges"):
                end, self.at, kept = self.at, start, []
                for _ in range(count):
                    kept.append(self._text(gguf_header.TEXT_BYTES, key))
                found[key], self.at = kept, end

    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
        return Walk(path, view, len(view)).header(), found
