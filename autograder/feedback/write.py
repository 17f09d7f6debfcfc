"""Put a page where ``nbgrader release_feedback`` looks for it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_NEEDED = ("timestamp.txt", "submission_secret.txt")


def write_feedback(html: str, *, folder: Path, notebook: str, submission: Path) -> Path:
    """Write ``folder/<notebook>.html``, replacing an older one in one step, and return its path.

    ``folder`` is nbgrader's ``feedback/<student>/<assignment>``, ``submission`` its ``submitted/…`` or ``autograded/…`` of the same
    student. The submission's timestamp and secret are copied beside the page where there are any: ``release_feedback`` reads both, and
    gives the page a name that only the owner of the secret can find.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in _NEEDED:
        if (submission / name).is_file():
            shutil.copyfile(submission / name, folder / name)
    target = folder / f"{notebook}.html"
    partial = folder / f".{notebook}.html.partial"
    partial.write_text(html, encoding="utf-8")
    os.replace(partial, target)
    return target


def releasable(folder: Path) -> bool:
    """Whether ``nbgrader release_feedback`` can release the pages in ``folder``: submissions that did not come through nbgrader's exchange
    lack the files it needs, and it would stop at them."""
    return all((folder / name).is_file() for name in _NEEDED)
