"""The rules of the house that no linter knows."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import posenc

SRC = Path(posenc.__file__).parent
FILES = sorted(SRC.rglob("*.py"))
POWERS = {SRC / "formulas" / "spectrum.py", SRC / "formulas" / "scalings.py"}


def powers_of_a_base(source: str) -> list[int]:
    """Line numbers where something called base, theta or 10000 is raised to a power, by ** or a function."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.BinOp(left=left, op=ast.Pow()):
                base = left
            case ast.Call(
                func=ast.Attribute(attr="pow" | "power" | "float_power") | ast.Name(id="pow"), args=[base, _, *_]
            ):
                pass
            case _:
                continue
        text = "" if isinstance(base, ast.Call | ast.BinOp) else ast.unparse(base)  # the square of a table is none
        if any(word in text for word in ("base", "theta", "10000")):
            found.append(node.lineno)
    return found


def test_the_lint_itself_sees_powers():
    assert powers_of_a_base("x = base ** -2") == [1]
    assert powers_of_a_base("import numpy as np\ny = np.power(config.rope_theta, e)") == [2]
    assert powers_of_a_base("z = n ** 2") == []


def test_one_place_raises_a_base_to_a_power():
    elsewhere = {
        str(path.relative_to(SRC)): lines
        for path in FILES
        if path not in POWERS and (lines := powers_of_a_base(path.read_text()))
    }
    assert elsewhere == {}


def test_no_module_bears_the_name_of_a_public_function():
    functions = {name for name in posenc.__all__ if not name.startswith("_")}
    assert functions, "the public surface is empty"
    shadowed = {p.stem for p in FILES} | {p.name for p in SRC.rglob("*") if p.is_dir()}
    assert functions & shadowed - {"spec"} == set()


@pytest.mark.parametrize("module", ["posenc", "posenc.cli", "posenc.formats.sources", "posenc.formulas"])
def test_neither_torch_nor_transformers_is_imported(module):
    code = f"import sys, {module}; print([m for m in ('torch', 'transformers', 'scipy', 'gguf') if m in sys.modules])"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert seen.strip() == "[]"


def test_the_package_alone_imports_nothing_heavy():
    code = "import sys, posenc; print([m for m in ('numpy', 'pydantic', 'rich') if m in sys.modules])"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert seen.strip() == "[]"


def test_files_stay_readable():
    long = {str(p.relative_to(SRC)): n for p in FILES if (n := len(p.read_text().splitlines())) > 500}
    assert long == {}
