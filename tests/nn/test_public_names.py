"""What posenc.nn exports, exactly: names, docstrings, loading on first use, and what type checkers are told."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

import posenc.nn
from nn.register import REGISTER
from posenc.nn import build
from posenc.spec import parse
from posenc.spec.references import cited

FILE = Path(posenc.nn.__file__)
EXPORTED = {
    *("ContentEncoding", "InputEncoding", "Positions", "QueryKeyEncoding", "ScoreEncoding", "as_positions", "build"),
    # at the input
    *("AdaptiveSinusoid", "AdjustedSinusoid", "CalendarEncoding", "ClockEncoding", "ConstantEncoding"),
    *("FourierFeatures", "HierarchicalEncoding", "LearnableFourierFeatures", "LearnedTable", "OneHotEncoding"),
    *("RandomVectorsEncoding", "SeasonalEncoding", "SinusoidalEncoding", "Time2VecEncoding"),
    *("PatchGrid", "mae_sinusoid", "pad_to_patches", "patch_grid", "row_major_sinusoid", "simple_vit_sinusoid"),
    *("vit_table", "Add", "Concatenate", "Gated", "Weighted", "combination"),
    # at queries and keys
    *("RotaryEmbedding", "QueryScaling", "apply_rotary_pos_emb", "both_columns", "rotary_embedding"),
    *("convert_channels", "convert_projection", "MovableKeys", "move_keys"),
    # in the score, and from the content
    *("AlibiBias", "AlibiChannels", "DisentangledScores", "FireBias", "KerpleBias", "RelativeSinusoidVectors"),
    *("SandwichBias", "ShawVectors", "SinusoidalRelativeBias", "T5RelativeBias", "TransformerXLScores"),
    *("WaveChannels", "ContextualPositions", "ForgettingPositions", "SelectivePositions"),
    # positions
    *("Multimodal", "digits", "grid", "instants", "multimodal", "packed", "padded", "random_start", "randomised"),
    *("sentence_positions", "sequence", "shard", "shard_indices", "unsharded"),
    # models
    *("Attention", "Cache", "LayerEncodings", "declare_lengths", "from_model", "patch", "patched", "unpatch"),
}
each = pytest.mark.parametrize("name", posenc.nn.__all__)


def public(name):
    return getattr(posenc.nn, name)


def own_methods(cls):
    """Public methods that posenc defines for a class, its bases included, with their docstrings or their bases'."""
    found = {}
    for base in cls.__mro__:
        if base.__module__.startswith("posenc."):
            for name, member in vars(base).items():
                if inspect.isfunction(member) and not name.startswith("_"):
                    found.setdefault(name, member)
    return found


def takes_tensors(function):
    """Whether an argument is annotated as a tensor or positions."""
    annotations = {n: str(a) for n, a in getattr(function, "__annotations__", {}).items() if n != "return"}
    return any(re.search(r"\b(Tensor|Positions)\b", a) for a in annotations.values())


def raised(function):
    """Names of the errors that a function's own body raises."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    calls = [n.exc for n in ast.walk(tree) if isinstance(n, ast.Raise) and isinstance(n.exc, ast.Call)]
    return {call.func.id for call in calls if isinstance(call.func, ast.Name)} & {
        "ShapeError",
        "SpecError",
        "SubjectError",
    }


def test_the_names_are_exact():
    assert set(posenc.nn.__all__) == EXPORTED
    assert len(posenc.nn.__all__) == len(EXPORTED)


def test_every_module_of_the_register_has_a_name():
    assert {entry.module for entry in REGISTER.values()} <= EXPORTED


def test_type_checkers_are_told_the_same():
    tree = ast.parse(FILE.read_text("utf-8"))
    imports = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module.startswith("posenc.nn")]
    told = {alias.name: n.module for n in imports for alias in n.names}
    assert set(told) == EXPORTED
    for name, home in told.items():
        assert public(name) is getattr(sys.modules[home], name)


@each
def test_a_name_is_that_of_the_thing(name):
    assert public(name).__name__ == name
    assert name in dir(posenc.nn)


def test_no_module_of_the_room_bears_a_public_name():
    stems = {p.stem for p in FILE.parent.rglob("*.py")} | {p.name for p in FILE.parent.iterdir() if p.is_dir()}
    assert stems & EXPORTED == set()


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"posenc\.nn' has no attribute 'RoPE'"):
        posenc.nn.RoPE  # noqa: B018


def test_importing_the_room_loads_no_other_module_of_it():
    code = "import sys, posenc.nn; print(sorted(m for m in sys.modules if m.startswith('posenc.nn.')))"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert seen.strip() == "['posenc.nn.building', 'posenc.nn.interfaces']"


def test_no_name_needs_more_than_torch():
    code = (
        "import sys, posenc.nn; [getattr(posenc.nn, n) for n in posenc.nn.__all__]; "
        "print([m for m in ('transformers', 'onnx', 'safetensors', 'gguf', 'jinja2') if m in sys.modules])"
    )
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert seen.strip() == "[]"


@each
def test_a_docstring_opens_with_one_sentence(name):
    opening = inspect.cleandoc(public(name).__doc__ or "").split("\n\n")[0].replace("\n", " ")
    first = re.split(r"(?<=[a-z`)\d][.:;])\s", opening)[0]
    assert first.endswith((".", ":", ";")), opening
    assert len(first) < 220
    assert not re.match(r"^(This|The class|A class|Function)\b", opening)


@each
def test_a_docstring_has_an_example_that_runs(name):
    thing = public(name)
    (found,) = doctest.DocTestFinder(recurse=False).find(thing, name, module=sys.modules[thing.__module__])
    assert found.examples
    assert any(example.want for example in found.examples), "an example shows what comes out"
    failed, tried = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE, verbose=False).run(found)
    assert tried == len(found.examples)
    assert not failed


def functions_of(name):
    """A function, or the methods of a class."""
    return list(own_methods(public(name)).values()) if inspect.isclass(public(name)) else [public(name)]


TENSOR = [name for name in posenc.nn.__all__ if any(map(takes_tensors, functions_of(name)))]


def test_most_names_take_tensors():
    assert {"RotaryEmbedding", "SinusoidalEncoding", "Attention", "convert_channels", "padded"} <= set(TENSOR)
    assert {"build", "grid", "patch_grid"}.isdisjoint(TENSOR)


@pytest.mark.parametrize("name", TENSOR)
def test_shapes_stand_where_tensors_are_taken(name):
    thing = public(name)
    texts = [thing.__doc__ or ""]
    if inspect.isclass(thing):
        texts += [inspect.getdoc(getattr(thing, n)) or "" for n, f in own_methods(thing).items() if takes_tensors(f)]
    assert any(re.search(r"``\([a-z.][^`]*[,)]", text) for text in texts), "a shape such as ``(batch, tokens, dim)``"


def makers(name):
    """What can raise when a name is called, and the docstring that must say so: of the class that has ``__init__``."""
    thing = public(name)
    if not inspect.isclass(thing):
        return [(thing, thing.__doc__ or "")]
    homes = [base for base in thing.__mro__ if inspect.isfunction(vars(base).get("__init__"))]
    homes = [
        base for base in homes if base.__module__.startswith("posenc.") and "__dataclass_fields__" not in vars(base)
    ]
    return [(vars(base)["__init__"], base.__doc__ or "") for base in homes]


ERRORS = [(name, text, error) for name in posenc.nn.__all__ for f, text in makers(name) for error in sorted(raised(f))]


def test_errors_are_found_at_all():
    found = {(name, error) for name, _, error in ERRORS}
    assert {("RotaryEmbedding", "SpecError"), ("grid", "ShapeError"), ("AlibiBias", "SpecError")} <= found


@pytest.mark.parametrize(("name", "text", "error"), ERRORS, ids=[f"{name}-{error}" for name, _, error in ERRORS])
def test_errors_are_stated(name, text, error):
    assert re.search(rf"Raises:(.|\n)*{error}: ", text), f"{error} is raised"


WITH_A_PAPER = [  # others cite nothing, or what their sinusoid cites
    kind
    for kind, entry in REGISTER.items()
    if kind not in ("adjusted", "hierarchical", "query_scale") and cited((parse(entry.lines[0])[0],))
]


@pytest.mark.parametrize("kind", WITH_A_PAPER)
def test_a_module_names_its_source(kind):
    text = inspect.cleandoc(public(REGISTER[kind].module).__doc__)
    references = cited((parse(REGISTER[kind].lines[0])[0],))
    assert any(r.authors[0].split()[-1] in text and str(r.year) in text for r in references), text


@pytest.mark.parametrize("kind", REGISTER)
def test_a_repr_rebuilds_the_value(kind):
    for line in REGISTER[kind].lines:
        module = build(line)
        said = repr(module).split("\n")
        assert said[0].startswith(type(module).__name__ + "(")
        assert str(module.value) in "".join(said)


CONVENTIONS = [
    (lambda: build("rotary(6)"), "pairs (i, i + 3)"),
    (lambda: build("rotary(6, interleaved=True, base=500)"), "interleaved=True, base=500), pairs (2i, 2i + 1)"),
    (lambda: build("rotary(8, rotary_dim=4, where='last')"), "pairs (4 + i, 4 + i + 2)"),
    (lambda: build("rotary(6) >> yarn(4, original=64)"), ">> yarn(4, original=64)"),
    (lambda: build("rotary(6) >> dynamic(4, original=64)"), "length from row"),
    (lambda: build("rotary(8, axes=split((1, 3)))"), "2 axes of index coordinates"),
    (lambda: build("alibi(3)", channels=True), "alibi(3), as channels"),
    (lambda: build("sandwich(4, dim=6)", channels=True), "sandwich(4, dim=6)"),
    (lambda: build("t5_bias(3)"), "t5_bias(3)"),
    (lambda: build("sinusoidal(6, order='sin|cos')"), "order='sin|cos'"),
    (lambda: posenc.nn.Attention(12, 3, "rotary(4)", kv_heads=1, window=5), "12, 3 heads of 4, 1 of keys and values"),
    (lambda: posenc.nn.Attention(12, 3, causal=False), "both directions"),
    (lambda: posenc.nn.Concatenate(3, 5), "3, position_dim=5"),
]


@pytest.mark.parametrize(("make", "words"), CONVENTIONS, ids=[words for _, words in CONVENTIONS])
def test_a_repr_states_the_convention(make, words):
    assert words in repr(make())


def test_names_survive_star_import():
    scope = {}
    exec("from posenc.nn import *", scope)
    assert set(scope) - {"__builtins__"} == EXPORTED
    assert isinstance(scope["RotaryEmbedding"](4), torch.nn.Module)
