"""What is mistyped is asked about, shells complete names, and who stops reading gets no traceback."""

import os
import subprocess
import sys

import pytest

READ = "reward rows.csv --people 3 --box 0 1 --low 0 --high 1 --slope 1"
PROMISE = "--epsilon 1 --delta 1e-5 --out reward.qq"


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        ("rewrd", "reward"),
        ("ledger crate", "create"),
        ("paper train gradeint walk", "gradient"),
        ("paper train none wlak", "walk"),
        ("paper audit valeu", "value"),
        ("paper audit value --view fnal", "final"),
        ("paper audit value --move shft", "shift"),
        ("plan rating --people 3 --epsilon 1", "ratings"),
        ("paper train none walk --set optimiser=adm", "adam"),
        ("paper train none walk --set loss=hubr", "huber"),
        ("paper train none walk --set gama=0.5", "gamma"),
        ("paper train none walk --peple 5", "--people"),
        ("paper methods gradeint", "gradient"),
        (f"{READ} --check --rating ratng", "rating"),
        (f"{READ} --check --kind rating", "ratings"),
        (f"{READ} --check --engine loca", "local"),
        (f"{READ} {PROMISE} --noise knot", "knots"),
        ("reward rows.csv --peple 3", "--people"),
    ],
)
def test_what_is_mistyped_is_asked_about(quietq, tmp_path, arguments, meant):
    (tmp_path / "rows.csv").write_text("person,state,rating\na,0.1,1\nb,0.5,0\n")
    code, out, err = quietq(arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"Did you mean {meant!r}" in err
    assert not (tmp_path / "reward.qq").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("calibrate --people x", "--people must be a whole number, not 'x'."),
        ("calibrate --epsilon=much", "--epsilon must be a number, not 'much'."),
        ("serve", "Missing argument 'FILE...': Releases, which `quietq publish` wrote."),
        ("reward --zzzzzz 3", "No such option: --zzzzzz. `quietq reward --help` lists them."),
        ("zzzzzz", "No such command 'zzzzzz'. `quietq --help` lists them."),
    ],
)
def test_what_would_be_right_is_said(quietq, arguments, sentence):
    assert quietq(arguments) == (2, "", f"quietq: {sentence}\n")


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("paper tr", {"train"}),
        ("ledger s", {"show"}),
        ("paper train act", {"actor-critic"}),
        ("paper train none wa", {"walk"}),
        ("paper audit act", {"actor-critic"}),
        ("paper methods act", {"actor-critic"}),
        ("audit com", {"comparisons"}),
        ("plan r", {"ratings"}),
        ("reward --kind ", {"ratings", "comparisons"}),
        ("reward --noise k", {"k-norm", "knots"}),
    ],
)
def test_shells_complete_names(quietq, monkeypatch, typed, completed):
    words = f"quietq {typed}"
    place = len(words.split()) - (0 if typed.endswith(" ") else 1)
    for name, value in {"_QUIETQ_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(place)}.items():
        monkeypatch.setenv(name, value)
    code, out, err = quietq("")
    assert (code, set(out.split()), err) == (0, completed, "")


def test_who_stops_reading_gets_no_traceback():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "quietq.cli", "--help"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")
