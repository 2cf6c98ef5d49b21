"""Bases of rotary encodings that serve a context: the sum of cosines stays at or above 0 at every distance.

``sums`` has the bounds, ``scanning`` looks at many distances, ``excluding`` goes from left to right over bases that do
not serve, ``holding`` over bases that do, ``settling`` says from which base on all do, ``published`` what is in use.
"""

from posenc.analysis.base_search.search import smallest_base

__all__ = ["smallest_base"]
