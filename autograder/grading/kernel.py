"""Run a notebook cell by cell in a sandbox, and go on after the kernel has ended.

A cell that ends the kernel, or a call that does, costs itself and nothing else: the kernel is started anew, the cells before it are run
again without the one that ended it, and the notebook goes on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import partial

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode

from autograder.grading.channel import Connection
from autograder.judge.faults import Fault, StudentFault
from autograder.sandbox import Limits, Sandbox, Usage, WarmParent
from autograder.sandbox.manager import SandboxClient
from autograder.text import Text

_SERVE = "__import__('autograder.judge.agent', fromlist=['x']).serve_in_kernel()"
_MAX_RESTARTS = 4
_PRELOAD = (
    "autograder.desk.check",
    "autograder.desk.hint",
    "autograder.desk.leaks",
    "autograder.desk.status",
    "autograder.desk.weights",
    "autograder.judge.agent",
)


def warm_parent() -> WarmParent:
    """A parent of kernels that has imported what the notebooks of a course import, and the agent."""
    return WarmParent(preload=_PRELOAD)


class StudentKernel:
    """The kernel of one submission; use as a context manager.

    ``notebook``'s code cells get their outputs; ``problems`` says in words which cells did not run to their end.
    """

    def __init__(
        self,
        notebook: NotebookNode,
        limits: Limits,
        *,
        warm: WarmParent | None = None,
        files: Mapping[str, bytes] | None = None,
        allow_unsandboxed: bool = False,
    ) -> None:
        self.notebook, self.limits = notebook, limits
        self.problems: dict[int, Text] = {}
        self.limits_hit: list[Text] = []
        self.cpu_seconds = 0.0
        self._options = {"warm": warm, "files": files, "allow_unsandboxed": allow_unsandboxed}
        self._box: Sandbox | None = None
        self._client: NotebookClient | None = None
        self._serving: Connection | None = None
        self._done: list[int] = []  # cells that have run, in order
        self._deadly: set[int] = set()
        self._starts = 0
        self.tier = "none"

    def __enter__(self) -> StudentKernel:
        self._start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop()

    def run_cell(self, index: int) -> None:
        """Run one code cell and keep its outputs; what goes wrong is noted in ``problems``."""
        self._stop_serving()
        cell = self.notebook.cells[index]
        if not self._revive():
            self.problems[index] = _NOT_RUN
            return
        if self._execute(cell, index):
            self._done.append(index)
            raised = _raised(cell)
            if raised is not None:
                self.problems[index] = raised
        else:
            self._deadly.add(index)
            self.problems[index] = self._words_for_death()
            cell.outputs.append(_error_output(self.problems[index]))

    def connection(self) -> Connection:
        """A connection to the agent in the kernel, after a restart if need be. Raises StudentFault when there is no reviving it."""
        if self._box is None or not self._box.alive():
            self._stop_serving()
            if not self._revive():
                raise StudentFault(Fault.DIED, _GIVEN_UP)
        if self._serving is None:
            assert self._client is not None and self._box is not None and isinstance(self._client.kc, SandboxClient)
            serving = self._client.kc.execute(_SERVE, silent=True, store_history=False)
            self._serving = Connection(self._box, partial(self._client.kc.has_answered, serving))
        return self._serving

    # --- the life of the kernel ---------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._starts += 1
        self._box = Sandbox(self.limits, **self._options)  # type: ignore[arg-type]
        self._box.start()
        self.tier = self._box.tier
        self._client = NotebookClient(
            self.notebook, km=self._box.kernel_manager, timeout=None, allow_errors=True, record_timing=False
        )
        self._client.reset_execution_trackers()
        with contextlib.suppress(RuntimeError):  # it died at once: the first cell will find it dead
            self._client.start_new_kernel_client()

    def _stop(self) -> None:
        self._stop_serving()
        if self._client is not None and self._client.kc is not None:
            self._client.kc.stop_channels()
        if self._box is not None:
            self._box.kill()
            self.cpu_seconds += self.usage.cpu_seconds
        self._client = self._box = None

    def _stop_serving(self) -> None:
        if self._serving is not None:
            self._serving.close()
            self._serving = None

    def _revive(self) -> bool:
        """Whether the kernel runs, if need be a new one in which the cells so far have run again."""
        while self._box is None or not self._box.alive():
            if self._starts > _MAX_RESTARTS:
                return False
            if self._box is not None and self._box.died_of is not None and self._box.died_of.cause in _LIMITS:
                self.limits_hit.append(self._box.died_of.text)
            self._stop()
            self._start()
            for index in self._done:
                if index not in self._deadly and not self._execute(_copy(self.notebook.cells[index]), index):
                    self._deadly.add(index)
                    break
        return True

    def _execute(self, cell: NotebookNode, index: int) -> bool:
        """Run a cell; False when the kernel did not survive it."""
        assert self._client is not None
        try:
            self._client.execute_cell(cell, index)
        except DeadKernelError:
            return False
        except Exception as error:  # nbclient meets what a hostile kernel sends: outputs for a display it never made …
            cell.outputs.append(_error_output(Text(zh=f"{type(error).__name__}", en=f"{type(error).__name__}")))
        return self._box is not None and self._box.alive()

    def _words_for_death(self) -> Text:
        if self._box is not None:
            self._box.kill()
        death = self._box.died_of if self._box is not None else None
        if death is None:
            return _NOT_RUN
        if death.cause in _LIMITS:
            self.limits_hit.append(death.text)
        return Text(
            zh=f"这个单元没有运行完：{death.text.zh}。", en=f"This cell did not run to its end: {death.text.en}."
        )

    @property
    def usage(self) -> Usage:
        """What the present kernel has used so far."""
        return self._box.usage() if self._box is not None else Usage()


_LIMITS = frozenset({"time", "memory", "disk", "processes"})
_NOT_RUN = Text(
    zh="没有运行：内核已经多次意外结束。", en="Not run: the kernel had already ended unexpectedly several times."
)
_GIVEN_UP = Text(
    zh="内核多次意外结束，没有再启动。", en="The kernel ended unexpectedly several times and was not started again."
)


def _raised(cell: NotebookNode) -> Text | None:
    """The exception that a cell ended with, in words."""
    for output in cell.outputs:
        if output.output_type == "error" and output.ename != "NotImplementedError":
            said = f"{output.ename}: {output.evalue}"[:_SAID]
            if output.ename == "KeyboardInterrupt":
                return _INTERRUPTED
            return Text(zh=f"这个单元运行出错：{said}", en=f"This cell ended in an error: {said}")
    return None


_SAID = 300
_INTERRUPTED = Text(zh="这个单元运行太久，被中断了。", en="This cell ran for too long and was interrupted.")


def _copy(cell: NotebookNode) -> NotebookNode:
    return nbformat.v4.new_code_cell(cell.source)


def _error_output(text: Text) -> NotebookNode:
    return nbformat.v4.new_output("error", ename="Stopped", evalue=str(text), traceback=[str(text)])
