"""Broken tables: what tutorials print, widths, rows, modules that hold them wrongly, time."""

from __future__ import annotations

import math

import numpy as np
import torch

from mutants.register import data, mutant


def table(rows, theta, order="interleaved"):
    angle = np.outer(np.arange(rows), theta)
    if order == "interleaved":
        return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(rows, -1)
    halves = {"sin|cos": [np.sin(angle), np.cos(angle)], "cos|sin": [np.cos(angle), np.sin(angle)]}[order]
    return np.concatenate(halves, axis=-1)


def plain(d, base=10000.0):
    return np.array([base ** (-2 * i / d) for i in range(d // 2)])


data(
    "layout-sincos-concat",
    table(300, plain(34), "sin|cos"),
    "sinusoidal(34)",
    "layout",
    "convention",
    {"order": "sin|cos"},
)
data(
    "layout-timestep-flip",
    table(300, plain(34), "sin|cos"),
    "sinusoidal(34, order='cos|sin')",
    "layout",
    "convention",
    {"order": "sin|cos"},
)
data(
    "exponent-half-minus-one",
    table(300, [10000.0 ** (-i / 16) for i in range(17)]),
    "sinusoidal(34)",
    "exponent",
    "convention",
    {"shift": 1},
)
data("exponent-precedence", table(300, [math.exp(-2.0 * i) for i in range(17)]), "sinusoidal(34)", "exponent")
data(
    "exponent-base-squared",
    table(300, plain(34, 1e8)),
    "sinusoidal(34)",
    "exponent",
    recovered={"base": 1e8, "exponent": 2},
)
data(
    "time-unit-range",
    table(2000, [1.0 * 10000.0 ** (-i / 17) for i in range(17)]),
    "sinusoidal(34, first=1000)",
    "time-unit",
    recovered={"factor on every frequency": 1e-3},
)
data("padding-first-row", table(302, plain(34)), "sinusoidal(34, offset=2)", "mask-padding", recovered={"offset": 0})
data(
    "padding-roberta-table-size",
    np.random.default_rng(0).normal(size=(512, 12)),
    "learned(12, shape=(512,), offset=4)",
    "mask-padding",
    recovered={"rows of the table": 512},
)
data(
    "amplitude-sqrt-d",
    math.sqrt(34) * table(300, plain(34)),
    "sinusoidal(34)",
    "integration",
    recovered={"amplitude": math.sqrt(34)},
)


@mutant(
    "exponent-double-step", "sinusoidal(512)", "exponent", recovered={"exponent of channel 2 over the wanted one": 2}
)
def nested_loops(positions):
    d = 512
    out = np.zeros((len(positions), d))
    for i in range(0, d, 2):
        out[:, i] = np.sin(positions / 10000 ** (2 * i / d))
        out[:, i + 1] = np.cos(positions / 10000 ** (2 * (i + 1) / d))
    return out


@mutant("exponent-cosine-next", "sinusoidal(34)", "exponent")
def cosine_of_its_own(positions):
    c = np.arange(34)
    angle = np.asarray(positions)[:, None] / 10000.0 ** (c / 34)
    return np.where(c % 2 == 0, np.sin(angle), np.cos(angle))


@mutant("odd-width-sinusoid", "sinusoidal(34)", "odd-dimension", "convention")
class BreaksAtOddWidths(torch.nn.Module):
    def __init__(self, d_model, max_len=400):
        super().__init__()
        at = torch.arange(max_len, dtype=torch.float64)[:, None]
        angle = at * 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
        pe = torch.zeros(max_len, d_model)
        pe[:, 0::2], pe[:, 1::2] = angle.sin(), angle.cos()
        self.register_buffer("pe", pe, persistent=False)

    def forward(self, x):
        if x.shape[1] > len(self.pe):
            raise ValueError("too long")
        return x + self.pe[: x.shape[1]]


class Base(torch.nn.Module):
    """A right table, held in whichever way the class below holds it."""

    def __init__(self, d_model, max_len=400):
        super().__init__()
        self.hold(torch.from_numpy(table(max_len, plain(d_model))).float())

    def forward(self, x):
        if x.shape[1] > len(self.pe):
            raise ValueError("too long")
        return x + self.pe[: x.shape[1]]


@mutant("table-plain-attribute", "sinusoidal(34)", "buffer-state-dict", recovered={"held as": "plain attribute"})
class PlainAttribute(Base):
    def hold(self, pe):
        self.pe = pe


@mutant("table-as-parameter", "sinusoidal(34)", "buffer-state-dict", recovered={"held as": "trainable Parameter"})
class TrainableParameter(Base):
    def hold(self, pe):
        self.pe = torch.nn.Parameter(pe)


@mutant("table-frozen-parameter", "sinusoidal(34)", "buffer-state-dict", "convention", {"held as": "frozen Parameter"})
class FrozenParameter(Base):
    def hold(self, pe):
        self.pe = torch.nn.Parameter(pe, requires_grad=False)


@mutant("meta-derived-buffer", "sinusoidal(34)", "meta-init", "convention")
class NotRebuilt(Base):
    def hold(self, pe):
        self.register_buffer("pe", pe, persistent=False)


@mutant("table-fewer-rows", "sinusoidal(34)", "table-length", recovered={"rows of the table": 300})
class FewerRows(Base):
    def __init__(self, d_model):
        super().__init__(d_model, 300)

    def hold(self, pe):
        self.register_buffer("pe", pe, persistent=False)

    def forward(self, x):
        return self.pe[: x.shape[1]].expand(x.shape[0], -1, -1)


@mutant("table-broadcasts", "sinusoidal(34)", "table-length", recovered={"distinct rows": 1})
class Broadcasts(Base):
    def hold(self, pe):
        self.register_buffer("pe", pe[1:2], persistent=False)

    def forward(self, x):
        return x + self.pe


@mutant("projection-anew", "sinusoidal(34)", "integration")
class NewProjection(Base):
    def hold(self, pe):
        self.register_buffer("pe", pe, persistent=False)

    def forward(self, x):
        joined = torch.cat([x, self.pe[: x.shape[1]].expand_as(x)], dim=-1)
        return torch.nn.Linear(joined.shape[-1], x.shape[-1])(joined)


@mutant("weight-unregistered", "sinusoidal(34)", "integration", recovered={"unregistered": "mix"})
class UnregisteredWeight(Base):
    def hold(self, pe):
        self.register_buffer("pe", pe, persistent=False)
        self.mix = torch.ones(1, requires_grad=True)

    def forward(self, x):
        if x.shape[1] > len(self.pe):
            raise ValueError("too long")
        return x + self.mix * self.pe[: x.shape[1]]


@mutant("grown-table-saved", "sinusoidal(34)", "buffer-state-dict")
class GrowsAndSaves(Base):
    def hold(self, pe):
        self.d = pe.shape[1]
        self.register_buffer("pe", pe)

    def forward(self, x):
        if x.shape[1] > len(self.pe):
            self.pe = torch.from_numpy(table(x.shape[1], plain(self.d))).float()
        return x + self.pe[: x.shape[1]]


@mutant("seasonal-sum-of-periods", "seasonal((24.0, 168.0))", "width", recovered={"width": 384})
def as_wide_as_the_periods(positions):
    columns = []
    for period in (24, 168):
        for k in range(1, period + 1):
            angle = 2 * np.pi * k * np.asarray(positions) / period
            columns += [np.sin(angle), np.cos(angle)]
    return np.stack(columns, axis=1)


@mutant("time-hour-for-day", "seasonal((24.0, 744.0))", "time-unit")
def hour_in_every_field(positions):
    hour = 2 * np.pi * (np.asarray(positions) % 24) / 24
    return np.stack([np.sin(hour), np.cos(hour), np.sin(hour), np.cos(hour)], axis=1)


@mutant("axis-naming-only", "sinusoidal(12, axes=split((3, 3)))", "axis-order", "convention", {"axes": "columns first"})
def width_first(height, width):
    y, x = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    theta = plain(6)
    halves = [
        np.stack([np.sin(np.outer(p.ravel(), theta)), np.cos(np.outer(p.ravel(), theta))], -1).reshape(p.size, -1)
        for p in (x, y)
    ]
    return np.concatenate(halves, axis=1)


@mutant("axis-meshgrid-order", "sinusoidal(12, axes=split((3, 3)))", "axis-order")
def transposed_cells(height, width):
    y, x = np.meshgrid(np.arange(height), np.arange(width), indexing="xy")
    theta = plain(6)
    halves = [
        np.stack([np.sin(np.outer(p.ravel(), theta)), np.cos(np.outer(p.ravel(), theta))], -1).reshape(p.size, -1)
        for p in (y, x)
    ]
    return np.concatenate(halves, axis=1)


@mutant("axis-dropped", "sinusoidal(12, axes=split((3, 3)))", "axis-order", recovered={"axis dropped": "columns"})
def one_axis(height, width):
    y = np.repeat(np.arange(height), width)
    half = np.stack([np.sin(np.outer(y, plain(6))), np.cos(np.outer(y, plain(6)))], -1).reshape(y.size, -1)
    return np.concatenate([half, half], axis=1)
