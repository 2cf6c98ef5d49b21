"""posenc: the place for position encodings of Transformers.

Everything here is loaded on first use; importing the package imports nothing heavy, and never torch.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing.TYPE_CHECKING without importing typing: this file is read at every start
if TYPE_CHECKING:
    from posenc.analysis.citations import cite
    from posenc.analysis.comparison import diff
    from posenc.analysis.examining import inspect
    from posenc.checker.checking import check
    from posenc.checker.identifying import identify
    from posenc.formats.sources import read
    from posenc.formulas.scalings import frequencies
    from posenc.rendering.page import report
    from posenc.rendering.plots import plot

__version__ = "0.1.0"
__all__ = ["__version__", "check", "cite", "diff", "frequencies", "identify", "inspect", "plot", "read", "report"]

_HOMES = {
    "check": "posenc.checker.checking",
    "cite": "posenc.analysis.citations",
    "diff": "posenc.analysis.comparison",
    "frequencies": "posenc.formulas.scalings",
    "identify": "posenc.checker.identifying",
    "inspect": "posenc.analysis.examining",
    "plot": "posenc.rendering.plots",
    "read": "posenc.formats.sources",
    "report": "posenc.rendering.page",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'posenc' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
