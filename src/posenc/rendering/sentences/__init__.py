"""Findings in words: pure functions from records to one plain sentence with its number."""

from posenc.rendering.sentences import attention, models, pairs, tables

__all__ = ["attention", "models", "pairs", "tables"]
