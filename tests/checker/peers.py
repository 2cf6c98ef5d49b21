"""Peers that are not part of the environment, from ``.venv/peers`` (``make bench``); a missing one skips the test."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

_SPEC = importlib.util.spec_from_file_location("peers_of_benchmarks", Path(__file__).parents[2] / "benchmarks/peers.py")
files = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(files)


def file(name, *args):
    """The module of one file of a package: ``torchtune``, ``litgpt``, ``timm``."""
    try:
        return getattr(files, name)(*args)
    except ImportError as error:
        pytest.skip(str(error))


def package(group, name):
    """A package of ``.venv/peers/group``, which stands on the path only while it is imported."""
    with warnings.catch_warnings(), _path(files.PLACE / group):
        warnings.simplefilter("ignore")
        return pytest.importorskip(name)


def keras_layers():
    """Layers of Keras Hub, on torch."""
    os.environ.setdefault("KERAS_BACKEND", "torch")
    os.environ.setdefault("KERAS_HOME", tempfile.gettempdir())
    return package("keras", "keras_hub").layers


@contextlib.contextmanager
def _path(folder):
    sys.path.append(str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
