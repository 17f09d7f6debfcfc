"""A headless Chromium: the system's where there is one, else Playwright's own. Without either the browser tests are skipped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

playwright = pytest.importorskip("playwright.sync_api")
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@pytest.fixture(scope="session")
def browser() -> Iterator[playwright.Browser]:
    """One browser for all tests."""
    with playwright.sync_playwright() as driver:
        try:
            found = driver.chromium.launch(executable_path=shutil.which("chromium"), args=_FLAGS)
        except playwright.Error as error:
            pytest.skip(f"no Chromium: {error.message.splitlines()[0]}")
        yield found
        found.close()


@pytest.fixture(scope="session")
def pictures() -> Path:
    """Where screenshots are kept: the folder in AUTOGRADER_SCREENSHOTS, else ``build/screenshots``."""
    folder = Path(os.environ.get("AUTOGRADER_SCREENSHOTS", "build/screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
