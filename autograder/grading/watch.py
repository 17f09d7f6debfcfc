"""Grade on arrival: from nbgrader's exchange or from submitted/ to a feedback page, and back into the exchange, in about a second.

Events from the file system only say where to look. What counts is what lies there: a folder is taken once it has not changed for a moment
and holds all that belongs to it, or has not changed for longer. So nothing is missed where there are no events (network file systems), and
nothing is graded that is still being copied.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import closing
from pathlib import Path

import watchfiles

from autograder.course import Course
from autograder.feedback.write import releasable
from autograder.gradebook.book import Book
from autograder.gradebook.collect import SECRET, TIMESTAMP, collect
from autograder.gradebook.naming import parse
from autograder.grading.assignment import Assignment
from autograder.grading.exchange import Exchange
from autograder.grading.pages import graded_students, write_pages
from autograder.grading.run import Done, find, grade_arrivals
from autograder.grading.submissions import Handed, handed_in, read_capped
from autograder.grading.verdicts import verdict_path
from autograder.grading.worker import Setup, warm_up
from autograder.text import Text

_QUIET_SECONDS = 0.2  # for a submission with all its files
_PATIENCE_SECONDS = 5.0  # for one that lacks some, or whose files end midway
_RESCAN_SECONDS = 5.0
_FILES = 1000

Stamp = tuple[tuple[str, int, int, int], ...]


def watch_class(
    course: Course,
    assignment: Assignment,
    make_pool: Callable[[], Executor],
    *,
    workers: int,
    stop: threading.Event,
    tell: Callable[[Text], None],
    allow_unsandboxed: bool = False,
) -> Iterator[Done]:
    """Grade what waits and then what comes, until ``stop`` is set; yield each once its feedback is where the student can fetch it.

    ``tell`` is told what a person should know besides. Raises what ``grade_class`` raises.
    """
    exchange = Exchange(course)
    setup = Setup(str(course.root), assignment.name, assignment.fingerprint, course.limits, allow_unsandboxed)

    def warm_pool() -> Executor:
        pool = make_pool()
        for _ in range(workers):
            pool.submit(warm_up, setup)
        return pool

    with Book(course) as book:
        book.notebooks(assignment.name)  # fails now when the assignment was never released

        def give_back(student: str) -> None:
            list(write_pages(course, assignment.name, book, [student]))
            book.db.rollback()  # ends the transaction that reading began: none is held open while nothing comes
            if exchange.works and releasable(course.folder("feedback", student, assignment.name)):
                trouble = exchange.release_feedback(assignment.name, student)
                if trouble is not None:
                    tell(trouble)

        for student in graded_students(course, assignment.name):
            if _lacks_pages(course, assignment, student):
                give_back(student)
        with closing(Watch(course, assignment, exchange.inbound, stop, tell)) as arrivals:
            for done in grade_arrivals(book, assignment, arrivals, warm_pool, workers, allow_unsandboxed):
                arrivals.finished(done.student)
                give_back(done.student)
                yield done


def _lacks_pages(course: Course, assignment: Assignment, student: str) -> bool:
    """Whether a run ended between a verdict and its page."""
    for notebook in assignment.notebooks:
        verdict = verdict_path(course, student, assignment.name, notebook)
        page = course.folder("feedback", student, assignment.name, f"{notebook}.html")
        if verdict.is_file() and (not page.is_file() or page.stat().st_mtime_ns < verdict.stat().st_mtime_ns):
            return True
    return False


class Watch:
    """The submissions of an assignment in the order in which they come (``run.Arrivals``); one of a student at a time."""

    def __init__(
        self,
        course: Course,
        assignment: Assignment,
        inbound: Path | None,
        stop: threading.Event,
        tell: Callable[[Text], None],
    ) -> None:
        self.stopped = False
        self._course, self._assignment, self._inbound, self._stop, self._tell = course, assignment, inbound, stop, tell
        self._submitted = course.folder("submitted")
        self._submitted.mkdir(exist_ok=True)
        self._ready: deque[str] = deque()
        self._under_way: set[str] = set()
        self._attempts: dict[str, set[str]] = defaultdict(set)
        self._taken: dict[Path, Stamp] = {}
        self._observed: dict[Path, tuple[Stamp, float]] = {}
        self._lock = threading.Lock()
        self._changed = set(self._folders())
        self._more: Future[None] | None = None
        self._thread = threading.Thread(target=self._listen, name="watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Watch no longer."""
        self._stop.set()
        self._thread.join()

    def more(self) -> Future[None] | None:
        """Done once something has changed since this was called."""
        with self._lock:
            if self.stopped:
                return None
            if self._more is None:
                self._more = Future()
            return self._more

    def take(self) -> Handed | None:
        """The next submission that is there as a whole and is not graded yet."""
        if self.stopped:
            return None
        self._look()
        for _ in range(len(self._ready)):
            student = self._ready.popleft()
            if student in self._under_way:
                self._ready.append(student)
                continue
            try:
                handed = handed_in(self._course, self._assignment, student)
            except OSError:  # it is being replaced: the next look finds what comes
                self._taken.pop(self._folder(student), None)
                continue
            if find(self._course, self._assignment, handed) is None:
                self._under_way.add(student)
                return handed
        return None

    def finished(self, student: str) -> None:
        """A later submission of the same student may be taken now."""
        self._under_way.discard(student)

    def _look(self) -> None:
        with self._lock:
            changed, self._changed = self._changed, set()
        attempts: set[str] = set()
        waits = False
        for folder in sorted(changed):
            settled = self._settled(folder)
            if settled is None:
                waits = True
                with self._lock:
                    self._changed.add(folder)
            elif settled and folder.parent == self._inbound:
                named = parse(f"{folder.name}/{TIMESTAMP}", self._assignment.name)
                if named is not None:
                    self._attempts[named.student].add(folder.name)
                    attempts |= self._attempts[named.student]
            elif settled:
                self._queue(folder.parent.name)
        if attempts and self._inbound is not None:
            collected = collect(self._course, self._assignment.name, self._inbound, only=attempts)
            for taken in collected.taken:
                folder = self._folder(taken.student)
                self._taken[folder] = _stamp(folder)
                self._queue(taken.student)
            for left in collected.left:
                if left.kind in ("unmatched", "ambiguous", "refused"):
                    self._tell(Text(zh=f"- {left.path}: {left.text.zh}", en=f"- {left.path}: {left.text.en}"))
        if waits:
            timer = threading.Timer(_QUIET_SECONDS, self._wake)
            timer.daemon = True
            timer.start()

    def _queue(self, student: str) -> None:
        if student not in self._ready:
            self._ready.append(student)

    def _settled(self, folder: Path) -> bool | None:
        """True: there is something new, all of it; False: there is nothing new; None: it is too early to say."""
        stamp, now = _stamp(folder), time.monotonic()
        if stamp == self._taken.get(folder, ()):
            self._observed.pop(folder, None)
            return False
        before, since = self._observed.get(folder, ((), now))
        if stamp != before:
            since = now
        if now - since < (_QUIET_SECONDS if self._complete(folder) else _PATIENCE_SECONDS):
            self._observed[folder] = stamp, since
            return None
        self._observed.pop(folder, None)
        self._taken[folder] = stamp
        return bool(stamp)

    def _complete(self, folder: Path) -> bool:
        try:
            if folder.parent == self._inbound:  # `nbgrader submit` writes these two last
                return all((folder / name).stat().st_size > 0 for name in (TIMESTAMP, SECRET))
            for name in self._assignment.notebooks:
                json.loads(read_capped(folder / f"{name}.ipynb"))
        except (OSError, ValueError, RecursionError):
            return False
        return True

    def _folder(self, student: str) -> Path:
        return self._submitted / student / self._assignment.name

    def _folders(self) -> Iterator[Path]:
        yield from self._submitted.glob(f"[!.]*/{self._assignment.name}")
        if self._inbound is not None:
            yield from self._inbound.glob(f"*+{self._assignment.name}+*")

    # ---- in the thread that listens

    def _listen(self) -> None:
        roots = [self._submitted] if self._inbound is None else [self._submitted, self._inbound]
        try:
            for changes in watchfiles.watch(
                *roots,
                watch_filter=None,
                step=20,
                debounce=200,
                rust_timeout=int(_RESCAN_SECONDS * 1000),
                yield_on_timeout=True,
                stop_event=self._stop,
                raise_interrupt=False,
            ):
                self._note([Path(path) for _, path in changes])
        except (OSError, RuntimeError):  # more folders than the system will watch
            while not self._stop.wait(1):
                self._note([])
        self.stopped = True
        self._wake()

    def _note(self, paths: list[Path]) -> None:
        found = {folder for path in paths if (folder := self._folder_of(path)) is not None}
        with self._lock:
            self._changed |= found if paths else set(self._folders())
            changed = bool(self._changed)
        if changed:
            self._wake()

    def _folder_of(self, path: Path) -> Path | None:
        name = self._assignment.name
        if path.is_relative_to(self._submitted):
            parts = path.relative_to(self._submitted).parts
            ours = parts and not parts[0].startswith(".") and parts[1:2] in ((), (name,))
            return self._folder(parts[0]) if ours else None
        if self._inbound is not None and path.is_relative_to(self._inbound):
            parts = path.relative_to(self._inbound).parts
            return self._inbound / parts[0] if parts and parse(f"{parts[0]}/{TIMESTAMP}", name) else None
        return None

    def _wake(self) -> None:
        with self._lock:
            waiting, self._more = self._more, None
        if waiting is not None:
            waiting.set_result(None)


def _stamp(folder: Path) -> Stamp:
    """Changes whenever a file in it does; of a folder with very many, some are looked at."""
    try:
        there = [(path.name, path.lstat()) for path in sorted(itertools.islice(folder.iterdir(), _FILES))]
    except OSError:
        return ()
    return tuple((name, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns) for name, stat in there)
