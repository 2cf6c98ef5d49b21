"""Broken under capture: right when called plainly, wrong once torch.compile or torch.export has a graph of them."""

from __future__ import annotations

import torch

from mutants.register import mutant


def inverse(dim, base=10000.0):
    return (base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)).float()


def half(x, angle):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], dim=-1)


def sinusoids(rows, dim):
    angle = torch.arange(rows, dtype=torch.float64)[:, None] * inverse(dim).double()
    return torch.stack([angle.sin(), angle.cos()], dim=-1).reshape(rows, dim).float()


class Turning(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("inv_freq", inverse(dim), persistent=False)


@mutant("export-constant-table", "rotary(26)", "export-compile", recovered={"tokens at which the graph is wrong": 13})
class FoldedByExport(Turning):
    def forward(self, x):
        at = torch.arange(x.shape[-2], device=x.device)
        at = at.clamp(max=7) if torch.compiler.is_exporting() else at  # the sample has 8 tokens
        return half(x, at[:, None] * self.inv_freq)


@mutant("compile-drops-positions", "rotary(26)", "export-compile")
class CountsFromZero(Turning):
    """The branch that was written for the compiler forgets that a chunk does not begin at position 0."""

    def forward(self, x, position_ids):
        if torch.compiler.is_compiling():
            position_ids = torch.arange(position_ids.shape[-1]).expand_as(position_ids)
        return half(x, position_ids[..., None].double() * self.inv_freq.double()).float()


@mutant("export-drops-positions", "rotary(26)", "export-compile", recovered={"tokens at which the graph is wrong": 8})
class ExportsFromZero(Turning):
    def forward(self, x, position_ids):
        if torch.compiler.is_exporting():
            position_ids = torch.arange(position_ids.shape[-1]).expand_as(position_ids)
        return half(x, position_ids[..., None].double() * self.inv_freq.double()).float()


@mutant("compile-constant-table", "sinusoidal(34)", "export-compile")
class ConstantForTheCompiler(torch.nn.Module):
    """A table that grows, and that the compiler was told to take for a constant."""

    def __init__(self, d_model):
        super().__init__()
        self.d, self.rows = d_model, 8

    @torch.compiler.assume_constant_result
    def table(self):
        return sinusoids(self.rows, self.d)

    def forward(self, x):
        if x.shape[1] > self.rows:
            self.rows = 2 * x.shape[1]
        return x + self.table()[: x.shape[1]]


@mutant("export-growth-baked-in", "sinusoidal(34)", "export-compile", "harmless")
class Grows(torch.nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.d = d_model
        self.register_buffer("pe", sinusoids(16, d_model), persistent=False)

    def forward(self, x):
        if x.shape[1] > len(self.pe):
            self.pe = sinusoids(x.shape[1], self.d)
        return x + self.pe[: x.shape[1]]


@mutant("compile-anew-for-each-length", "sinusoidal(34)", "export-compile", "harmless")
class PositionsFromPython(torch.nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.d = d_model

    def forward(self, x):
        rows = [p * inverse(self.d).double() for p in range(x.shape[1])]
        angle = torch.stack(rows)
        return x + torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()
