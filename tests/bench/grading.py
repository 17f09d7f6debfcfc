"""How fast a class is graded: the same submissions of the whole chapter graded three ways, in turns, in one run.

python -m tests.bench.grading                          about ten minutes on two cores
python -m tests.bench.grading --sizes 8 --stock 1      a first impression

``stock``: ``nbgrader autograde``, the checks in the grade cells. ``ours``: ``autograder grade`` as it comes, two processes, sandbox on. ``floor``: the
same cells and checks in two warm processes without kernels, sandbox, diagnosis or gradebook. All three grade equal submissions and find equal
scores but for chance (hidden inputs are drawn anew). Times are of whole commands, with their start. Other work on the machine slows all three alike,
so that ratios are what counts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.bench import checks
from tests.bench.chapters import CHAPTER, ROOT, make_course, make_stock
from tests.bench.measure import Cost, run

_PROCESSES = 2
_MB = 1 << 20


@dataclass(frozen=True)
class Measured:
    """One way's run on ``n`` submissions; ``points`` is what they earned on average."""

    way: str
    n: int
    cost: Cost
    points: float

    @property
    def rate(self) -> float:
        """Submissions per second."""
        return self.n / self.cost.seconds

    @property
    def cpu(self) -> float:
        """CPU seconds per submission."""
        return self.cost.cpu_seconds / self.n


class Bench:
    """The two courses, and a run of each way over the first submissions of them."""

    def __init__(self, folder: Path, students: int, stock: int) -> None:
        self.folder, self.stock_students = folder, stock
        self.course = make_course(folder / "ours", students)
        make_stock(self.course, folder / "stock", stock)
        chapter = folder / "chapter"  # what stock's grade cells and the floor check with
        chapter.mkdir()
        (chapter / "solutions").symlink_to(folder / "ours" / "solutions" / CHAPTER)
        (chapter / "tests").symlink_to(folder / "ours" / "tests" / "hidden" / CHAPTER)
        self.env = os.environ | {"PYTHONPATH": str(ROOT), checks.FOLDER: str(chapter), "OMP_NUM_THREADS": "1"}

    def stock(self) -> Measured:
        """Stock nbgrader, which grades one submission after another."""
        program = str(Path(sys.executable).with_name("nbgrader"))
        cost = run([program, "autograde", CHAPTER, "--force"], self.folder / "stock", self.env)
        return self._measured("stock", self.stock_students, cost, _recorded(self.folder / "stock"))

    def ours(self, n: int) -> Measured:
        """This package, as its command line grades by default."""
        chosen = [word for student in self._students(n) for word in ("--student", student)]
        command = [sys.executable, "-m", "autograder.cli", "grade", CHAPTER, "--again", "--json", *chosen]
        cost = run([*command, "--jobs", str(_PROCESSES)], self.folder / "ours", self.env)
        return self._measured("ours", n, cost, [row["points"] for row in json.loads(cost.stdout)["students"]])

    def floor(self, n: int) -> Measured:
        """No isolation at all."""
        command = [sys.executable, "-m", "tests.bench.floor", str(self.folder / "ours"), str(_PROCESSES)]
        cost = run([*command, *self._students(n)], ROOT, self.env)
        return self._measured("floor", n, cost, json.loads(cost.stdout).values())

    def _students(self, n: int) -> list[str]:
        return [f"s{number:03}" for number in range(n)]

    def _measured(self, way: str, n: int, cost: Cost, points: Iterable[float]) -> Measured:
        found = Measured(way, n, cost, statistics.fmean(points))
        print(
            f"{found.way:7}{n:5}{cost.seconds:9.1f}{cost.seconds / n:10.2f}{found.cpu:10.2f}"
            f"{cost.peak / _MB:10.0f}{cost.parent / _MB:10.0f}{found.points:10.1f}",
            flush=True,
        )
        return found


def _recorded(root: Path) -> list[float]:
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{root / 'gradebook.db'}", "stock") as book:
        return [submission.score for submission in book.assignment_submissions(CHAPTER)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[8, 32, 128], help="submissions in each round")
    parser.add_argument("--stock", type=int, default=2, help="submissions that stock nbgrader grades in each round")
    parser.add_argument("--floor", type=int, default=32, help="most submissions that the floor grades in a round")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), max(options.sizes), min(options.stock, max(options.sizes)))
        print("way        N   wall s  s each  CPU s each  peak MB  parent MB  points", flush=True)
        rounds = [(bench.stock(), bench.ours(n), bench.floor(min(n, options.floor))) for n in options.sizes]
    report(rounds)


def report(rounds: list[tuple[Measured, Measured, Measured]]) -> None:
    """What the runs say of one another."""
    print("\n   N   ours / stock   floor / ours   CPU: stock / ours   CPU: ours / floor")
    for stock, ours, floor in rounds:
        print(
            f"{ours.n:4}{ours.rate / stock.rate:15.1f}{floor.rate / ours.rate:15.2f}"
            f"{stock.cpu / ours.cpu:20.1f}{ours.cpu / floor.cpu:20.2f}"
        )
    print(
        f"median{statistics.median(o.rate / s.rate for s, o, _ in rounds):13.1f}"
        f"{statistics.median(f.rate / o.rate for _, o, f in rounds):15.2f}"
        f"{statistics.median(s.cpu / o.cpu for s, o, _ in rounds):20.1f}"
        f"{statistics.median(o.cpu / f.cpu for _, o, f in rounds):20.2f}"
    )
    if len(rounds) > 1:
        (_, few, _), (_, many, _) = rounds[0], rounds[-1]
        each = (many.cost.seconds - few.cost.seconds) / (many.n - few.n)
        print(f"\nours, each further submission from {few.n} to {many.n}: {each:.2f} s", end="; ")
        print(f"the parent: {few.cost.parent / _MB:.0f} MB, then {many.cost.parent / _MB:.0f} MB")


if __name__ == "__main__":
    main()
