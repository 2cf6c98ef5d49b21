"""What the package exports, exactly; and that importing it costs next to nothing."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

import posenc


def test_the_public_surface_is_exact():
    assert sorted(posenc.__all__) == [
        "__version__",
        "check",
        "cite",
        "diff",
        "frequencies",
        "identify",
        "inspect",
        "plot",
        "read",
        "report",
    ]
    assert {n for n in dir(posenc) if not n.startswith("_")} >= set(posenc.__all__) - {"__version__"}


@pytest.mark.parametrize("name", [n for n in posenc.__all__ if n not in ("__version__", "plot")])
def test_every_name_is_a_function_with_that_name(name):
    function = getattr(posenc, name)
    assert callable(function)
    assert function.__name__ == name
    assert function.__doc__


def test_plot_holds_the_report_s_figures():
    names = {n for n in dir(posenc.plot) if not n.startswith("_")}
    assert names == {"clocks", "heat", "ladder", "precision", "scaling", "similarity"}
    assert all(getattr(posenc.plot, n).__doc__ for n in names)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'torch'"):
        posenc.torch  # noqa: B018


def test_the_version_is_the_distribution_s():
    assert posenc.__version__ == version("posenc")


def test_the_whole_surface_imports_no_torch():
    code = (
        "import sys, posenc; [getattr(posenc, n) for n in posenc.__all__]; posenc.inspect('rotary(6)'); "
        "print([m for m in ('torch', 'transformers', 'jinja2', 'gguf', 'scipy') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_the_package_alone_imports_nothing_of_note():
    code = (
        "import sys; before = set(sys.modules); import posenc; "
        "print(sorted(m for m in set(sys.modules) - before if m != '__future__'))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "['posenc']\n"
