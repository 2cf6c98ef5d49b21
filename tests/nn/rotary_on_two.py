"""One of two processes: context shards, heads spread over devices, sharded parameters. Run by the test beside it."""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh

from posenc.nn.positions import packed, sequence
from posenc.nn.rotary import RotaryEmbedding
from posenc.nn.shards import shard, shard_indices, unsharded

TOKENS, WIDTH = 24, 10


def context(rank, world):
    """Each process turns its own tokens; gathered, they are the whole."""
    rotary = RotaryEmbedding(WIDTH)
    q, k = torch.randn(2, 6, TOKENS, WIDTH), torch.randn(2, 3, TOKENS, WIDTH)
    for ends in (None, [0, 8, 24]):
        at = sequence(TOKENS, 5) if ends is None else packed(ends)
        whole = rotary(q, k, rotary.prepare(at))
        for how in ("contiguous", "zigzag"):
            mine = shard_indices(TOKENS, rank, world, how, cu_seqlens=ends)
            ready = rotary.prepare(shard(at, rank, world, how, cu_seqlens=ends))
            order = unsharded(TOKENS, world, how, cu_seqlens=ends)
            for part, full in zip(rotary(q[:, :, mine], k[:, :, mine], ready), whole, strict=True):
                gathered = [torch.empty_like(part) for _ in range(world)]
                dist.all_gather(gathered, part.contiguous())
                assert torch.equal(torch.cat(gathered, 2)[:, :, order], full)


def spread(mesh):
    """Queries and keys spread over devices by heads, rows or tokens, as tensor parallel layers hand them over."""
    for rotary in (RotaryEmbedding(WIDTH), RotaryEmbedding(WIDTH, rotary_dim=6, where="last", interleaved=True)):
        q, k = torch.randn(2, 6, TOKENS, WIDTH), torch.randn(2, 2, TOKENS, WIDTH)
        ready = rotary.prepare(torch.randint(1000, (2, TOKENS)))
        whole = rotary(q, k, ready)
        for placement in (Shard(1), Shard(0), Shard(2), Replicate()):
            a, b = (distribute_tensor(x, mesh, [placement]).requires_grad_() for x in (q, k))
            turned = rotary(a, b, ready)
            assert tuple(turned[0].placements) == (placement,)
            for part, full in zip(turned, whole, strict=True):
                assert torch.equal(part.full_tensor(), full)
            turned[0].sum().backward()
            assert a.grad.shape == q.shape


class Model(nn.Module):
    """A projection and a rotary whose frequencies are trained, or not."""

    def __init__(self, learned):
        super().__init__()
        self.project = nn.Linear(WIDTH, WIDTH)
        self.rotary = RotaryEmbedding(WIDTH, learned=learned)

    def forward(self, x, ids):
        return self.rotary.rotate(self.project(x), self.rotary.prepare(ids))


def sharded(mesh):
    """Sharded parameters, and their casts, change no angle."""
    x, ids = torch.randn(2, 3, 7, WIDTH), torch.arange(7) + 100_003
    for learned in (False, True):
        torch.manual_seed(1)
        model = Model(learned)
        expected = model(x, ids).detach()
        fully_shard(model, mesh=mesh)
        got = model(x, ids)
        assert (got - expected).abs().max() < 1e-6
        got.square().sum().backward()
        low = fully_shard(Model(learned), mesh=mesh, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))
        low(x, ids)
        assert low.rotary.numbers(torch.device("cpu"))["theta"].dtype == torch.float64
        plain = RotaryEmbedding(WIDTH).prepare(ids)
        assert torch.equal(plain.cos, low.rotary.prepare(ids).cos) or learned


def main():
    """Everything, in a group of two."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rank, world, file = int(sys.argv[1]), 2, sys.argv[2]
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=world)
    mesh = init_device_mesh("cpu", (world,))
    context(rank, world)
    spread(mesh)
    sharded(mesh)
    dist.barrier()
    dist.destroy_process_group()
    print("fine")


if __name__ == "__main__":
    main()
