"""Generated mutants are named with their parameter within 1 %; generated right implementations have no defect.

``python tests/checker/many.py`` runs the same for as many seeds as one likes.
"""

from __future__ import annotations

import pytest

from checker.generated import case
from checker.many import judged


@pytest.mark.parametrize("first", range(610_000, 610_120, 20))
def test_generated_mutants_are_named_with_their_parameter(first):
    problems = [(seed, made.fault, made.convention, problem)
                for seed in range(first, first + 20)
                for made in [case(seed)]
                for problem in [judged(made)[0]]
                if problem]  # fmt: skip
    assert problems == []


@pytest.mark.parametrize("first", range(720_000, 720_060, 20))
def test_right_implementations_have_no_defect(first):
    problems = [(seed, made.convention, problem)
                for seed in range(first, first + 20)
                for made in [case(seed, right=True)]
                for problem in [judged(made)[0]]
                if problem]  # fmt: skip
    assert problems == []


def test_the_generator_makes_every_fault_and_convention():
    made = [case(seed) for seed in range(610_000, 610_200)]
    assert {m.fault for m in made} >= {
        "base",
        "factor",
        "sign",
        "rotated twice",
        "gain",
        "clamped",
        "order",
        "max_bias",
        "half-1",
    }
    assert {m.convention for m in made} >= {
        "x, positions",
        "bthd",
        "q, k, positions",
        "torch",
        "offset",
        "implied",
        "class",
        "dump",
        "array",
    }


def test_the_judge_itself_sees_a_wrong_answer():
    made = case(610_000)
    assert made.kinds
    made.kinds = ("sharding",)
    assert judged(made)[0] is not None
