"""Formulas in words for encodings in the score and those made from the content."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def score_formulas(number: Callable[[Any], str], formula: Callable[[Any], str]) -> dict[str, Callable[[Any], str]]:
    """A line for each kind, from the caller's way of writing numbers and of describing a nested encoding."""

    def kerple(e: Any) -> str:
        kernel = "-r1_h ln(1 + r2_h |i - j|)" if e.form == "log" else "-r1_h |i - j|^r2_h"
        return f"{kernel} added to the score, r1 and r2 trained for each of {e.num_heads} heads"

    def fire(e: Any) -> str:
        bias = f"f_h(ψ(i - j) / (ψ(max(L, i)) + {number(e.eps)})) added to the score, ψ(x) = ln(|c x| + 1)"
        network = f"f a network of {e.hidden} rectified units for {e.num_heads} heads"
        return f"{bias}, {network}; trained, from c = {number(e.c)}, L = {number(e.threshold)}"

    def sandwich(e: Any) -> str:
        first = e.first_pair
        span = f"i = {first} … {first + e.dim // 2 - 1}"
        ratio = f"{number(e.compression)} h / {e.num_heads}"
        return f"Σ cos((m - n) {number(e.base)}^(-2i/{e.dim})), {span}, over {ratio} added to the score of head h"

    def sinusoidal_bias(e: Any) -> str:
        bias = f"w_h . PE({_clipped(e)}) added to the score, w trained for each of {e.num_heads} heads"
        return f"{bias}; PE: {formula(e.sinusoid)}"

    def shaw(e: Any) -> str:
        vectors = f"trained vectors a of clip(j - i, -{e.limit}, {e.limit})"
        return f"{vectors} {_used(e, 'a')}"

    def relative_sinusoid(e: Any) -> str:
        return f"vectors r = PE({_clipped(e)}) {_used(e, 'r')}; PE: {formula(e.sinusoid)}"

    def transformer_xl(e: Any) -> str:
        terms = f"((q_i + u_h) . k_j + (q_i + v_h) . W R({_clipped(e)})) / √{e.head_dim}"
        return f"the score is {terms}; u, v, W trained, {e.num_heads} heads; R: {formula(e.sinusoid)}"

    def disentangled(e: Any) -> str:
        terms = ["q_i . k_j"]
        terms += ["q_i . W_K P_d(i,j)"] if e.content_to_position else []
        terms += ["k_j . W_Q P_d(j,i)" if e.as_printed else "k_j . W_Q P_d(i,j)"] if e.position_to_content else []
        buckets = "" if e.max_distance is None else f", logarithmic from {e.span // 2} to {e.max_distance}"
        rows = f"d(i,j) = clip(i - j + {e.span}, 0, {2 * e.span - 1}){buckets}"
        return f"the score is ({' + '.join(terms)}) / √({e.terms} · {e.head_dim}); {rows}; P, W trained"

    def cope(e: Any) -> str:
        return (
            f"q_i . e[p_ij] added to the score, p_ij = Σ sigmoid(score_it) over t = j … i, at most {e.positions - 1}; "
            f"e trained, linear between whole positions"
        )

    def forgetting(e: Any) -> str:
        bias = " + b" if e.bias else ""
        gate = f"log sigmoid(w x_t{bias})" if e.form == "log_sigmoid" else f"-softplus(w x_t{bias})"
        return f"Σ {gate} over t = j+1 … i added to the score, trained for each of {e.num_heads} heads"

    def selective_rotary(e: Any) -> str:
        step = f"Σ conv(W_2 W_1 x_t / |x_t|) over the tokens so far, rank {e.rank}, {e.window} tokens"
        return f"pair i of q and k turned by {number(e.base)}^(-2i/{e.head_dim}) times {step}"

    return {
        f.__name__: f
        for f in (
            kerple,
            fire,
            sandwich,
            sinusoidal_bias,
            shaw,
            relative_sinusoid,
            transformer_xl,
            disentangled,
            cope,
            forgetting,
            selective_rotary,
        )
    }


def _clipped(e: Any) -> str:
    return "i - j" if e.limit is None else f"clip(i - j, -{e.limit}, {e.limit})"


def _used(e: Any, name: str) -> str:
    uses = [f"q_i . {name} in the score"] if e.keys else []
    uses += [f"v_j + {name} in the values"] if e.values else []
    return "used as " + " and ".join(uses)
