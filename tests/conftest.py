"""Shapes are checked in every test run: jaxtyping's hook wraps the numeric rooms before anything imports them."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import jaxtyping

CHECKED = ("posenc.formulas", "posenc.analysis")
jaxtyping.install_import_hook(CHECKED, "tests_typechecker.checked")
