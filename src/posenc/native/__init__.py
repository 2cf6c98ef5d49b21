"""The C kernels and their loader; everything has a plain path that runs without them."""

from posenc.native.loading import Library, find, state

__all__ = ["Library", "find", "state"]
