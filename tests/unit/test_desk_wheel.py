"""The students' wheel: small, alone, and usable offline from where it lies."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from autograder.desk.wheel import build_student_wheel, first_cell

HINTS = {"f": [{"zh": "一", "en": "one"}]}
# Everything but torch and what torch itself needs is out of reach, and the repository's own autograder too
ALONE = """
import sys
allowed = {"torch", "numpy", "autograder", "typing_extensions", "sympy", "mpmath", "networkx", "jinja2", "markupsafe", "filelock", "fsspec"}
class Guard:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in allowed and top not in sys.stdlib_module_names and not top.startswith(("_", "torch")):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Guard())
"""
NOTEBOOK = """
import torch, autograder
from autograder import case, check, detect_leaks, hint, show_weights, status
assert ".whl" in autograder.__file__, autograder.__file__
check(torch.relu, case(torch.tensor([-1.0, 2.0]), gives=[0.0, 2.0]))
hint("f")
show_weights(torch.eye(2))
status()
detect_leaks(lambda X: X.cumsum(1), inputs=lambda B, T, rng: {"X": torch.randn(B, T, 2, generator=rng)})
"""


@pytest.fixture
def hints(tmp_path: Path) -> Path:
    path = tmp_path / "hints.json"
    path.write_text(json.dumps(HINTS), encoding="utf-8")
    return path


def test_wheel_holds_what_a_notebook_imports_and_nothing_else(tmp_path: Path, hints: Path) -> None:
    wheel = build_student_wheel(tmp_path / "release", hints)
    assert wheel.stat().st_size < 200_000
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(n for n in names if n.endswith("METADATA"))).decode()
    inside = {name.split("/")[1] for name in names if name.startswith("autograder/")}
    assert inside == {"__init__.py", "text.py", "heatmap.py", "desk", "leak"}
    assert "autograder/desk/hints.json" in names
    assert not [n for n in names if "wheel" in n.lower() and n.startswith("autograder")]
    assert [line for line in metadata.splitlines() if line.startswith("Requires-Dist")] == ["Requires-Dist: torch>=2.1"]


def test_building_again_gives_the_same_bytes_and_one_file(tmp_path: Path, hints: Path) -> None:
    first = build_student_wheel(tmp_path / "release", hints).read_bytes()
    (tmp_path / "release" / "attention_autograder_desk-0.0.1-py3-none-any.whl").write_bytes(b"old")
    again = build_student_wheel(tmp_path / "release", hints)
    assert again.read_bytes() == first
    assert list((tmp_path / "release").iterdir()) == [again]


def test_notebook_runs_from_the_wheel_with_torch_alone(tmp_path: Path, hints: Path) -> None:
    wheel = build_student_wheel(tmp_path / "release", hints)
    # -P and -E keep the repository off the path; an installed autograder is hidden by putting the wheel first
    code = ALONE + first_cell(wheel.name).replace("sys.path.append(", "sys.path.insert(0, ") + NOTEBOOK
    done = subprocess.run(
        [sys.executable, "-P", "-E", "-c", code],
        cwd=wheel.parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "f 1/1: 一 / one" in done.stdout
    assert "no leak found" in done.stdout
    assert done.stderr == ""


def test_pip_installs_it_offline(tmp_path: Path, hints: Path) -> None:
    wheel = build_student_wheel(tmp_path, hints)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--no-index",
        "--no-deps",
        "--quiet",
        "--target",
        str(tmp_path / "site"),
    ]
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        pytest.skip("this environment has no pip")
    done = subprocess.run([*pip, str(wheel)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site/autograder/desk/check.py").is_file()


def test_first_cell_prefers_an_installed_autograder(tmp_path: Path) -> None:
    source = first_cell(build_student_wheel(tmp_path).name)
    compile(source, "cell", "exec")
    assert "sys.path.append" in source
    assert "attention_autograder_desk-" in source


@pytest.mark.parametrize("broken", ["", "[]", '{"f": ["x"]}', '{"f": [{"zh": "一"}]}', '{"f": 3}'])
def test_broken_hints_stop_the_release(broken: str, tmp_path: Path) -> None:
    path = tmp_path / "hints.json"
    path.write_text(broken, encoding="utf-8")
    with pytest.raises(ValueError, match=r"hints.json: expected"):
        build_student_wheel(tmp_path, path)
