"""The second line of a check or an identification is the outcome, whatever kind of subject it is."""

from __future__ import annotations

import json

import numpy as np
import pytest

from posenc.cli import main

CONFIG = {
    "model_type": "llama",
    "hidden_size": 96,
    "num_attention_heads": 3,
    "num_hidden_layers": 5,
    "max_position_embeddings": 8192,
    "rope_theta": 5e5,
}
UNDEFINED = {**CONFIG, "rope_scaling": {"rope_type": "linear", "factor": 0.5}}
ONE_KEY = {**CONFIG, "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8192}}
CODE = """
import numpy as np

def turned(x, positions):
    a = np.outer(positions, [1e4 ** (-2 * i / x.shape[-1]) for i in range(x.shape[-1] // 2)])
    u, v = np.split(x, 2, axis=-1)
    return np.concatenate([u * np.cos(a) - v * np.sin(a), v * np.cos(a) + u * np.sin(a)], -1)

def untouched(x, positions):
    return x

def attended(q, k, v, positions):
    s = turned(q, positions) @ np.swapaxes(turned(k, positions), -1, -2) / np.sqrt(q.shape[-1])
    s = np.where(np.tril(np.ones(s.shape[-2:], bool)), s, -np.inf)
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, config in (("clean", CONFIG), ("undefined", UNDEFINED), ("one_key", ONE_KEY)):
        (tmp_path / f"{name}.json").write_text(json.dumps(config))
    (tmp_path / "unreadable.json").write_text('{"model_type": "nonsense"}')
    (tmp_path / "code.py").write_text(CODE)
    np.save(tmp_path / "vector.npy", np.array([5e5 ** (-2 * i / 26) for i in range(13)]))
    np.save(tmp_path / "unknown.npy", np.array([0.3, 0.2, 0.9, 0.1]))
    x = np.random.default_rng(1).normal(size=(40, 16))
    angle = np.outer(np.arange(40), [1e4 ** (-2 * i / 16) for i in range(8)])
    u, v = np.split(x, 2, axis=-1)
    after = np.concatenate([u * np.cos(angle) - v * np.sin(angle), v * np.cos(angle) + u * np.sin(angle)], -1)
    np.savez(tmp_path / "dump.npz", q_before=x, q_after=after, positions=np.arange(40))
    monkeypatch.chdir(tmp_path)


ASKED = (
    ("check clean.json", "nothing wrong found: rotary(32, base=500000)", 0),
    ("identify clean.json", "nothing wrong found: rotary(32, base=500000)", 0),
    ("check undefined.json", "1 defect", 1),
    ("check one_key.json", "no defect found (", 0),
    ("check unreadable.json", "1 defect", 1),
    ("check missing.json", "could not be examined: ", 2),
    ("check clean.json --expect llama-3.1-8b", "1 defect", 1),
    ("check clean.json --expect rotary(32,base=500000)", "acquitted: no defect", 0),
    ("check vector.npy", "rotary(26, base=500000)", 0),
    ("check vector.npy --expect rotary(26)", "1 defect", 1),
    ("identify unknown.npy", "none of the known schedules", 0),
    ("identify dump.npz", "rotary(16)", 0),
    ("check dump.npz --expect rotary(16)", "acquitted: no defect", 0),
    ("identify code.py:turned", "rotary(64)", 0),
    ("identify code.py:untouched", "none of the known: nothing is turned", 0),
    ("identify code.py:attended", "could not be examined: attention is compared with a wanted encoding", 2),
    ("check code.py:attended --expect rotary(16)", "acquitted: no defect", 0),
)


@pytest.mark.parametrize("columns", ["80", "120"])
@pytest.mark.parametrize(("line", "outcome", "code"), ASKED)
def test_the_outcome_comes_first(line, outcome, code, columns, folder, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", columns)
    assert main(line.split(" ")) == code
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == line.split(" ")[1]
    assert lines[1].startswith(outcome)
    assert all(len(each) <= int(columns) for each in lines)
