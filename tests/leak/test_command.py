"""The ``leak`` sub-command: what it accepts, prints and returns."""

import json
import subprocess
import sys

import pytest

from autograder.leak.command import main

CODE = """
import torch
from torch import nn

def attention(q, k, v):
    keep = torch.ones(q.size(-2), q.size(-2), dtype=torch.bool).tril({diagonal})
    return (q @ k.mT).masked_fill(~keep, float("-inf")).softmax(-1) @ v

class Head(nn.Module):
    def __init__(self, C, block_size=64):
        super().__init__()
        self.qkv = nn.Linear(C, 3 * C)
        self.register_buffer("tril", torch.ones(block_size, block_size).tril())

    def forward(self, x):
        T = x.size(1)
        q, k, v = self.qkv(x).chunk(3, -1)
        return (q @ k.mT).masked_fill(self.tril[:T, :T] == 0, float("-inf")).softmax(-1) @ v

def make_model():
    return nn.Sequential(nn.Embedding(65, 16), Head(16))

def inputs(B, T, rng):
    return {{name: torch.randn(B, T, 4, generator=rng) for name in "qkv"}}
"""


@pytest.fixture
def model(tmp_path):
    def write(diagonal=0):
        path = tmp_path / "student_model.py"
        path.write_text(CODE.format(diagonal=diagonal))
        return str(path)

    return write


def run(capsys, *arguments):
    code = main([*arguments, "--effort", "quick", "--lang", "en"])
    out, err = capsys.readouterr()
    return code, out, err


def test_causal_is_0_and_a_leak_is_1(model, capsys):
    code, out, _ = run(capsys, model() + ":attention", "--inputs", "q,k,v=B,2,T,8")
    assert (code, out.splitlines()[0]) == (0, "Causal: no leak found.")
    code, out, _ = run(capsys, model(diagonal=1) + ":attention", "--inputs", "q,k,v=B,2,T,8")
    assert code == 1
    assert "off by one" in out


def test_inputs_beside_the_target_are_found_and_others_can_be_named(model, capsys):
    path = model()
    assert run(capsys, path + ":attention")[0] == 0
    assert run(capsys, path + ":attention", "--inputs", path + ":inputs")[0] == 0


def test_a_class_and_a_factory_are_made_first(model, capsys):
    path = model()
    assert run(capsys, path + ":Head", "--arg", "C=8", "--inputs", "x=B,T,8")[0] == 0
    assert run(capsys, path + ":make_model", "--inputs", "input=int(65):B,T")[0] == 0


def test_any_module_on_the_path(capsys):
    sizes = ["--arg", "input_size=4", "--arg", "hidden_size=4", "--arg", "batch_first=True", "--inputs", "input=B,T,4"]
    assert run(capsys, "torch.nn:GRU", *sizes)[0] == 0
    assert run(capsys, "torch.nn:GRU", *sizes, "--arg", "bidirectional=True")[0] == 1


def test_a_stated_block_size_bounds_the_lengths(model, capsys):
    small = [model() + ":Head", "--arg", "C=8", "--arg", "block_size=8", "--inputs", "x=B,T,8"]
    assert main([*small, "--max-length", "8"]) == 0
    assert main(small) == 1
    assert "max_T" in capsys.readouterr().out


def test_json(model, capsys):
    code, out, _ = run(capsys, model(diagonal=1) + ":attention", "--json")
    report = json.loads(out)
    assert code == 1
    assert report["verdict"] == "leaks"
    assert {finding["input"] for finding in report["findings"] if finding["kind"] == "leaks"} == {"k", "v"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no_such_file.py:f"], "no file no_such_file.py"),
        (["no.such.package:f", "--inputs", "x=B,T,4"], "cannot import no.such.package"),
        (["torch.nn:Nothing", "--inputs", "x=B,T,4"], "has no 'Nothing'"),
        (["torch.nn"], "file.py:name"),
        (["torch.nn:GRU", "--inputs", "x=B,T,4"], "--arg NAME=VALUE"),
        (["torch.nn:GRU"], "--inputs x=B,T,32"),
        (["torch.nn:GRU", "--inputs", "x=B;T"], "expected shapes such as"),
        (["torch.nn:GRU", "--inputs", "x=B,T,4", "--arg", "4"], "expected --arg NAME=VALUE"),
    ],
)
def test_wrong_usage_is_2_and_says_what_to_type(arguments, words, capsys):
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert words in err


def test_code_that_does_not_run_is_wrong_usage_not_a_leak(tmp_path, capsys):
    path = tmp_path / "broken_model.py"
    path.write_text("1 / 0")
    assert run(capsys, f"{path}:f", "--inputs", "x=B,T,4")[0] == 2
    path.write_text("class Model:\n    def __init__(self):\n        raise RuntimeError('no weights')")
    code, _, err = run(capsys, f"{path}:Model", "--inputs", "x=B,T,4")
    assert code == 2
    assert "no weights" in err


def test_torch_is_all_it_needs(model):
    """The detector and its command import nothing but torch, the standard library and the project's own texts."""
    script = (
        "import sys; from autograder.leak.command import main; "
        f"code = main([{model() + ':attention'!r}, '--effort', 'quick']); "
        "known = {name.partition('.')[0] for name in sys.modules}; "
        "print(sorted(known & {'nbgrader', 'pydantic', 'typer', 'rich', 'pytest', 'nbformat', 'matplotlib'})); "
        "print(sorted(m for m in sys.modules if m.startswith('autograder') and '.leak' not in m)); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    outside, own = done.stdout.splitlines()[-2:]
    assert outside == "[]"
    assert set(eval(own)) <= {"autograder", "autograder.text"}
