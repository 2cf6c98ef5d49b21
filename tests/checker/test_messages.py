"""What a user reads where something cannot be examined: one sentence, whole words, and what to do."""

from __future__ import annotations

import pytest
import torch

from posenc.checker.calling.caller import clipped, raised, why
from posenc.checker.checking import check
from posenc.errors import SubjectError

LINE = "rotary(46)"


def test_what_was_raised_is_told_without_lists_that_lead_nowhere():
    with pytest.raises(TypeError) as caught:
        torch.arange(0, torch.zeros(3), dtype=torch.long)
    assert raised(caught.value).endswith("dtype=torch.dtype)")
    assert raised(RuntimeError("Error in loading:\n\tsize mismatch")) == "RuntimeError: Error in loading: size mismatch"
    assert raised(AssertionError()) == "AssertionError without a message"


@pytest.mark.parametrize("room", [12, 29, 44])
def test_texts_are_cut_between_words(room):
    text = "the size of tensor a (513) must match, the size of b"
    cut = clipped(text, room)
    assert len(cut) <= room
    assert cut.removesuffix("...").split() == text.replace(",", " ,").split()[: len(cut.split())]


def test_a_reason_leaves_out_what_to_do_about_the_whole():
    assert why(SubjectError("the subject runs", "TypeError: no")) == "TypeError: no"
    assert why(SubjectError("rows are whole", 0.5, "Give whole ones.")) == "rows are whole; got 0.5"


def test_a_package_that_is_missing_is_named(tmp_path):
    path = tmp_path / "subject.py"
    path.write_text("import no_such_package_at_all\n\ndef rope(x, positions):\n    return x\n")
    problem = str(check(str(path), LINE).could_not_run)
    assert "No module named" in problem
    assert "Install no_such_package_at_all" in problem


def test_every_try_is_told_in_words():
    def bias(query_length, key_length):
        return torch.zeros(2, query_length, key_length)

    problem = str(check(bias, LINE).could_not_run)
    assert "no way that works: as (n_q, n_k): a bias on scores, which rotary is not" in problem


def test_probes_that_do_not_fit_say_why():
    def rope(x, positions):
        angle = positions[..., None].float() * 1e4 ** (-torch.arange(0, 46, 2) / 46)
        a, b = x.chunk(2, -1)
        return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)

    told = check(rope, LINE).not_probed
    assert "another dtype first: the subject cannot be made anew" in told
    assert "cast as a whole: the subject is no torch module" in told
