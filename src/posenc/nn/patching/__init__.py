"""posenc's rotary inside other people's models: ``patch(model)`` and ``unpatch(model)``, per instance and reversible.

The *stable* level replaces the submodule that returns cosines and sines (transformers' ``*RotaryEmbedding``) by one
that computes them from the encoding in float64; how they are laid out is learned from the submodule itself, so the
model's own attention code goes on unchanged. The *fast* level replaces the application in the attention layers too.
Nothing global is touched: of two models of one class only the patched one changes.
"""

from posenc.nn.patching.replacing import PatchedRotary
from posenc.nn.patching.whole import declare_lengths, patch, patched, unpatch

__all__ = ["PatchedRotary", "declare_lengths", "patch", "patched", "unpatch"]
