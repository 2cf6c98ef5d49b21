"""Real engines, where they are installed (``make engines``); not part of ``make test``."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    """Mark every test of this folder."""
    for item in items:
        if HERE in Path(item.path).parents:
            item.add_marker(pytest.mark.engines)


@pytest.fixture(autouse=True)
def _installed(request):
    """Skip what runs an engine that is not there."""
    case = getattr(request.node, "callspec", None)
    engine = case.params["case"].engine if case is not None and "case" in case.params else None
    for name, module in (("mx.fast.rope", "mlx"), ("llama.cpp", "xllamacpp")):
        if engine in (None, name) and importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed (make engines)")
