"""The students' wheel: what a notebook imports and nothing else, small enough to lie beside the notebooks.

A wheel is a zip file, and Python imports from it where it lies: no installer, no network and no rights are needed. It holds no solutions,
no hidden tests and none of the grading code. Built by the release, not part of it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

NAME = "attention_autograder_desk"
_ROOT = Path(__file__).parent.parent
_PARTS = ("__init__.py", "text.py", "heatmap.py", "desk/*.py", "leak/*.py", "leak/probes/*.py")
_LEFT_OUT = ("desk/wheel.py", "leak/command.py")  # for the course's own machines
_EPOCH = (2020, 1, 1, 0, 0, 0)  # equal contents give equal files


def build_student_wheel(folder: Path, hints: Path | None = None) -> Path:
    """Write the wheel into ``folder``, replacing older ones there, and return its path. ``hints`` is the assignment's ``hints.json``.

    Raises ValueError when the hints are not what :func:`autograder.hint` reads.
    """
    files = {f"autograder/{path.relative_to(_ROOT).as_posix()}": path.read_bytes() for path in _sources()}
    if hints is not None:
        files["autograder/desk/hints.json"] = _checked(hints)
    number = _version()
    info = f"{NAME}-{number}.dist-info"
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {NAME.replace('_', '-')}\nVersion: {number}\n"
        "Summary: What the notebooks of the course import: check, hint, status, show_weights, detect_leaks\n"
        "License: BSD-3-Clause\nRequires-Python: >=3.10\nRequires-Dist: torch>=2.1\n"
    ).encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: autograder\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = [f"{name},sha256={_digest(data)},{len(data)}" for name, data in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"{NAME}-*.whl"):
        old.unlink()
    target = folder / wheel_name()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o100644 << 16
            wheel.writestr(entry, data)
    return target


def wheel_name() -> str:
    """The wheel's file name."""
    return f"{NAME}-{_version()}-py3-none-any.whl"


def first_cell(wheel: str) -> str:
    """The source of a notebook's first cell: where autograder is not installed, it is imported from the wheel beside the notebook."""
    return (
        "# 课程的工具：没有安装 autograder 时，从旁边的文件里导入（Colab：请先把这个文件上传）\n"
        "# The course's tools: imported from the file beside this notebook unless installed (Colab: upload that file first)\n"
        "import sys\n"
        "from pathlib import Path\n\n"
        f'sys.path.append(str(Path("{wheel}").resolve()))'
    )


def _sources() -> list[Path]:
    left_out = {_ROOT / name for name in _LEFT_OUT}
    return [path for part in _PARTS for path in sorted(_ROOT.glob(part)) if path not in left_out]


def _checked(hints: Path) -> bytes:
    data = hints.read_bytes()
    try:
        raw = json.loads(data)
        good = all(isinstance(h["zh"], str) and isinstance(h["en"], str) for levels in raw.values() for h in levels)
    except (ValueError, TypeError, KeyError, AttributeError):
        good = False
    if not good:
        raise ValueError(f'{hints}: expected {{"exercise": [{{"zh": "…", "en": "…"}}, …], …}}')
    return data


def _version() -> str:
    try:
        return version("attention-autograder")
    except PackageNotFoundError:
        return "0"


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
