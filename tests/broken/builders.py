"""Every unlucky notebook: ``case.build(release, answers)`` makes the file, ``case.fair(release, answers)`` says what counts."""

from __future__ import annotations

from cells import CELLS
from files import FILES
from running import RUNNING
from sheet import Case

CASES: list[Case] = [*FILES.cases, *CELLS.cases, *RUNNING.cases]
