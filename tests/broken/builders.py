"""Every unlucky notebook: ``case.build(release, answers)`` is the file, ``case.fair(release, answers)`` what counts."""

from __future__ import annotations

from tests.broken.cells import CELLS
from tests.broken.files import FILES
from tests.broken.running import RUNNING
from tests.broken.sheet import Case

CASES: list[Case] = [*FILES.cases, *CELLS.cases, *RUNNING.cases]
