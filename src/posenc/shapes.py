"""Shapes in signatures: jaxtyping's annotations where jaxtyping is loaded (in tests), placeholders elsewhere.

With ``from __future__ import annotations`` nothing evaluates them at run time; the test suite loads jaxtyping first and
checks every annotated call through an import hook.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or "jaxtyping" in sys.modules:
    from jaxtyping import Bool, Float, Int, Real, Shaped
else:

    class _Unchecked:
        def __class_getitem__(cls, item: Any) -> Any:
            return item[0]

    Bool = Float = Int = Real = Shaped = _Unchecked

__all__ = ["Bool", "Float", "Int", "Real", "Shaped"]
