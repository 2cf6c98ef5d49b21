"""One of two processes: shards of context and heads, sharded parameters, spread tensors. Run by the test beside it."""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh
from torch.nn.functional import scaled_dot_product_attention

from nn.register import REGISTER, case_of, stirred
from nn.subjects_of_safety import SUBJECTS, inputs, made
from posenc.nn import AlibiChannels, Positions, build, packed, sequence, shard, shard_indices, unsharded
from posenc.spec import parse

TOKENS, HEADS, WIDTH = 24, 4, 6
BIASES = ("alibi(4)", "t5_bias(4, num_buckets=8, max_distance=16)", "kerple(4)", "fire(4, threshold=8)", "sandwich(4)")


def gathered(part, dim):
    """The parts of all processes, by a real collective, one behind the other."""
    parts = [torch.empty_like(part) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, part.contiguous())
    return torch.cat(parts, dim)


def attended(q, k, v, bias, seen):
    """Attention with a bias, keys that are not seen hidden."""
    return scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype).masked_fill(~seen, -torch.inf))


def visible(q_at, k_at):
    """Causal, and within a document."""
    seen = q_at.ids[..., :, None] >= k_at.ids[..., None, :]
    if q_at.document is None:
        return seen
    return seen & (q_at.document[:, None, :, None] == k_at.document[:, None, None, :])


def context(rank, world):
    """Each process has its own queries and keys; keys go round, and the results together are the whole."""
    q, k, v = (torch.randn(2, HEADS, TOKENS, WIDTH) for _ in range(3))
    for line in BIASES:
        bias = stirred(build(line))
        for ends in (None, [0, 8, 24]):
            at = sequence(TOKENS) if ends is None else packed(ends)
            whole = attended(q, k, v, bias.at(at, at), visible(at, at)).detach()
            for how in ("contiguous", "zigzag"):
                mine = shard_indices(TOKENS, rank, world, how, cu_seqlens=ends)
                here, order = (
                    shard(at, rank, world, how, cu_seqlens=ends),
                    unsharded(TOKENS, world, how, cu_seqlens=ends),
                )
                keys, values, ids = (gathered(x[..., mine, :], 2) for x in (k, v, at.ids.unsqueeze(-1)))
                document = None if at.document is None else gathered(at.document[:, mine], 1)
                there = Positions(ids[..., 0], document=document)
                part = attended(q[..., mine, :], keys, values, bias.at(here, there), visible(here, there))
                assert (gathered(part.detach(), 2)[:, :, order] - whole).abs().max() < 1e-6


def heads(rank, world):
    """Each process has some of the heads; a trained table's columns go with them."""
    at = sequence(TOKENS, 3)
    mine = (rank * HEADS // world, (rank + 1) * HEADS // world)
    for line in BIASES:
        whole = stirred(build(line))
        part = build(line, heads=mine)
        state = {}
        for name, p in part.named_parameters():
            full = whole.state_dict()[name]
            axis = next((a for a, (n, m) in enumerate(zip(full.shape, p.shape, strict=True)) if n != m), None)
            state[name] = full if axis is None else full.chunk(world, axis)[rank]
        part.load_state_dict(state, strict=True)
        assert torch.allclose(gathered(part.at(at, at).detach(), 1), whole.at(at, at), atol=1e-5), line
        if state and any(p.shape != whole.state_dict()[n].shape for n, p in part.named_parameters()):
            weights = torch.randn(1, HEADS, TOKENS, TOKENS)
            (part.at(at, at) * weights[:, mine[0] : mine[1]]).sum().backward()
            (whole.at(at, at) * weights).sum().backward()
            for name, p in part.named_parameters():
                other = whole.get_parameter(name).grad
                if p.shape == other.shape:  # every process has the whole of it: its gradients add up
                    dist.all_reduce(p.grad)
                else:
                    axis = next(a for a, (n, m) in enumerate(zip(other.shape, p.shape, strict=True)) if n != m)
                    other = other.chunk(world, axis)[rank]
                assert torch.allclose(p.grad, other, atol=1e-4, rtol=1e-4), (line, name)


def channels_in_context(rank, world):
    """Channels hold their own position only, so that shards need nothing of each other."""
    alibi, at = AlibiChannels(HEADS), sequence(TOKENS)
    q, k = torch.randn(2, HEADS, TOKENS, WIDTH), torch.randn(2, HEADS, TOKENS, WIDTH)
    whole = alibi(q, k, alibi.prepare(at))
    mine = shard_indices(TOKENS, rank, world, "zigzag")
    part = alibi(q[:, :, mine], k[:, :, mine], alibi.prepare(shard(at, rank, world, "zigzag")))
    for a, b in zip(part, whole, strict=True):
        assert torch.equal(gathered(a, 2)[:, :, unsharded(TOKENS, world, "zigzag")], b)


class Wrapped(nn.Module):
    """A call of the register as a module."""

    def __init__(self, kind):
        super().__init__()
        value = parse(REGISTER[kind].lines[-1])[0]
        self.entry, self.encoding = REGISTER[kind], stirred(build(value))
        self.case = case_of(self.entry, value)

    def forward(self):
        return self.entry.called(self.encoding, self.case)


def sharded(mesh):
    """Sharded parameters, and their casts, change nothing but what a cast of what is trained must."""
    makers = {k: lambda k=k: Wrapped(k) for k, e in REGISTER.items() if parse(e.lines[0])[0].enters == "input"}
    for name, make in {**makers, **{s: lambda s=s: made(s) for s in SUBJECTS}}.items():
        given = () if name in makers else inputs()
        model = make()
        expected = model(*given).detach()
        (model(*given) * torch.arange(expected.shape[-1])).sum().backward() if list(model.parameters()) else None
        spread = make()
        fully_shard(spread, mesh=mesh)
        got = spread(*given)
        assert torch.allclose(got, expected, atol=1e-5), name
        if list(model.parameters()):
            (got * torch.arange(expected.shape[-1])).sum().backward()
            for (n, p), q in zip(spread.named_parameters(), model.parameters(), strict=True):
                if q.grad is not None:
                    assert torch.allclose(p.grad.full_tensor(), q.grad, atol=1e-3, rtol=1e-3), (name, n)
        low = fully_shard(make(), mesh=mesh, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))
        low(*given)
        for module in low.modules():
            for numbers in getattr(module, "_known", {}).values():
                assert all(t.dtype in (torch.float64, torch.int64) for t in numbers.values()), name


def spread(mesh):
    """Scores, queries and content spread over the processes, as tensor parallel layers hand them over."""
    at = Positions(torch.arange(TOKENS) + 5)
    for line in BIASES[:2]:
        bias = stirred(build(line))
        scores = torch.randn(2, HEADS, TOKENS, TOKENS)
        whole = bias(scores, scores, scores, at, at).detach()
        for placement in (Shard(0), Shard(1), Shard(2), Replicate()):
            given = distribute_tensor(scores, mesh, [placement])
            found = bias(given, given, given, at, at)
            assert torch.allclose(found.full_tensor(), whole, atol=1e-6), (line, placement)
    alibi, q = AlibiChannels(HEADS), torch.randn(2, HEADS, TOKENS, WIDTH)
    whole = alibi(q, q, alibi.prepare(at))
    for placement in (Shard(0), Shard(1), Shard(2), Replicate()):
        given = distribute_tensor(q, mesh, [placement])
        for a, b in zip(alibi(given, given, alibi.prepare(at)), whole, strict=True):
            assert torch.equal(a.full_tensor(), b), placement
    for line in ("sinusoidal(6)", "learned(6, shape=(31,))", "time2vec(6)"):
        encoding, x = stirred(build(line)), torch.randn(2, TOKENS, WIDTH)
        whole = encoding(x, at).detach()
        for placement in (Shard(0), Shard(1), Shard(2), Replicate()):
            found = encoding(distribute_tensor(x, mesh, [placement]), at)
            assert tuple(found.placements) == (placement,)
            assert torch.equal(found.full_tensor(), whole), (line, placement)


def main():
    """Everything, in a group of two."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rank, world, file = int(sys.argv[1]), 2, sys.argv[2]
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=world)
    mesh = init_device_mesh("cpu", (world,))
    context(rank, world)
    heads(rank, world)
    channels_in_context(rank, world)
    sharded(mesh)
    spread(mesh)
    dist.barrier()
    dist.destroy_process_group()
    print("fine")


if __name__ == "__main__":
    main()
