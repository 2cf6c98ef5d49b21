"""Runs over many subjects: worker processes, what a former run did, outcomes, the printed tables, exit codes."""

from __future__ import annotations

import json
import sys
import textwrap

import pytest

pytest.importorskip("transformers")

from posenc.checker.corpus import running, workers
from posenc.checker.corpus.outcomes import outcome_of
from posenc.checker.corpus.running import run
from posenc.checker.corpus.subjects import subjects
from posenc.cli import main
from posenc.errors import FormatError, SubjectError
from posenc.records.corpus import CorpusReport, Examined
from posenc.records.finding import CheckReport, Finding
from posenc.rendering import corpus as rendering

PATTERN = "transformers:gpt_[bn]*"
FOUR = [f"transformers:{name}" for name in ("gpt_bigcode", "gpt_neo", "gpt_neox", "gpt_neox_japanese")]


@pytest.fixture
def subjects_that(monkeypatch, tmp_path):
    """Let worker processes answer by a function ``answer(name) -> CheckReport`` instead of building models."""

    def serve(answer: str) -> None:
        code = textwrap.dedent(
            """
            import os, sys, time
            import posenc.checker.checking as checking
            from posenc.checker.corpus import serving
            from posenc.records.finding import CheckReport, Finding

            def answer(name):
            {answer}

            def check(name, probes=True):
                return answer(name.removeprefix("transformers:")) or CheckReport(
                    subject=name, expected="rotary(8)", acquitted=True, probes=("frequencies",), seconds=0.5
                )

            checking.check = check
            sys.exit(serving.main())
            """
        ).replace("{answer}", textwrap.indent(textwrap.dedent(answer).strip(), "    "))
        path = tmp_path / "serve.py"
        path.write_text(code)
        monkeypatch.setattr(workers, "SERVING", [sys.executable, str(path)])

    return serve


def outcomes(record):
    return {each.name.removeprefix("transformers:"): each.outcome for each in record.subjects}


def test_four_types_end_to_end(tmp_path):
    seen = []
    record = run(PATTERN, workers=1, timeout=120, told=lambda each, done, of: seen.append((each.name, done, of)))
    assert [each.name for each in record.subjects] == FOUR
    assert set(outcomes(record).values()) == {"acquitted"}
    assert [(done, of) for _, done, of in seen] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    for each in record.subjects:
        assert each.report.subject == each.name
        assert each.report.seconds < each.timeout
    assert CorpusReport.model_validate_json(record.model_dump_json()) == record


def test_a_run_takes_up_where_another_was_interrupted(subjects_that, tmp_path):
    subjects_that("return None")
    kept = tmp_path / "done.jsonl"

    def interrupted(each, done, of):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(PATTERN, workers=1, records=kept, told=interrupted)
    first = kept.read_text()
    assert [json.loads(line)["name"] for line in first.splitlines()] == FOUR[:1]
    seen = []
    record = run(PATTERN, workers=1, records=kept, told=lambda each, done, of: seen.append(each.name))
    assert seen == FOUR[1:]
    assert record.kept == 1
    assert kept.read_text().startswith(first)
    assert run(PATTERN, records=kept).kept == 4


def test_ctrl_c_ends_the_run_and_its_processes_with_130(subjects_that, tmp_path, capsys, monkeypatch):
    subjects_that("return None")
    kept = tmp_path / "done.jsonl"
    started = []
    begin = workers.subprocess.Popen
    monkeypatch.setattr(workers.subprocess, "Popen", lambda *a, **k: started.append(begin(*a, **k)) or started[-1])
    add = running.Kept.add

    def interrupted(self, each):
        add(self, each)
        if len(self.done) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(running.Kept, "add", interrupted)
    assert main(["check", PATTERN, "--workers", "2", "--records", str(kept)]) == 130
    assert "1 of 4 subjects are finished" in (said := capsys.readouterr().err)
    assert str(kept) in said
    assert len(kept.read_text().splitlines()) == 2
    assert started
    assert all(child.poll() is not None for child in started)


def test_subjects_that_hang_raise_or_end_are_in_the_table(subjects_that, tmp_path, capsys):
    subjects_that(
        """
        if name == "gpt_bigcode":
            time.sleep(600)
        if name == "gpt_neo":
            raise RuntimeError("broken")
        if name == "gpt_neox":
            os.kill(os.getpid(), 9)
        """
    )
    page = tmp_path / "page.md"
    assert main(["check", PATTERN, "--workers", "1", "--timeout", "2", "-o", str(page)]) == 0
    shown = capsys.readouterr()
    assert "Traceback" not in shown.out + shown.err
    assert "4/4" in shown.err
    text = page.read_text().replace("\\", "")
    assert "| transformers:gpt_bigcode | could not run | timed out |" in text
    assert "| transformers:gpt_neo | could not run | the process ended |" in text
    assert "signal 9" in text
    assert "| transformers:gpt_neox_japanese | acquitted |" in text


def test_a_longer_timeout_runs_again_what_timed_out(subjects_that, tmp_path):
    kept = tmp_path / "done.jsonl"
    subjects_that('time.sleep(600 if name == "gpt_neo" else 0)')
    assert outcomes(run(PATTERN, timeout=2, records=kept))["gpt_neo"] == "could not run"
    assert run(PATTERN, timeout=2, records=kept).kept == 4
    subjects_that("return None")
    record = run(PATTERN, timeout=3, records=kept)
    assert record.kept == 3
    assert outcomes(record)["gpt_neo"] == "acquitted"


def test_processes_are_replaced(subjects_that, monkeypatch):
    subjects_that('return CheckReport(subject=name, could_not_run=f"can be built {os.getpid()}")')
    monkeypatch.setattr(workers, "SERVED", 2)
    processes = [each.report.could_not_run for each in run(PATTERN, workers=1).subjects]
    assert processes[0] == processes[1] != processes[2] == processes[3]


def example(name="transformers:x", **changes):
    report = CheckReport(subject=name, **changes)
    outcome, reason = outcome_of(report)
    return Examined(name=name, outcome=outcome, reason=reason, versions={"a": "1"}, timeout=5, report=report)


def test_a_line_cut_off_is_dropped_and_another_file_is_left_alone(subjects_that, tmp_path):
    subjects_that("return None")
    kept = tmp_path / "done.jsonl"
    run("transformers:gpt_neo", records=kept)
    whole = kept.read_text()
    kept.write_text(whole + whole[:40])
    assert run("transformers:gpt_neo", records=kept).kept == 1
    assert kept.read_text() == whole
    kept.write_text(whole.replace("5.", "4."))  # other versions
    assert run("transformers:gpt_neo", records=kept).kept == 0
    other = tmp_path / "notes.txt"
    for text in ("something else\n", "no end of line", '{"a": 1}\n'):
        other.write_text(text)
        with pytest.raises(FormatError, match="line 1"):
            run("transformers:gpt_neo", records=other)
        assert other.read_text() == text


def finding(verdict, title="t"):
    return Finding(verdict=verdict, kinds=("layout",), title=title)


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"findings": (finding("convention"), finding("defect"))}, ("defect", None)),
        ({"findings": (finding("convention"),), "acquitted": True}, ("convention", None)),
        ({"findings": (finding("harmless"),), "acquitted": True}, ("acquitted", None)),
        ({"could_not_run": "no answer within 5 s: the subject was ended"}, ("could not run", "timed out")),
        (
            {"could_not_run": "a tiny detr can be built; got ImportError: X requires the timm library"},
            ("could not run", "needs a package"),
        ),
        (
            {"could_not_run": "a tiny x can be configured; got ValueError"},
            ("could not run", "cannot be configured tiny"),
        ),
        ({"could_not_run": "x can be built; got MemoryError: "}, ("could not run", "needs more memory")),
        ({"could_not_run": "KeyError"}, ("could not run", "its answers cannot be examined")),
    ],
)
def test_outcomes(changes, wanted):
    assert outcome_of(CheckReport(subject="x", **changes)) == wanted


def test_outcomes_of_real_models_without_a_word_from_their_config():
    from posenc.checker.checking import check

    assert outcome_of(check("transformers:resnet")) == ("no positions", "no part with positions was found")
    assert outcome_of(check("transformers:swin"))[0] == "recognised"
    assert outcome_of(check("transformers:hubert", probes=False)) == (
        "not compared",
        "its position part is of a form that is not examined",
    )


def test_exit_codes_and_files(subjects_that, tmp_path, capsys):
    subjects_that(
        """
        if name == "gpt_neo":
            found = Finding(verdict="convention", kinds=("layout",), title="<b>|*swapped*|</b>")
            return CheckReport(subject=name, expected="rotary(8)", acquitted=True, findings=(found,))
        """
    )
    html, junit, kept = tmp_path / "page.html", tmp_path / "junit.xml", tmp_path / "done.jsonl"
    line = ["check", PATTERN, "--records", str(kept)]
    assert main([*line, "--html", str(html), "--junit", str(junit), "-o", str(tmp_path / "page.md")]) == 0
    assert "<b>|" not in html.read_text() + (tmp_path / "page.md").read_text()
    assert junit.read_text().count("<testsuite ") == 4
    assert main([*line, "--fail-on", "convention"]) == 1
    capsys.readouterr()
    assert main([*line, "--json"]) == 0
    assert CorpusReport.model_validate_json(capsys.readouterr().out).counts == {"convention": 1, "acquitted": 3}
    subjects_that('return CheckReport(subject=name, could_not_run="a tiny x can be built")')
    assert main(["check", PATTERN]) == 2
    capsys.readouterr()


def test_refusals(tmp_path, capsys):
    with pytest.raises(SubjectError, match="matches a model type"):
        subjects("transformers:zzz*")
    with pytest.raises(SubjectError, match="whole models"):
        subjects("transformers:ll*#rotary_emb")
    assert main(["check", PATTERN, "--expect", "rotary(8)"]) == 2
    assert main(["check", "transformers:llama", "--records", str(tmp_path / "x")]) == 2
    assert "--expect" in (said := capsys.readouterr().err)
    assert "--records" in said


def test_the_whole_corpus_is_every_type_that_transformers_knows():
    from transformers import CONFIG_MAPPING

    assert [name.removeprefix("transformers:") for name in subjects("transformers:*")] == sorted(CONFIG_MAPPING.keys())


def test_the_page_names_every_subject_and_finding():
    found = example("transformers:b", expected="rotary(8)", findings=(finding("defect", "turned twice"),))
    left = example("transformers:c", could_not_run="a model of at most 5 parameters is built; got 7")
    record = CorpusReport(
        pattern="transformers:?", date="2026-01-02", versions={"a": "1"}, subjects=(found, left), seconds=7.0
    )
    page = rendering.markdown(record)
    assert "| transformers:b | defect |  | turned twice |" in page
    assert "| transformers:c | could not run | too large |" in page
    assert record.counts == {"defect": 1, "could not run": 1}
