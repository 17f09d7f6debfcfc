"""Coverage-guided search for a submission that reading or rebuilding trips over.

Run it with ``python tests/fuzz/fuzz_notebook.py -max_total_time=60`` where atheris is installed; it stops at the first
exception, and libFuzzer writes the submission that raised it to a file.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[2]))

with atheris.instrument_imports(include=["autograder.notebooks"]):
    from autograder.notebooks import Submission, read_submission, rebuild

from tests.broken.builders import CASES
from tests.broken.minirelease import ANSWERS, assert_structure, release

RELEASE = release()


def read_and_rebuild(data: bytes) -> None:
    """One submission: whatever it is, it must be refused in words or rebuilt on the release's structure."""
    found = read_submission(data)
    if isinstance(found, Submission):
        assert_structure(rebuild(found.notebook, RELEASE).notebook, RELEASE)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as corpus:
        for case in CASES:
            if len(data := case.build(RELEASE, ANSWERS)) < 100_000:
                Path(corpus, case.name).write_bytes(data)
        Path(corpus, "small").write_text(json.dumps({"cells": [{"cell_type": "code", "source": "def Head(): pass"}]}))
        atheris.Setup([*sys.argv, corpus], read_and_rebuild)
        atheris.Fuzz()
