"""Where each kind of model keeps what its first attention layer reads: tensor names and config keys.

Facts from transformers 5.24 (``modeling_*.py`` and ``configuration_*.py`` of each type) and from the names in gguf 0.19
(``gguf/constants.py``). Only models whose first attention reads ``norm(word + position + type)`` or ``norm(word)``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Names:
    """One kind of model.

    Args:
        prefixes: what may stand before every name; the one under which the words are found is used.
        words, positions, types: embedding tables; None where there is none.
        norm: the normalisation before the projections, without ``.weight`` and ``.bias``.
        query, key: the projections. The same name twice is one matrix with queries, keys and values side by side,
            stored (in, out).
        query_norm, key_norm: normalisation of each head's queries and keys, if there is one.
        width, heads, key_heads, head_dim, eps: metadata keys; ``eps_default`` is the class default of ``eps``.
        causal: whether a token attends only to itself and earlier ones.
    """

    prefixes: tuple[str, ...]
    words: str
    norm: str
    query: str
    key: str
    width: str
    heads: str
    eps: str | None
    eps_default: float | None = None
    positions: str | None = None
    types: str | None = None
    query_norm: str | None = None
    key_norm: str | None = None
    key_heads: str | None = None
    head_dim: str | None = None
    causal: bool = False

    @property
    def additive(self) -> bool:
        """Whether positions are added to the words."""
        return self.positions is not None

    @property
    def fused(self) -> bool:
        """Whether queries, keys and values are one matrix."""
        return self.query == self.key


BERT = Names(
    prefixes=("bert.", ""),
    words="embeddings.word_embeddings.weight",
    positions="embeddings.position_embeddings.weight",
    types="embeddings.token_type_embeddings.weight",
    norm="embeddings.LayerNorm",
    query="encoder.layer.0.attention.self.query",
    key="encoder.layer.0.attention.self.key",
    width="hidden_size",
    heads="num_attention_heads",
    eps="layer_norm_eps",
    eps_default=1e-12,
)
LLAMA = Names(
    prefixes=("model.", ""),
    words="embed_tokens.weight",
    norm="layers.0.input_layernorm",
    query="layers.0.self_attn.q_proj",
    key="layers.0.self_attn.k_proj",
    width="hidden_size",
    heads="num_attention_heads",
    key_heads="num_key_value_heads",
    head_dim="head_dim",
    eps="rms_norm_eps",
    eps_default=1e-6,
    causal=True,
)
HUGGINGFACE = {
    "bert": BERT,
    "roberta": replace(BERT, prefixes=("roberta.", "")),
    "xlm-roberta": replace(BERT, prefixes=("roberta.", "")),
    "camembert": replace(BERT, prefixes=("roberta.", "")),
    "distilbert": replace(
        BERT,
        prefixes=("distilbert.", ""),
        types=None,
        query="transformer.layer.0.attention.q_lin",
        key="transformer.layer.0.attention.k_lin",
        width="dim",
        heads="n_heads",
        eps=None,
    ),
    "gpt2": Names(
        prefixes=("transformer.", ""),
        words="wte.weight",
        positions="wpe.weight",
        norm="h.0.ln_1",
        query="h.0.attn.c_attn",
        key="h.0.attn.c_attn",
        width="n_embd",
        heads="n_head",
        eps="layer_norm_epsilon",
        eps_default=1e-5,
        causal=True,
    ),
    "llama": LLAMA,
    "mistral": LLAMA,
    "qwen2": LLAMA,
    "qwen3": replace(LLAMA, query_norm="layers.0.self_attn.q_norm.weight", key_norm="layers.0.self_attn.k_norm.weight"),
}

_GGUF_ROTARY = Names(
    prefixes=("",),
    words="token_embd.weight",
    norm="blk.0.attn_norm",
    query="blk.0.attn_q",
    key="blk.0.attn_k",
    width="embedding_length",
    heads="attention.head_count",
    key_heads="attention.head_count_kv",
    head_dim="attention.key_length",
    eps="attention.layer_norm_rms_epsilon",
    causal=True,
)
GGUF = {
    "llama": _GGUF_ROTARY,
    "qwen2": _GGUF_ROTARY,
    "qwen3": replace(_GGUF_ROTARY, query_norm="blk.0.attn_q_norm.weight", key_norm="blk.0.attn_k_norm.weight"),
    "bert": replace(
        _GGUF_ROTARY,
        positions="position_embd.weight",
        types="token_types.weight",
        norm="token_embd_norm",
        key_heads=None,
        head_dim=None,
        eps="attention.layer_norm_epsilon",
        causal=False,
    ),
}
