"""Every command in README and docs exists as it is written there, links lead somewhere, and the site builds without a warning."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from nbgrader.apps import NbGraderApp
from typer.main import get_command

from autograder.cli import app
from tests.integration.docpages import PAGES, ROOT, commands, mentioned

pages = pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
COMMANDS: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


@pages
def test_every_autograder_line_parses(page: Path) -> None:
    for name, *rest in commands(page, "autograder"):
        COMMANDS[name].make_context(name, rest)  # parses and runs nothing; raises what says what is wrong
    for words in mentioned(page, "autograder"):
        if words[0].startswith("-"):
            continue
        known = {option for each in COMMANDS[words[0]].params for option in (*each.opts, *each.secondary_opts)}
        assert {word for word in words[1:] if word.startswith("-")} <= known | {"--help"}, words


@pages
def test_every_target_of_make_exists(page: Path) -> None:
    for words in commands(page, "make") + mentioned(page, "make"):
        assert {word for word in words if "=" not in word} <= TARGETS, words


@pages
def test_every_nbgrader_command_exists(page: Path) -> None:
    known = set(NbGraderApp.subcommands)
    for words in commands(page, "nbgrader") + mentioned(page, "nbgrader"):
        assert words[0] in known | {"…"}, words


def test_a_line_that_is_wrong_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```sh\nautograder grade ch18 --agian  # again\n```\n`make demmo`\n")
    with pytest.raises(Exception, match="No such option: --agian"):
        test_every_autograder_line_parses(page)
    with pytest.raises(AssertionError):
        test_every_target_of_make_exists(page)


@pages
def test_every_link_leads_to_a_file(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert target.startswith(("http://", "https://", "mailto:")) or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", [page for page in PAGES if page.name.endswith(".zh.md")], ids=lambda page: page.name)
def test_both_languages_show_the_same_commands(page: Path) -> None:
    english = page.with_name(page.name.replace(".zh", ""))
    for program in ("autograder", "make", "nbgrader"):
        shown = [[_plain(word) for word in words] for words in commands(page, program)]
        assert shown == [[_plain(word) for word in words] for words in commands(english, program)]


def _plain(word: str) -> str:
    """A word of a command; what an instructor writes in a language of their own counts as equal."""
    return word if word != "ill" and word.isascii() else "…"


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    options = ["-q", "-W", "--keep-going", "-n", "-b", "html", "-d", str(tmp_path / "trees")]
    program = [sys.executable, "-m", "sphinx", *options, str(ROOT / "docs"), str(tmp_path / "site")]
    built = subprocess.run(program, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    assert "加一道练习" in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
