"""The same work on many machines: a Dask cluster behind ``concurrent.futures``, so that a class run does not know the difference.

Dask starts a task again when its worker is lost. A submission may be the reason, so a task notes at the scheduler that it has begun; when
it is started a second time it does not grade, but reports its worker as lost, and the class run decides (see ``run``).
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from pathlib import Path
from typing import Any

from autograder.grading.worker import ClusterError, Result, Setup, WorkerLost, load_grader
from autograder.text import Text

_CONNECT_SECONDS = 10
_AT_LEAST = 32  # workers to have submissions ready for: a cluster that grows with its work has none at first
_one_at_a_time = threading.Lock()  # a worker's threads share a judge


class ClusterPool(Executor):
    """Grading on the workers of the scheduler at ``address``. Raises ClusterError when there is none, or Dask is not installed."""

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise ClusterError(_NOT_INSTALLED) from None
        try:
            self._client: Any = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:  # among them, TimeoutError
            raise ClusterError(_NO_ANSWER.format(address=address, error=error)) from None
        self.connected = len(self._client.scheduler_info(n_workers=-1)["workers"])

    @property
    def workers(self) -> int:
        """For how many workers submissions should be ready."""
        return max(self.connected, _AT_LEAST)

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have ``call(setup, …)`` run on some worker. A lost worker is a WorkerLost in the future, a lost cluster a ClusterError."""
        token = f"grade-{uuid.uuid4().hex}"
        theirs = self._client.submit(_once, token, call, *args, **kwargs, key=token, pure=False, retries=0)
        ours: Future[Any] = Future()
        ours.add_done_callback(lambda done: theirs.cancel() if done.cancelled() else theirs.release())
        theirs.add_done_callback(lambda done: _hand_over(done, ours))
        return ours

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster. What is still under way there is dropped."""
        self._client.close()


def _hand_over(theirs: Any, ours: Future[Any]) -> None:
    if not ours.set_running_or_notify_cancel():
        return
    from distributed import KilledWorker

    try:
        ours.set_result(theirs.result())
    except KilledWorker:  # Dask gave up: workers were lost again and again before this one's turn
        ours.set_exception(WorkerLost())
    except CancelledError:
        ours.set_exception(ClusterError(_GONE))
    except ImportError as error:
        ours.set_exception(ClusterError(_CANNOT_LOAD.format(error=error)))
    except BaseException as error:
        ours.set_exception(error)


def _once(token: str, call: Callable[..., tuple[Result, ...]], setup: Setup, *args: Any) -> tuple[Result, ...]:
    """On a worker: grade, unless this very task was begun before."""
    from distributed import Event, get_client, get_worker

    begun: Any = Event(token, client=get_client())  # type: ignore[no-untyped-call]
    with _one_at_a_time:
        if begun.is_set():
            begun.clear()
            raise WorkerLost
        begun.set()
        try:
            _same_course(setup, get_worker().address)
            return call(setup, *args)
        finally:
            begun.clear()


def _same_course(setup: Setup, worker: str) -> None:
    if not Path(setup.root, "course.yaml").is_file():
        raise ClusterError(_NO_COURSE.format(worker=worker, root=setup.root))
    if load_grader(setup).assignment.fingerprint != setup.fingerprint:
        raise ClusterError(_OTHER_COURSE.format(worker=worker, root=setup.root))


_NOT_INSTALLED = Text(
    zh="没有安装 Dask。请运行：pip install 'attention-autograder[cluster]'",
    en="Dask is not installed. Run: pip install 'attention-autograder[cluster]'",
)
_NO_ANSWER = Text(
    zh="{address} 没有 Dask 调度器应答：{error}。地址形如 tcp://主机:8786，由 `dask scheduler` 启动时打印。",
    en="No Dask scheduler answers at {address}: {error}. An address is like tcp://host:8786; `dask scheduler` prints it.",
)
_GONE = Text(
    zh="与 Dask 调度器的连接断了。评好的都已写下；重新运行同一命令会接着评。",
    en="The connection to the Dask scheduler was lost. What was graded is kept; the same command goes on from there.",
)
_CANNOT_LOAD = Text(
    zh="工作进程缺少模块：{error}。每台机器都要装同一版本：pip install 'attention-autograder[grade,cluster]'",
    en="A worker lacks a module: {error}. Every machine needs the same version: pip install 'attention-autograder[grade,cluster]'",
)
_NO_COURSE = Text(
    zh="工作进程 {worker} 那里没有课程文件夹 {root}：请在每台机器的同一路径上提供它。",
    en="The worker {worker} does not see the course folder {root}: it must be there under the same path on every machine.",
)
_OTHER_COURSE = Text(
    zh="工作进程 {worker} 那里的 {root} 与这里不同（作业或隐藏测试不一致）。",
    en="On the worker {worker}, {root} is not the same as here (another release or other hidden tests).",
)
