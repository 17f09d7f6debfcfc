"""One long-lived pytest session that runs the hidden tests of an exercise again for every solution.

The session lives in a thread of its own: pytest's run loop waits for work there, as a pytest-xdist worker's does, so that authors have
fixtures, parametrize and marks while a test costs about a millisecond. The judge decides whose fault a failure is.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import pytest
import torch
from _pytest.runner import runtestprotocol

from autograder.exercises.registry import CourseFault, Exercise, Solution
from autograder.judge.draw import Draw, derive
from autograder.judge.faults import Fault, MachineFault, StudentFault
from autograder.judge.student import Call, Channel, Differs, Direct, Earlier, Student
from autograder.judge.verdict import Outcome
from autograder.text import Text

T = TypeVar("T")

_OPTIONS = [
    "--import-mode=importlib",
    "--capture=no",
    "--disable-plugin-autoload",
    "--strict-markers",
    *(f"-pno:{plugin}" for plugin in ("cacheprovider", "terminal", "faulthandler", "logging", "warnings")),
    *(f"-pno:{plugin}" for plugin in ("threadexception", "unraisableexception", "junitxml", "doctest")),
]
_HANGS_BEFORE_GIVING_UP = 2
_DECISIVE = frozenset(
    {Fault.MISSING, Fault.UNFINISHED}
)  # after these, every other test of the exercise would say the same


@dataclass
class HiddenTest:
    """A test function with all its parameters."""

    exercise: str
    name: str
    text: Text
    weight: float
    after: tuple[str, ...]
    items: list[pytest.Item] = field(default_factory=list)


@dataclass
class Run:
    """One hidden test on one solution."""

    test: HiddenTest
    outcome: Outcome
    text: Text | None = None
    fault: Fault | None = None
    calls: list[Call] = field(default_factory=list)
    leak: Any = None
    problem: str | None = None  # for the instructor: what is wrong with the course


class Judge:
    """Runs hidden tests on solutions. One per process; use as a context manager.

    Raises CourseFault when a hidden test cannot be collected or names an exercise that does not exist.
    """

    def __init__(self, tests: Path, exercises: dict[str, Exercise]) -> None:
        self.exercises = exercises
        torch.set_num_threads(1)  # tests compare small tensors; more threads only wait for one another
        self._plugin = _Plugin()
        self._thread = threading.Thread(target=self._main, args=(tests,), name="hidden tests", daemon=True)
        self._thread.start()
        self._plugin.ready.wait()
        self.tests = self._sorted(self._plugin)

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session."""
        self._plugin.work.put(None)
        self._thread.join()

    def solution(self, exercise: Exercise, solution: Solution) -> Channel:
        """A channel to one of the course's own solutions, run in this process."""
        return Direct({exercise.name: solution})

    def run(self, name: str, channel: Callable[[], Channel], seed: int) -> Iterator[Run]:
        """The hidden tests of one exercise on the solution behind ``channel()``, which is asked for anew before every test.

        A test whose prerequisite failed is not checked. After a stub, a missing name or two hangs the rest is not checked either.
        """
        passed: set[str] = set()
        hangs, decided = 0, False
        for test in self.tests[name]:
            if decided or not passed.issuperset(test.after):
                yield Run(test, Outcome.NOT_CHECKED)
                continue
            run = self._call(lambda test=test: self._run(test, channel, seed))  # type: ignore[misc]
            if run.outcome is Outcome.PASSED:
                passed.add(test.name)
            hangs += run.fault is Fault.TIMEOUT
            decided = run.fault in _DECISIVE or hangs >= _HANGS_BEFORE_GIVING_UP
            yield run

    def again(self, run: Run, channel: Channel, seed: int) -> Run:
        """The hidden test of an earlier run on another solution."""
        return self._call(lambda: self._run(run.test, lambda: channel, seed))

    def replay(self, run: Run, channel: Channel, seed: int, same: Callable[[Call, Call], bool]) -> Run | None:
        """As :meth:`again`, but None as soon as a call is not the same as the earlier run's; the reference is not asked again."""
        try:
            return self._call(lambda: self._run(run.test, lambda: channel, seed, Earlier(run.calls, same)))
        except Differs:
            return None

    # --- in the session's thread ------------------------------------------------------------------------------------------------------

    def _run(self, test: HiddenTest, channel: Callable[[], Channel], seed: int, earlier: Earlier | None = None) -> Run:
        run = Run(test, Outcome.PASSED)
        for item in test.items:
            try:
                solution = channel()
            except StudentFault as fault:  # there is nothing left to call
                self._settle(run, fault, item, seed)
                break
            held = replace(earlier, start=len(run.calls)) if earlier is not None else None
            attempt = self._attempt(item, test.exercise, solution, seed, held)
            run.calls += attempt.student._calls
            if isinstance(attempt.error, Differs):
                raise attempt.error
            if attempt.error is not None:
                self._settle(run, attempt.error, item, seed, replayed=earlier is not None)
                break
        return run

    def _settle(self, run: Run, error: BaseException, item: pytest.Item, seed: int, replayed: bool = False) -> None:
        """Decide whose fault a failure is. What fails with the reference in the student's place too is the course's.

        In a replay that was settled already.
        """
        run.outcome, run.text = Outcome.FAILED, getattr(error, "text", None)
        if isinstance(error, StudentFault):
            run.fault = error.kind
        elif isinstance(error, MachineFault):
            run.outcome, run.text = Outcome.MACHINE_FAULT, None
        elif isinstance(error, CourseFault) or (not replayed and self._reference_fails(item, run.test.exercise, seed)):
            run.outcome = Outcome.COURSE_FAULT
            run.problem = f"{item.nodeid}: {type(error).__name__}: {error}"
        else:
            run.fault, run.leak = Fault.VALUE, getattr(error, "report", None)
            if not isinstance(error, AssertionError):
                run.text = _UNUSABLE

    def _reference_fails(self, item: pytest.Item, name: str, seed: int) -> bool:
        return self._attempt(item, name, self._reference(name), seed).error is not None

    def _reference(self, name: str) -> Channel:
        return self.solution(self.exercises[name], self.exercises[name].reference)

    def _attempt(
        self, item: pytest.Item, name: str, channel: Channel, seed: int, earlier: Earlier | None = None
    ) -> _Attempt:
        seed = derive(seed, item.nodeid)
        twin = self._reference(name)
        attempt = _Attempt(
            Student(channel, twin, seed, earlier), Student(self._reference(name), None, seed), Draw(seed)
        )
        self._plugin.attempt = attempt
        runtestprotocol(item, log=False, nextitem=None)
        return attempt

    # --- the session ------------------------------------------------------------------------------------------------------------------

    def _main(self, tests: Path) -> None:
        for path in tests.rglob("*.py"):  # another judge of this process may have loaded other tests under these names
            sys.modules.pop(".".join(path.relative_to(tests).with_suffix("").parts), None)
        try:
            code = pytest.main(
                [*_OPTIONS, f"--rootdir={tests}", f"--confcutdir={tests}", f"-c{os.devnull}", str(tests)],
                [self._plugin],
            )
            if not self._plugin.ready.is_set():
                self._plugin.problems.append(
                    Text(
                        zh=f"pytest 在收集 {tests} 时以 {code} 结束",
                        en=f"pytest ended with {code} while collecting {tests}",
                    )
                )
        except BaseException as error:
            self._plugin.problems.append(_as_it_came(f"{type(error).__name__}: {error}"))
        finally:
            self._plugin.ready.set()

    def _call(self, function: Callable[[], T]) -> T:
        future: Future[T] = Future()
        self._plugin.work.put((function, future))
        return future.result()

    def _sorted(self, plugin: _Plugin) -> dict[str, list[HiddenTest]]:
        problems = list(plugin.problems)
        tests: dict[str, dict[str, HiddenTest]] = {}
        for item in plugin.items:
            mark = item.get_closest_marker("exercise")
            exercise = mark.args[0] if mark and mark.args else None
            if exercise not in self.exercises:
                problems.append(_of_no_exercise(item, exercise, self.exercises))
                continue
            name = getattr(item, "originalname", item.name)
            try:
                test = tests.setdefault(exercise, {}).setdefault(name, _hidden_test(item, exercise, name))
            except ValueError as error:
                problems.append(_as_it_came(f"{item.nodeid}: {error}"))
                continue
            unknown = set(test.after) - set(tests[exercise])
            if unknown:
                names = ", ".join(sorted(unknown))
                problems.append(
                    Text(
                        zh=f"{item.nodeid}：@pytest.mark.after 里的 {names} 不是它上面的测试",
                        en=f"{item.nodeid}: @pytest.mark.after names {names}, no test above it",
                    )
                )
            test.items.append(item)
        if problems:
            self.close()
            raise CourseFault(
                Text(
                    zh="隐藏测试：" + "；".join(each.zh for each in problems),
                    en="hidden tests: " + "; ".join(each.en for each in problems),
                )
            )
        return {name: list(found.values()) for name, found in tests.items()}


_UNUSABLE = Text(
    zh="结果的数值不对，检查无法继续。", en="The values of the result are wrong; the check could not go on."
)


def _as_it_came(words: str) -> Text:
    """What Python or pytest said, in its own words."""
    return Text(zh=words, en=words)


def _of_no_exercise(item: pytest.Item, named: str | None, exercises: dict[str, Exercise]) -> Text:
    if named is None:
        known = ", ".join(exercises)
        return Text(
            zh=f"{item.nodeid}：没有 @pytest.mark.exercise，应写上这些练习中的一个：{known}",
            en=f"{item.nodeid}: expected @pytest.mark.exercise with one of {known}",
        )
    return Text(
        zh=f"{item.nodeid}：练习 {named!r} 没有参考解答，请用 @exercise 写一个",
        en=f"{item.nodeid}: the exercise {named!r} has no reference: add it with @exercise",
    )


@dataclass
class _Attempt:
    """What the fixtures give to one run of one test, and what it raised."""

    student: Student
    reference: Student
    draw: Draw
    error: BaseException | None = None


def _hidden_test(item: pytest.Item, exercise: str, name: str) -> HiddenTest:
    weight = item.get_closest_marker("weight")
    after = item.get_closest_marker("after")
    return HiddenTest(
        exercise,
        name,
        Text.of_docstring(getattr(item, "function", item).__doc__),
        float(weight.args[0]) if weight else 1.0,
        tuple(after.args) if after else (),
    )


class _Plugin:
    """What pytest calls: marks, fixtures, and the run loop that waits for work."""

    def __init__(self) -> None:
        self.ready = threading.Event()
        self.work: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        self.items: list[pytest.Item] = []
        self.problems: list[Text] = []
        self.attempt: _Attempt | None = None

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", "exercise(name): the exercise that the test belongs to")
        config.addinivalue_line("markers", "weight(n): the test's share of the points, 1 unless told")
        config.addinivalue_line("markers", "after(name, ...): tests of the same class that must pass first")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.problems.append(_as_it_came(f"{report.nodeid}: {report.longrepr}"))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items = session.items
        self.ready.set()
        while (job := self.work.get()) is not None:
            function, future = job
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport:
        error = call.excinfo.value if call.excinfo else None
        if error is not None and self.attempt is not None and self.attempt.error is None:
            self.attempt.error = error
        # pytest's own report would print the traceback, at twenty times the cost of the test
        outcome: Literal["passed", "failed"] = "passed" if error is None else "failed"
        return pytest.TestReport(item.nodeid, item.location, item.keywords, outcome, None, call.when)  # type: ignore[arg-type]

    @pytest.fixture
    def student(self) -> Student:
        """The student's solution."""
        return self._current.student

    @pytest.fixture
    def reference(self) -> Student:
        """The reference, behind the same interface."""
        return self._current.reference

    @pytest.fixture
    def draw(self) -> Draw:
        """Random inputs for this submission and test."""
        return self._current.draw

    @property
    def _current(self) -> _Attempt:
        assert self.attempt is not None, "hidden tests run in the judge only"
        return self.attempt
