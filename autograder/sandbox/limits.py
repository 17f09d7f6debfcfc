"""How much a submitted notebook may take of the machine. Pure data, in seconds and bytes."""

from __future__ import annotations

from dataclasses import dataclass

MiB = 1 << 20
GiB = 1 << 30


@dataclass(frozen=True)
class Limits:
    """What one sandbox may use; the defaults suit notebooks that train small torch models on a CPU.

    Passing a limit on memory or file size first raises an ordinary Python error in the student's cell
    (``MemoryError``, ``OSError``) where the kernel allows it; what goes on regardless is killed.
    """

    cell_seconds: float = 60.0
    """Wall clock of one cell: then the cell is interrupted, and the sandbox killed if that does not help."""

    notebook_seconds: float = 600.0
    """Wall clock of the sandbox from start to end."""

    call_seconds: float = 10.0
    """Wall clock of one call of a student's function; the sandbox does not use it, its caller does."""

    memory_bytes: int = 4 * GiB
    """Data of one process (RLIMIT_DATA). All processes together may hold a quarter more, shared memory included."""

    processes: int = 256
    """Processes and threads alive at once."""

    file_bytes: int = 256 * MiB
    """Size of one file."""

    disk_bytes: int = 512 * MiB
    """All files together, in the work directory and /tmp; as much again in /dev/shm. Both live in memory."""

    output_bytes: int = 8 * MiB
    """Outputs that reach the judge; what a notebook prints beyond that is dropped."""

    threads: int = 1
    """Threads of torch's own parallel loops."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise ValueError(f"limit {name}: expected a number above zero, got {value!r}")
