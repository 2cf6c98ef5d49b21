"""What is said of a decomposition of attention."""

from __future__ import annotations

from posenc.records.decomposition import AttentionDecomposition
from posenc.rendering.sentences.numbers import many, real


def finding(record: AttentionDecomposition) -> str:
    """The most positional head, how many read words alone, and how exactly the terms add up."""
    known = [head for head in record.heads if head.positional is not None]
    exact = f"The {len(record.terms)} terms add up to the scores to {real(record.sum_error, 1)}."
    if not known:
        return f"No head's scores differ between keys: the sentence is too short or the weights are constant. {exact}"
    most = max(known, key=lambda head: head.positional or 0.0)
    words = sum(head.verdict == "content" for head in known)
    return (
        f"Head {most.head} is the most positional: position explains {most.positional:.1%} of what its scores differ "
        f"by; in {words} of {many(len(record.heads), 'head')} it explains at most 10 %. {exact}"
    )
