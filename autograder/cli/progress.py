"""Progress for a person at a terminal; nothing where nobody watches."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from autograder.cli.console import language
from autograder.text import Text


@contextlib.contextmanager
def counted(what: Text, total: int | None, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """A bar that moves by one with every call of the function it gives, which is told what was done."""
    if quiet or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    columns = [
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    ]
    with Progress(*columns, TextColumn("{task.fields[last]}"), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what.lang(language()), total=total, last="")
        yield lambda done: bar.update(task, advance=1, last=done)
