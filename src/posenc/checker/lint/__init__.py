"""Lint: settings without code (a config, a GGUF file, a model folder) examined for what cannot be meant."""

from posenc.checker.lint.linting import is_settings, lint
from posenc.checker.lint.register import RULES, Rule

__all__ = ["RULES", "Rule", "is_settings", "lint"]
