"""Subjects that misbehave; examined in a process of their own."""

import os
import sys
import time

import numpy as np


def turned(x, positions):
    d = x.shape[-1]
    angle = np.outer(positions, 10000.0 ** (-np.arange(0, d, 2) / d))
    a, b = x[..., : d // 2].copy(), x[..., d // 2 :].copy()
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], -1)


def raises(x, positions):
    raise RuntimeError("boom\nsecond line")


def nan(x, positions):
    return np.full_like(x, np.nan)


def hangs(x, positions):
    while True:
        time.sleep(0.05)


def exits(x, positions):
    sys.exit(3)


def ends_the_process(x, positions):
    os._exit(7)


def prints(x, positions):
    print("noise" * 20)
    return turned(x, positions)


def changes_its_input(x, positions):
    x[...] = turned(x, positions)
    return x


def odd_names(banana, cherry):
    return turned(banana, cherry)


def nothing(x, positions):
    return None


def text(x, positions):
    return "hello"


def far_too_wide(positions):
    return np.zeros((len(positions), 10**6))


def nested_in_itself(x, positions):
    out = []
    out.append(out)
    return out


class NeedsMore:
    def __init__(self, alpha, beta):
        self.alpha = alpha

    def __call__(self, x):
        return x


class BadRepr:
    def __repr__(self):
        raise ValueError

    def __call__(self, x, positions):
        raise KeyError(self)


bad_repr = BadRepr()
number = 5
